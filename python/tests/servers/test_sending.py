"""How the servers send and read: few calls of the host, nothing lost."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("mcp")

from lind.servers.mcp.stdio import Lines
from lind.servers.sending import MOST, Gathering
from tests.servers.support import SERVER

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}


class Sent(asyncio.Transport):
    """A transport that remembers what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[object] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Has bytes sent."""
        self.pieces.append(data)

    def close(self) -> None:
        """Closes it."""
        self.closed = True

    def is_closing(self) -> bool:
        """Whether it is closed."""
        return self.closed


async def test_what_is_written_in_one_turn_is_sent_at_once() -> None:
    """It does not wait for more than that, and no more than so much is kept."""
    inner = Sent()
    transport = Gathering(inner)
    transport.write(b"a")
    transport.write(b"b")
    assert inner.pieces == []
    await asyncio.sleep(0)
    assert inner.pieces == [b"ab"]
    transport.write(bytes(MOST))
    transport.write(b"c")
    assert inner.pieces[1:] == [bytes(MOST) + b"c"]
    await asyncio.sleep(0)
    assert len(inner.pieces) == 2
    transport.write(b"d")
    transport.close()
    assert inner.pieces[2:] == [b"d"]
    assert transport.is_closing()


async def test_lines_are_read_however_they_come() -> None:
    reader = asyncio.StreamReader()
    lines = Lines(reader)
    for piece in (b"a", b"b\nc\n", b"\xff\n", b"\n", b"long" * 1000, b"\nrest"):
        reader.feed_data(piece)
        await asyncio.sleep(0)
    reader.feed_eof()
    assert [line async for line in lines] == ["ab", "c", "\ufffd", "", "long" * 1000, "rest"]


@pytest.mark.parametrize("kind", ["pipe", "file", "with errors", "one socket"])
def test_standard_input_and_output_may_be_anything(kind: str, tmp_path: Path, project: Path) -> None:
    """Files, which the loop cannot wait for, an output that standard error shares, and one socket for both, as socat and systemd give it."""
    request = json.dumps(HELLO) + "\n"
    if kind == "one socket":
        ours, theirs = socket.socketpair()
        with ours, theirs:
            server = subprocess.Popen(SERVER, stdin=theirs.fileno(), stdout=theirs.fileno())
            theirs.close()
            ours.settimeout(120)
            ours.sendall(request.encode())
            with ours.makefile() as answers:
                said = answers.readline()
            ours.shutdown(socket.SHUT_WR)
            assert server.wait(timeout=120) == 0
    elif kind == "file":
        (tmp_path / "in").write_text(request)
        with (tmp_path / "in").open() as given, (tmp_path / "out").open("w") as out:
            assert subprocess.run(SERVER, stdin=given, stdout=out, timeout=120, check=False).returncode == 0
        said = (tmp_path / "out").read_text()
    else:
        errors = subprocess.STDOUT if kind == "with errors" else subprocess.PIPE
        done = subprocess.run(SERVER, input=request, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=120, check=False)
        assert done.returncode == 0
        said = done.stdout
    assert json.loads(said)["result"]["serverInfo"]["name"] == "lind"
