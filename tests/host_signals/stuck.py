"""SIGTERM, then five seconds, then the end, whatever guests do: all ways to be stuck at once, since each of them takes these seconds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from processes import family

# A bound and no measure: five seconds for programs, five for grates, and a busy machine.
SECONDS = 30
TERMINATED = 128 + signal.SIGTERM
WAYS = ("compute", "deaf", "fifo", "lock", "handler", "ignore", "threads", "processes", "stop", "vfork")
# Those that a plain run waits for: on Linux each goes on as long as it likes.
DECIDED_BY_THE_PROGRAM = ("handler", "ignore")


def lives(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Stuck:
    """A runner whose program is stuck."""

    def __init__(self, name: str, command: list[str | Path]) -> None:
        self.name = name
        self.runner = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def is_ready(self) -> bool:
        assert self.runner.stdout
        return self.runner.stdout.readline() == "ready\n"

    def ask(self) -> None:
        """Sends the signals of a supervisor, which a stopped process hears, too."""
        self.all = family(self.runner.pid)
        self.runner.send_signal(signal.SIGTERM)
        self.runner.send_signal(signal.SIGCONT)

    def wrong(self, end: float) -> str:
        """The fault of its end, if any; it has to have ended by then."""
        try:
            status = self.runner.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return f"{self.name}: goes on"
        while left := [pid for pid in self.all if lives(pid)]:
            if time.monotonic() > end:
                return f"{self.name}: leaves {left}"
            time.sleep(0.05)
        return "" if status == TERMINATED else f"{self.name}: status {status}"


def end_all(stuck: list[Stuck]) -> list[str]:
    """Asks them to end; says what is wrong with how they do."""
    wrong = []
    try:
        wrong = [f"{one.name}: does not begin" for one in stuck if not one.is_ready()]
        # Bombs have gone off by then.
        time.sleep(0.5)
        for one in stuck:
            one.ask()
        end = time.monotonic() + SECONDS
        wrong += filter(None, [one.wrong(end) for one in stuck])
    finally:
        for one in stuck:
            one.runner.kill()
            one.runner.communicate()
    return wrong


def confined(boot: Path, image: Path) -> list[str]:
    """Of `lind-boot run`; and of a line whose grate looks at descriptors as a client with all groups that there can be."""
    run = [boot, "run", "--image", image, "--cages", "64", "--memory", "1G", "--tmpfs", "/tmp", "--", "stuck"]
    stuck = [Stuck(f"run {way}", [*run, way]) for way in WAYS]
    if os.geteuid() == 0:
        line = ["namespace_grate", "--fd-kind=socket,pipe", "%{", "forward_grate", "%}"]
        stuck.append(Stuck("groups", [boot, "--root", image, *line, "stuck", "groups"]))
    return end_all(stuck)


def plain(boot: Path, image: Path) -> list[str]:
    """A program's own way to take SIGTERM counts as on Linux, without grates and with one; and what ends it ends all."""
    befores: tuple[list[str], ...] = ([], ["forward_grate"])
    runners = [Stuck(f"plain {way} {before}", [boot, "--root", image, *before, "stuck", way])
               for way in DECIDED_BY_THE_PROGRAM for before in befores]
    try:
        wrong = [f"{one.name}: does not begin" for one in runners if not one.is_ready()]
        for one in runners:
            one.ask()
        # Longer than a program has that is confined.
        time.sleep(6)
        wrong += [f"{one.name}: ended" for one in runners if one.runner.poll() is not None]
    finally:
        for one in runners:
            one.runner.kill()
            one.runner.communicate()
    return wrong + end_all([Stuck("plain compute", [boot, "--root", image, "stuck", "compute"])])
