"""Five accesses that a sandbox should refuse, tried in the very sandbox that is timed. The host, not the guest, decides the result of each."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from bench.building import CFLAGS, last_line, run_tool
from bench.model import REPOSITORY, Failed
from bench.sandbox.columns import Column, Lind
from bench.sandbox.measure import FIRST_SECONDS, settings
from bench.sandbox.model import Wish

PROBES = ("processes", "read", "write", "connect", "signal")
SOURCE = REPOSITORY / "tests" / "benchmarks" / "sandbox" / "probe.c"


def build(lind: bool, place: Path, compiler: str) -> Path:
    """Builds the probe for the host, without a loader so that it runs in any image, or for a cage."""
    target = place / ("probe.wasm" if lind else "probe")
    if not target.exists():
        words = [str(REPOSITORY / "scripts" / "lind_compile")] if lind else [compiler, "-static"]
        run_tool([*words, *CFLAGS, "-o", str(target), str(SOURCE)], "probe.c")
    return target


class Bait:
    """Bait outside the sandbox: a file, a directory that can be written, a listening port, a process."""

    def __init__(self, outside: Path, stack: contextlib.ExitStack) -> None:
        self.token = secrets.token_hex(12)
        self.canary, self.target = outside / "canary", outside / "written"
        self.canary.write_text(self.token)
        self.listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.listener.setblocking(False)
        # Its command line is only the token.
        self.process = subprocess.Popen([self.token], executable="/bin/cat", stdin=subprocess.PIPE)
        stack.callback(self.end)
        # It has its command line only a moment after Popen returns.
        while Path(f"/proc/{self.process.pid}/cmdline").read_bytes() != self.token.encode() + b"\0":
            time.sleep(0.001)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def words(self) -> tuple[str, ...]:
        port = self.listener.getsockname()[1]
        return "./probe", self.token, str(self.canary), str(self.target), str(port), str(self.process.pid)

    def connected(self) -> bool:
        with contextlib.suppress(BlockingIOError):
            self.listener.accept()[0].close()
            return True
        return False

    def killed(self) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(0.2)
            return True
        return False

    def allowed(self, said: dict[str, str]) -> dict[str, bool]:
        """The bait that the guest reached, by kind. The guest's report counts only for facts that it cannot know otherwise."""
        return {"processes": said["processes"].endswith(", the host's"), "read": self.token in said["read"],
                "write": self.target.exists(), "connect": self.connected(), "signal": self.killed()}


def said_by(column: Column, wish: Wish) -> dict[str, str]:
    command = column.command(wish)
    column.open(wish)
    try:
        done = subprocess.run(command, cwd=wish.workspace, env=settings(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", check=False, timeout=FIRST_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Failed("the probe does not end") from error
    finally:
        column.close()
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    if any(probe not in lines for probe in PROBES):
        raise Failed(f"the probe ended with {done.returncode}: {last_line(done.stderr or done.stdout)}")
    return lines


def probe(column: Column, place: Path, compiler: str) -> dict[str, dict[str, object]]:
    """For each probe whether it reached its bait, and the guest's error."""
    with tempfile.TemporaryDirectory(dir=place, prefix="outside.") as outside, \
            tempfile.TemporaryDirectory(dir=place, prefix="probe.") as name, contextlib.ExitStack() as stack:
        workspace = Path(name) / "workspace"
        workspace.mkdir()
        for directory in (Path(outside), Path(name), workspace):
            os.chmod(directory, 0o777)
        lind = isinstance(column, Lind)
        built = build(lind, place, compiler)
        (workspace / ("probe.wasm" if lind else "probe")).write_bytes(built.read_bytes())
        (workspace / ("probe.wasm" if lind else "probe")).chmod(0o755)
        bait = Bait(Path(outside), stack)
        said = said_by(column, Wish(bait.words(), workspace))
        time.sleep(0.05)
        allowed = bait.allowed(said)
    return {name: {"allowed": allowed[name], "said": said[name]} for name in PROBES}
