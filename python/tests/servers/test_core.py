"""The common part of the servers, without a face."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from lind.servers.core import Guard, Held, Place, Refusal, Sandboxes, Unusable, bearer, body, is_same, token


async def ask(app: Guard, headers: dict[str, str], kind: str = "http") -> int:
    """The status of the answer to a request."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await app({"type": kind, "method": "GET", "path": "/", "query_string": b"", "headers": raw}, receive, send)
    return int(sent[0].get("status", sent[0].get("code")))


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await JSONResponse({})(scope, receive, send)


SECRET = "a token of this test"
GOOD = {"host": "localhost:8600", "authorization": f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"authorization": f"bearer {SECRET}"}, 200),
        ({"host": "127.0.0.1"}, 200),
        ({"host": "[::1]:8600"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": ""}, 421),
        ({"host": "[::1"}, 421),
        ({"host": "localhost.evil.example:8600"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:8600"}, 403),
        ({"authorization": ""}, 401),
        ({"authorization": f"Basic {SECRET}"}, 401),
        ({"authorization": f"Bearer {SECRET}x"}, 401),
        ({"authorization": f"Bearer {SECRET[:-1]}"}, 401),
        ({"authorization": "Bearer \u00e9\u00e9"}, 401),
    ],
)
async def test_who_is_let_through(change: dict[str, str], status: int) -> None:
    guard = Guard(nothing, frozenset({"localhost", "127.0.0.1", "::1"}), lambda request: is_same(bearer(request.headers), SECRET))
    assert await ask(guard, GOOD | change) == status


async def test_sockets_of_the_web_are_refused() -> None:
    guard = Guard(nothing, None, lambda request: True)
    assert await ask(guard, GOOD, "websocket") == 1008


def test_where_a_server_listens() -> None:
    place = Place.listen("localhost:0")
    with place.socket:
        assert place.hosts is not None and {"localhost", "127.0.0.1"} <= place.hosts and str(place.port) in place.url
        with pytest.raises(Unusable, match="cannot listen there"):
            Place.listen(f"{place.address}:{place.port}")
    with Place.listen("0.0.0.0:0").socket as everywhere:
        assert everywhere.getsockname()[0] == "0.0.0.0"
    far = Place.listen("0.0.0.0:0", ("pod.example",))
    with far.socket:
        assert far.hosts is not None and "pod.example" in far.hosts and far.url.startswith("http://127.0.0.1:")
    for wrong in ("8600", "localhost", "localhost:x", "localhost:99999", "a@localhost:1", "localhost:1/x", "[::1", ""):
        with pytest.raises(Unusable, match="ADDRESS:PORT"):
            Place.listen(wrong)


def test_the_file_of_the_token(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "token"
    first = token(file, "e2b_")
    assert first.startswith("e2b_") and len(first) == 44 and file.stat().st_mode & 0o777 == 0o600
    assert token(file) == first
    file.chmod(0o640)
    with pytest.raises(Unusable, match="chmod 600"):
        token(file)
    file.chmod(0o600)
    file.write_text("short\n")
    with pytest.raises(Unusable, match="16 characters"):
        token(file)
    link = tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(Unusable, match="cannot be used"):
        token(link)


async def read(data: bytes) -> dict[str, Any]:
    pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)] or [b""]

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    return await body(Request({"type": "http", "method": "POST", "headers": []}, receive), most=5000)


async def test_bodies() -> None:
    assert await read(b"") == {} and await read(b'{"a": 1}') == {"a": 1}
    for wrong, status in ((b"[1]", 400), (b"{", 400), (b"\xff", 400), (b"[" * 4000, 400), (b" " * 6000, 413), (b'{"a": "\\ud800"}', 400)):
        with pytest.raises(Refusal) as caught:
            await read(wrong)
        assert caught.value.status == status


class Thing:
    """A sandbox that is none."""

    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


async def made(name: str) -> Thing:
    await asyncio.sleep(0)
    return Thing()


async def test_the_time_of_a_sandbox() -> None:
    sandboxes: Sandboxes[Thing] = Sandboxes(10)
    short, long = await sandboxes.add(made, Thing.close, 0.05), await sandboxes.add(made, Thing.close, 100, "long")
    assert sandboxes.all() == [short, long] and sandboxes.get("long") is long
    while sandboxes.all() == [short, long]:
        await asyncio.sleep(0.01)
    assert (short.what.closed, long.what.closed) == (1, 0)
    with pytest.raises(Refusal) as caught:
        sandboxes.get(short.id)
    assert caught.value.status == 404 and not await sandboxes.end(short.id)
    sandboxes.limit(long, 0)
    while sandboxes.all():
        await asyncio.sleep(0.01)
    assert long.what.closed == 1


async def test_a_face_decides_what_happens_when_time_is_over() -> None:
    told: list[str] = []

    async def over(held: Held[Thing]) -> None:
        told.append(held.id)

    sandboxes: Sandboxes[Thing] = Sandboxes(10, over)
    held = await sandboxes.add(made, Thing.close, 0)
    while not told:
        await asyncio.sleep(0.01)
    assert told == [held.id] and sandboxes.all() == [held]
    await sandboxes.close()
    assert held.what.closed == 1


async def test_no_more_than_so_many() -> None:
    sandboxes: Sandboxes[Thing] = Sandboxes(3)
    found = await asyncio.gather(*(sandboxes.add(made, Thing.close, None) for _ in range(9)), return_exceptions=True)
    refused = [why.status for why in found if isinstance(why, Refusal)]
    assert refused == [429] * 6
    await sandboxes.end(sandboxes.all()[0].id)
    await sandboxes.add(made, Thing.close, None)


async def test_one_that_is_made_while_the_server_ends() -> None:
    sandboxes: Sandboxes[Thing] = Sandboxes(3)
    go, late = asyncio.Event(), Thing()

    async def slow(name: str) -> Thing:
        await go.wait()
        return late

    task = asyncio.ensure_future(sandboxes.add(slow, Thing.close, None))
    await asyncio.sleep(0)
    await sandboxes.close()
    go.set()
    for work in (task, sandboxes.add(made, Thing.close, None)):
        with pytest.raises(Refusal, match="ending"):
            await work
    assert late.closed == 1


SERVER = """
    import asyncio, json, sys
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Route
    from lind import AsyncSandbox
    from lind.servers.core import Guard, Place, Sandboxes, run, serve

    held = Sandboxes(10)

    async def make(name):
        sandbox = AsyncSandbox()
        await sandbox.open()
        return sandbox

    async def create(request):
        new = await held.add(make, AsyncSandbox.close, None)
        return JSONResponse({"id": new.id, "pid": new.what._session.started.pid})

    async def follow(request):
        async def lines():
            process = await held.get(request.path_params["id"]).what.start("trap '' TERM; echo ready; while :; do sleep 1; done")
            async for output in process:
                yield output.data
        return StreamingResponse(lines())

    async def work():
        place = Place.listen("127.0.0.1:0")
        print(place.url, flush=True)
        app = Starlette(routes=[Route("/", create, methods=["POST"]), Route("/{id}", follow)])
        await serve(Guard(app, place.hosts, lambda request: True), place, held.close)

    sys.exit(run("test", work))
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(what: str, holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < limit, what
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_ends_leaves_nothing(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(SERVER)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            made = [json.load(urllib.request.urlopen(urllib.request.Request(url, b"{}"))) for _ in range(3)]
            streams = [urllib.request.urlopen(f"{url}/{entry['id']}", timeout=30) for entry in made]
            assert [stream.read(6) for stream in streams] == [b"ready\n"] * 3
            assert all(is_alive(entry["pid"]) for entry in made)
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(urllib.request.Request(url, headers={"host": "evil.example"}))
            caught.value.close()
        finally:
            os.kill(server.pid, number)
        server.wait(20)
        for stream in streams:
            stream.close()
    until("the sessions end", lambda: not any(is_alive(entry["pid"]) for entry in made))
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 5):
        pass
