"""Sandboxes that nobody closes leave nothing behind."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lind import Sandbox, program


def until(what: str, holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def sessions() -> set[str]:
    done = subprocess.run([program(), "session", "ls", "--json"], check=True, capture_output=True)
    return {session["name"] for session in json.loads(done.stdout)}


SCRIPT = """
    import sys, time
    from lind import Sandbox
    sandboxes = [Sandbox(idle=600) for _ in range(3)]
    for sandbox in sandboxes:
        sandbox.files.write("/tmp/file", bytes(100_000))
        sandbox.start("(trap '' TERM HUP; while :; do sleep 1; done) & sleep 1000; sleep 1000")
        print(sandbox.name, int(sandbox._session.ask(None, do="hello").keys["pid"]), flush=True)
"""


def begin(rest: str) -> tuple[subprocess.Popen[str], list[str], list[int]]:
    """A program with three sandboxes, their names and their processes."""
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SCRIPT) + rest], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    found = [child.stdout.readline().split() for _ in range(3)]
    return child, [name for name, _ in found], [int(pid) for _, pid in found]


def left(names: list[str]) -> list[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folders = [f"{runtime}/lind", f"/tmp/lind-{os.geteuid()}"]
    return [path for folder in folders for name in names for path in Path(folder).glob(f"*{name}*")]


def swept(names: list[str]) -> bool:
    with Sandbox():
        return left(names) == []


def test_a_killed_program_leaves_nothing() -> None:
    child, names, pids = begin("time.sleep(1000)")
    with child:
        assert all(map(is_alive, pids)) and set(names) <= sessions()
        child.kill()
    until("the sessions end", lambda: not any(map(is_alive, pids)))
    until("the next one that starts removes the sockets", lambda: swept(names))


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise KeyError", "import os, signal; os.kill(os.getpid(), signal.SIGTERM); time.sleep(1000)"])
def test_a_program_that_ends_without_closing(end: str) -> None:
    child, names, pids = begin(end.replace("raise", "sys.stderr.close(); raise"))
    with child:
        pass
    until("the sessions end", lambda: not any(map(is_alive, pids)))
    until("the sockets are removed", lambda: swept(names))


def test_a_child_that_lives_on_keeps_nothing() -> None:
    child, _, pids = begin("import os\nif os.fork(): os.kill(os.getpid(), 9)\nprint(os.getpid(), flush=True)\ntime.sleep(1000)")
    with child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        child.wait()
        try:
            until("the sessions end", lambda: not any(map(is_alive, pids)))
            assert is_alive(grandchild)
        finally:
            os.kill(grandchild, signal.SIGKILL)


def test_a_sandbox_that_nobody_holds_ends() -> None:
    sandbox = Sandbox()
    sandbox.open()
    pid = sandbox._session.started.pid
    assert is_alive(pid)
    del sandbox
    gc.collect()
    until("the session ends", lambda: not is_alive(pid))


FORKS = """
    import time
    from lind import Sandbox
    sandbox = Sandbox(volumes={".": "overlay"})
    sandbox.run("echo 1 >file", check=True)
    forks = [sandbox.fork() for _ in range(2)]
    print("forked", flush=True)
    time.sleep(1000)
"""


def test_copies_of_a_killed_program_go_with_the_next_fork(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    copies = tmp_path / "state" / "lind" / "copies"
    with Sandbox() as sandbox, sandbox.fork() as fork:
        own = os.listdir(copies)
        # The child of a fork leaves them alone.
        child = os.fork()
        if child == 0:
            try:
                fork.close()
            finally:
                os._exit(os.listdir(copies) != own)
        assert os.waitpid(child, 0)[1] == 0 and os.listdir(copies) == own
        with subprocess.Popen([sys.executable, "-c", textwrap.dedent(FORKS)], stdout=subprocess.PIPE, text=True) as killed:
            assert killed.stdout is not None and killed.stdout.readline() == "forked\n"
            assert len(os.listdir(copies)) == 3
            killed.kill()
        (copies / "file-of-somebody").write_text("")
        with sandbox.fork():
            assert len(os.listdir(copies)) == 3 and {*own, "file-of-somebody"} < {*os.listdir(copies)}
    assert os.listdir(copies) == ["file-of-somebody"]
