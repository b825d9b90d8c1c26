"""Clients of `lind e2b` that leave, do not read, or read much, and servers that end meanwhile."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

e2b = pytest.importorskip("e2b")
pytest.importorskip("connectrpc")

from e2b import AsyncSandbox, Sandbox

from .e2b_server import pointed, server
from .loads import GROWTH, IS_LONG, MUCH, is_alive, resident, sessions, until


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
        assert not sandbox.files.exists("end") and resident(pid) - before < GROWTH
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


@pytest.mark.parametrize("kind", ["application/octet-stream", "multipart/form-data; boundary=edge"])
def test_an_upload_that_is_cut_off(running: tuple[int, dict[str, str]], kind: str) -> None:
    """The file has what has come, and the server says nothing of it in its log."""
    _, variables = running
    where = urlsplit(variables["E2B_SANDBOX_URL"])
    head = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="part"\r\n\r\n' if "form" in kind else b""
    with Sandbox.create(timeout=300) as sandbox:
        with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
            headers = {"Host": where.netloc, "Content-Type": kind, "Content-Length": str(8 << 20), **sandbox.connection_config.sandbox_headers}
            lines = ["POST /files?path=part HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
            connection.sendall("\r\n".join(lines).encode() + head + b"x" * (3 << 20))
            until("a part is written", lambda: sandbox.files.exists("part"))
        assert sandbox.files.read("part", format="bytes").strip(b"x") == b""


def test_much_output(running: tuple[int, dict[str, str]]) -> None:
    pid, _ = running
    with Sandbox.create(timeout=300) as sandbox:
        before = resident(pid)
        count = 0

        def add(text: str) -> None:
            nonlocal count
            count += len(text)

        sandbox.commands.run(f"head -c {MUCH} /dev/zero", on_stdout=add, timeout=600, retain_output=False)
        assert count == MUCH and resident(pid) - before < GROWTH


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ends_midway(tmp_path: Path, number: int) -> None:
    with server(tmp_path) as (process, variables), pointed(variables):
        made = [Sandbox.create(timeout=300) for _ in range(3)]
        handles = [sandbox.commands.run("trap '' TERM; echo ready; while :; do sleep 1; done", background=True) for sandbox in made]
        assert [next(iter(handle))[0] for handle in handles] == ["ready\n"] * 3
        made[0].pause()
        started = sessions(process.pid)
        assert len(started) >= 3
        process.send_signal(number)
        process.wait(30)
        until("all sessions end", lambda: not any(map(is_alive, started)))
        for handle in handles:
            with pytest.raises(e2b.SandboxException):
                handle.wait()


async def _many(pid: int, boxes: int, times: int) -> None:
    places = asyncio.Semaphore(16)

    async def make() -> AsyncSandbox:
        async with places:
            made: AsyncSandbox = await AsyncSandbox.create(timeout=3600, request_timeout=600)
            return made

    async def run(sandbox: AsyncSandbox, number: int) -> bool:
        async with places:
            result = await sandbox.commands.run(f"echo {number}", timeout=300)
            return (result.stdout, result.stderr, result.exit_code) == (f"{number}\n", "", 0)

    sandboxes = await asyncio.gather(*(make() for _ in range(boxes)))
    few = 0
    for count in (boxes * 2, boxes * times):
        assert all(await asyncio.gather(*(run(sandboxes[number % boxes], number) for number in range(count))))
        few = few or resident(pid)
    assert resident(pid) - few < GROWTH
    await asyncio.gather(*(sandbox.kill() for sandbox in sandboxes))


def test_many_sandboxes_and_commands(running: tuple[int, dict[str, str]]) -> None:
    """Each command gives its own output, and the server does not grow with their number."""
    pid, _ = running
    asyncio.run(_many(pid, *((200, 25) if IS_LONG else (6, 10))))
