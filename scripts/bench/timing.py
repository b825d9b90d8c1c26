"""Starts a program without a shell and times it from spawn to end."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.model import Failed


@dataclasses.dataclass(frozen=True)
class Timed:
    """Seconds on the clock, seconds of the processor in user and kernel mode, and the status (negative: the signal)."""

    seconds: float
    user: float
    system: float
    status: int


# prctl(2), and the time that processes which a command leaves behind may take to exit.
PR_SET_CHILD_SUBREAPER = 36
REST_SECONDS = 5.0


@functools.cache
def adopt_orphans() -> None:
    """Makes the processes that a command leaves behind children of this process: some sandboxes end
    before the processes in them have been waited for."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> set[int]:
    return {int(child) for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


def processor_time_of_rest(before: set[int]) -> tuple[float, float]:
    """Waits for the processes that a command has left behind, and returns their processor time. A process that does not end is left alone."""
    user = system = 0.0
    end = time.monotonic() + REST_SECONDS
    while (left := children() - before) and time.monotonic() < end:
        for child in left:
            with contextlib.suppress(ChildProcessError):
                found, _, used = os.wait4(child, os.WNOHANG)
                if found:
                    user, system = user + used.ru_utime, system + used.ru_stime
        time.sleep(0.0005)
    return user, system


class TooLong(Exception):
    """The time is up."""


def time_is_up(*_: object) -> None:
    raise TooLong


@contextlib.contextmanager
def working_directory(directory: Path) -> Iterator[None]:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(directory)
        yield
    finally:
        os.fchdir(here)
        os.close(here)


def timed(command: Sequence[str], directory: Path, environment: Mapping[str, str], limit: float,
          stdout: Path | str = os.devnull, stderr: Path | str | None = None) -> Timed:
    """Runs a command whose first word is a path. It leads a process group, which is killed when the time is up."""
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, str(stdout), writing, 0o600)]
    if stderr is not None:
        files.append((os.POSIX_SPAWN_OPEN, 2, str(stderr), writing, 0o600))
    adopt_orphans()
    others = children()
    before = signal.signal(signal.SIGALRM, time_is_up)
    child = 0
    try:
        with working_directory(directory):
            signal.setitimer(signal.ITIMER_REAL, limit)
            start = time.perf_counter()
            child = os.posix_spawn(command[0], command, environment, file_actions=files, setpgroup=0)
            _, status, used = os.wait4(child, 0)
            taken = time.perf_counter() - start
        child = 0
        user, system = processor_time_of_rest(others)
        return Timed(taken, used.ru_utime + user, used.ru_stime + system, os.waitstatus_to_exitcode(status))
    except TooLong as error:
        raise Failed(f"still running after {limit:g} s") from error
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if child:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            processor_time_of_rest(others)
