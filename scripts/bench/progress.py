"""Shows the progress: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path


@contextlib.contextmanager
def progress(steps: int):
    """Yields say(files) -> step: a bar on a terminal, otherwise a line for each file."""
    if not sys.stderr.isatty():
        def say_plainly(files: list[str]):
            for file in files:
                print(f"Running:  {file}", file=sys.stderr, flush=True)
            return lambda: None

        yield say_plainly
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)

        def say(files: list[str]):
            bar.update(task, description=Path(files[0]).name)
            for file in files:
                bar.console.print(f"Running:  {file}", highlight=False)
            return lambda: bar.advance(task)

        yield say
