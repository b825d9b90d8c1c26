"""The parts that the tests of servers under load share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

# Tests that take long run where this is set, as by make sdk-test.
IS_LONG = "LIND_LOADS" in os.environ
LONG = pytest.mark.skipif(not IS_LONG, reason="it takes long: make sdk-test")
# The bytes of output of a command: more than the server, the session and the sockets between them
# hold.
MUCH = 1_000_000_000 if IS_LONG else 64 << 20
# The bytes by which a server may grow meanwhile, however many there are.
GROWTH = 24 << 20


def resident(pid: int) -> int:
    """The bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def until(what: str, holds: Callable[[], bool], seconds: float = 60) -> None:
    """Waits until something holds."""
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def sessions(pid: int) -> set[int]:
    """The sessions that a process has started, by their command lines."""
    found = set()
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"python-{pid}-".encode() in line.read_bytes():
                found.add(int(line.parent.name))
        except OSError:
            continue
    return found
