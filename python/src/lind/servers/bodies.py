"""Bodies of requests that are read piece by piece: bounded ones, and forms. Nothing of them is kept on a disk of the host."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from .core import Refusal

# The seconds that a client may be silent in the middle of a body, and the bytes of headers and the
# parts that a form may have.
SILENCE, HEADERS, PARTS = 120.0, 64 << 10, 1000


class Broken(Exception):
    """An answer that has begun cannot be brought to its end. The connection is closed, by which the client knows."""


class Quiet:
    """Closes connections whose answers cannot be brought to their end, and says nothing of clients that have left."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        try:
            await self._app(scope, receive, send)
        except (Broken, ClientDisconnect):
            pass


class Bounded:
    """The body of a request, which may have so many bytes."""

    def __init__(self, request: Request, most: int) -> None:
        self.request, self._most = request, most

    async def stream(self) -> AsyncIterator[bytes]:
        """The pieces of the body."""
        got, pieces = 0, self.request.stream()
        while True:
            try:
                piece = await asyncio.wait_for(anext(pieces), SILENCE)
            except StopAsyncIteration:
                return
            except asyncio.TimeoutError:
                raise Refusal(408, f"nothing came for {SILENCE:.0f} seconds") from None
            got += len(piece)
            if got > self._most:
                raise Refusal(413, f"a body may have {self._most} bytes")
            yield piece


@dataclass(frozen=True)
class Part:
    """A file of a form: the name that the client has given it, and its bytes."""

    filename: str | None
    data: AsyncIterator[bytes]


class _Parser:
    """Reads a form. `events` has what it has found: the headers of a part, bytes of one, and None for the end of one."""

    def __init__(self, boundary: bytes) -> None:
        self.events: deque[dict[str, bytes] | bytes | None] = deque()
        self._headers: dict[str, bytes] = {}
        self._name, self._value, self._size, self._parts = b"", b"", 0, 0
        try:
            self._parser = MultipartParser(boundary, {
                "on_part_begin": self._begin, "on_header_field": self._field, "on_header_value": self._value_of, "on_header_end": self._end_of_header,
                "on_headers_finished": lambda: self.events.append(self._headers), "on_part_data": lambda data, start, end: self.events.append(bytes(data[start:end])),
                "on_part_end": lambda: self.events.append(None)})
        except FormParserError as why:
            raise Refusal(400, f"the form cannot be read: {why}") from None

    def feed(self, piece: bytes) -> None:
        """Reads on."""
        try:
            self._parser.write(piece)
        except FormParserError as why:
            raise Refusal(400, f"the form cannot be read: {why}") from None

    def _begin(self) -> None:
        self._headers, self._size, self._parts = {}, 0, self._parts + 1
        if self._parts > PARTS:
            raise Refusal(400, f"a form may have {PARTS} parts")

    def _grow(self, more: bytes) -> bytes:
        self._size += len(more)
        if self._size > HEADERS:
            raise Refusal(400, f"the headers of a part may have {HEADERS} bytes")
        return more

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._name += self._grow(bytes(data[start:end]))

    def _value_of(self, data: bytes, start: int, end: int) -> None:
        self._value += self._grow(bytes(data[start:end]))

    def _end_of_header(self) -> None:
        self._headers[self._name.decode("latin-1").lower()] = self._value
        self._name = self._value = b""


async def _events(body: Bounded) -> AsyncIterator[dict[str, bytes] | bytes | None]:
    kind, options = parse_options_header(body.request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise Refusal(400, "a form is multipart/form-data with a boundary")
    parser = _Parser(boundary)
    async for piece in body.stream():
        parser.feed(piece)
        while parser.events:
            yield parser.events.popleft()


async def form_files(body: Bounded) -> AsyncIterator[Part]:
    """The files of a form, which are its parts called "file". Each has to be read before the next."""
    events = _events(body)
    async for event in events:
        if not isinstance(event, dict):
            continue
        _, options = parse_options_header(event.get("content-disposition", b""))
        if options.get(b"name") == b"file":
            name = options.get(b"filename")
            yield Part(None if name is None else name.decode("utf-8", "replace"), _data(events))


async def _data(events: AsyncIterator[dict[str, bytes] | bytes | None]) -> AsyncIterator[bytes]:
    async for event in events:
        if event is None:
            return
        if isinstance(event, bytes):
            yield event
    raise Refusal(400, "the form ends in the middle of a file")


async def form_file(body: Bounded) -> Part:
    """The first file of a form."""
    async for part in form_files(body):
        return part
    raise Refusal(400, 'the form has no part called "file"')
