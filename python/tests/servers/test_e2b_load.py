"""Clients of `lind e2b` that leave, do not read, or read much, and servers that end meanwhile."""

from __future__ import annotations

import http.client
import json
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

e2b = pytest.importorskip("e2b")
pytest.importorskip("connectrpc")

from e2b import Sandbox

from .e2b_server import pointed, server

# More than the server, the session and the sockets between them hold.
MUCH = 64 << 20


def resident(pid: int) -> int:
    """The bytes of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def until(what: str, holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.05)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, dict[str, str]]]:
    with server(tmp_path_factory.mktemp("load")) as (process, variables), pointed(variables):
        yield process.pid, variables


def start(variables: dict[str, str], sandbox: Sandbox, line: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    """A command, and the connection by which its output comes; nothing of it is read."""
    where = urlsplit(variables["E2B_SANDBOX_URL"])
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    message = json.dumps({"process": {"cmd": "/bin/bash", "args": ["-c", line]}, "stdin": False}).encode()
    headers = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1", **sandbox.connection_config.sandbox_headers}
    connection.request("POST", "/process.Process/Start", b"\0" + struct.pack(">I", len(message)) + message, headers)
    return connection, connection.getresponse()


def test_a_client_that_does_not_read(running: tuple[int, dict[str, str]]) -> None:
    pid, variables = running
    with Sandbox.create(timeout=300) as sandbox:
        before = resident(pid)
        connection, answer = start(variables, sandbox, f"head -c {MUCH} /dev/zero; echo done >end")
        time.sleep(3)
        # The command waits, the server keeps little, and others are served.
        assert not sandbox.files.exists("end") and resident(pid) - before < 24 << 20
        assert sandbox.commands.run("echo others").stdout == "others\n"
        total = 0
        while piece := answer.read(1 << 20):
            total += len(piece)
        assert total > MUCH
        until("the command ends when it is read", lambda: sandbox.files.exists("end"))
        connection.close()


def test_a_client_that_disconnects(running: tuple[int, dict[str, str]]) -> None:
    _, variables = running
    with Sandbox.create(timeout=300) as sandbox:
        connection, answer = start(variables, sandbox, f"head -c {MUCH} /dev/zero; echo done >end")
        assert answer.read(100)
        connection.close()
        answer.close()
        until("the command goes on", lambda: sandbox.files.exists("end"))
        until("nobody holds it", lambda: not sandbox.commands.list())


def test_much_output(running: tuple[int, dict[str, str]]) -> None:
    pid, _ = running
    with Sandbox.create(timeout=300) as sandbox:
        before = resident(pid)
        count = 0

        def add(text: str) -> None:
            nonlocal count
            count += len(text)

        sandbox.commands.run(f"head -c {MUCH} /dev/zero", on_stdout=add, timeout=200, retain_output=False)
        assert count == MUCH and resident(pid) - before < 24 << 20


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> set[int]:
    """The sessions that a process has started, by their command lines."""
    found = set()
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"python-{pid}-".encode() in line.read_bytes():
                found.add(int(line.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ends_midway(tmp_path: Path, number: int) -> None:
    with server(tmp_path) as (process, variables), pointed(variables):
        made = [Sandbox.create(timeout=300) for _ in range(3)]
        handles = [sandbox.commands.run("trap '' TERM; echo ready; while :; do sleep 1; done", background=True) for sandbox in made]
        assert [next(iter(handle))[0] for handle in handles] == ["ready\n"] * 3
        made[0].pause()
        sessions = children(process.pid)
        assert len(sessions) >= 3
        process.send_signal(number)
        process.wait(30)
        until("all sessions end", lambda: not any(map(is_alive, sessions)))
        for handle in handles:
            with pytest.raises(e2b.SandboxException):
                handle.wait()
