"""A `lind e2b` that tests ask, and the stock Python client of E2B pointed at it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A server with these options, and the variables by which clients find it, as `lind e2b --env` prints them."""
    file = f"--token-file={folder}/token"
    command = [sys.executable, "-m", "lind._cli", "e2b", file]
    with (folder / "log").open("w") as log, subprocess.Popen([*command, "--listen=127.0.0.1:0", *words], stdout=subprocess.PIPE, stderr=log, text=True) as running:
        try:
            assert running.stdout is not None
            where = running.stdout.readline().strip().removeprefix("lind e2b: http://")
            said = subprocess.run([*command, f"--listen={where}", "--env"], check=True, capture_output=True, text=True).stdout
            yield running, dict(re.findall(r"^export (\w+)=(\S+)$", said, re.MULTILINE))
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(30)
    said = (folder / "log").read_text()
    assert "Traceback" not in said, said
    assert (folder / "token").read_text().strip() not in said


@contextmanager
def pointed(variables: dict[str, str]) -> Iterator[None]:
    """Points the client of this process at a server."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
