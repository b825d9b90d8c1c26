"""Measures the cost of an idle sandbox: many that wait, and the proportional memory of all their processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.model import Failed, NotOffered
from bench.sandbox.columns import Column, LindSession
from bench.sandbox.measure import settings
from bench.sandbox.model import Wish

START_SECONDS = 120
# Reports that it runs, then waits.
WAITS = ("bash", "-c", "echo >started-$1; exec sleep 1000", "bash")


def family(pid: int) -> list[int]:
    """A process and all its descendants; those that end meanwhile are left out."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (task / "children").read_text().split()]
    return [pid, *(each for child in children for each in family(child))]


def proportional(pid: int) -> int:
    """The bytes of a process; of pages that several processes share, each counts its part."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def wait_until(count: int, started) -> None:
    end = time.monotonic() + START_SECONDS
    while started() < count:
        if time.monotonic() > end:
            raise Failed(f"{started()} of {count} sandboxes started within {START_SECONDS} s")
        time.sleep(0.05)


@contextlib.contextmanager
def waiting(column: Column, workspace: Path, count: int) -> Iterator[list[subprocess.Popen]]:
    """Starts `count` sandboxes with a program that sleeps."""
    if column.daemon:
        raise NotOffered("its processes belong to a daemon")
    for tool in ("bash", "sleep"):
        column.tool(tool)
    running = []
    try:
        for i in range(count):
            command = column.command(Wish((*WAITS, str(i)), workspace))
            with open(workspace / f"said-{i}", "wb") as said:
                running.append(subprocess.Popen(command, cwd=workspace, env=settings(), stdin=subprocess.DEVNULL,
                                                stdout=said, stderr=said, start_new_session=True))
        wait_until(count, lambda: len(list(workspace.glob("started-*"))))
        yield running
    finally:
        for process in running:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGTERM)
        end_all(running)


def end_all(running: list[subprocess.Popen]) -> None:
    end = time.monotonic() + 10
    for process in running:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            for each in family(process.pid):
                with contextlib.suppress(OSError):
                    os.kill(each, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def sessions(column: LindSession, workspace: Path, count: int) -> Iterator[list[int]]:
    """Starts `count` empty sessions; yields their runners."""
    names = [f"{column.session}-{i}" for i in range(count)]
    before = runners(column)
    try:
        for name in names:
            column.start(name, Wish((), workspace))
        yield sorted(runners(column) - before)
    finally:
        for name in names:
            column.stop(name)


def runners(column: LindSession) -> set[int]:
    """The processes that run the runner's own file."""
    result = set()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.path.samefile(entry / "exe", column.boot):
                result.add(int(entry.name))
    return result


def measure(column: Column, place: Path, count: int) -> dict[str, float]:
    """Bytes per idle sandbox."""
    with tempfile.TemporaryDirectory(dir=place, prefix="memory.") as name:
        workspace = Path(name) / "workspace"
        workspace.mkdir()
        if isinstance(column, LindSession):
            with sessions(column, workspace, count) as pids:
                if len(pids) < count:
                    raise Failed(f"{len(pids)} runners for {count} sessions")
                return {"count": count, "bytes": sum(map(proportional, pids)) / count}
        with waiting(column, workspace, count) as running:
            if any(process.poll() is not None for process in running):
                raise Failed("some of the sandboxes have ended")
            pids = [each for process in running for each in family(process.pid)]
            return {"count": count, "bytes": sum(map(proportional, pids)) / count}
