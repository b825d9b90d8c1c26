"""Shows where the time of a row goes: system calls, counters and samples, with the tools that are installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.building import how_it_ended, last_line
from bench.model import Failed, Missing, NotOffered, found
from bench.sandbox.columns import Column
from bench.sandbox.measure import FIRST_SECONDS, settings
from bench.sandbox.model import Row

REPEATED = 20


def tools(output: Path) -> list[tuple[str, list[str]]]:
    """Each tool's words before the command; its report goes to a file."""
    return [
        ("strace", ["strace", "-f", "-c", "-o", f"{output}.strace"]),
        ("perf", ["perf", "stat", "-r", str(REPEATED), "-o", f"{output}.perf-stat"]),
        ("perf", ["perf", "record", "-F", "999", "-g", "-o", f"{output}.perf-data"]),
    ]


def report(output: Path, words: list[str]) -> list[Path]:
    """The files that a tool wrote; samples as text, too."""
    file = Path(words[words.index("-o") + 1])
    if "record" not in words:
        return [file]
    text = Path(f"{output}.perf-report")
    with text.open("wb") as out:
        subprocess.run([found("perf"), "report", "--stdio", "--no-children", "-i", str(file)], stdout=out,
                       stderr=subprocess.DEVNULL, check=False)
    return [file, text]


def profile(row: Row, column: Column, workspace: Path, output: Path) -> tuple[list[Path], list[str]]:
    """The files that were written, and the tools that failed."""
    wish = row.wish(workspace, None)
    try:
        command = column.command(wish)
    except NotOffered as reason:
        raise Failed(str(reason)) from reason
    files, lines = [], []
    column.open(wish)
    try:
        for name, words in tools(output):
            try:
                tool = found(name)
            except Missing as missing:
                lines.append(str(missing))
                continue
            row.reset(workspace)
            done = subprocess.run([tool, *words[1:], "--", *command], cwd=workspace, env=settings(), stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", check=False, timeout=FIRST_SECONDS)
            if done.returncode != row.status:
                lines.append(f"{' '.join(words[:2])}: {how_it_ended(done.returncode)}: {last_line(done.stderr)}")
            else:
                files += report(output, words)
    finally:
        column.close()
    return files, lines
