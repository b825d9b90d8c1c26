"""Contents of files over plain HTTP: GET and POST of /files."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ... import AsyncSandbox
from ...errors import FileError
from ..bodies import Bounded, form_files
from ..core import Refusal
from ..telling import plain, refusal
from .box import Box
from .entries import inside

# How much is read and written at once, in bytes.
PIECE = 1 << 20
# The most bytes of an upload.
MOST = 4 << 30


async def download(box: Box, request: Request) -> Response:
    """The contents of a file, in pieces as the client takes them."""
    sandbox, path = await box.running(), inside(request.query_params.get("path", ""))
    try:
        info = await sandbox.files.stat(path)
        if not info.is_file:
            raise Refusal(400, f"{plain(path)}: is not a file")
        first = await sandbox.files.read(path, count=PIECE)
    except FileError as why:
        raise refusal(why) from None
    return StreamingResponse(_pieces(sandbox, path, first), media_type="application/octet-stream")


async def _pieces(sandbox: AsyncSandbox, path: str, piece: bytes) -> AsyncIterator[bytes]:
    at = 0
    while piece:
        yield piece
        at += len(piece)
        piece = await sandbox.files.read(path, start=at, count=PIECE)


async def upload(box: Box, request: Request) -> Response:
    """Writes files: one as the body, or several as parts of a form."""
    sandbox = await box.running()
    asked = request.query_params.get("path")
    try:
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            written = await _form(sandbox, request, asked)
        elif asked:
            written = [await _write(sandbox, inside(asked), _unpacked(request))]
        else:
            raise Refusal(400, "the parameter path is missing")
    except FileError as why:
        raise refusal(why) from None
    return JSONResponse(written)


async def _form(sandbox: AsyncSandbox, request: Request, asked: str | None) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    async for part in form_files(Bounded(request, MOST)):
        if written and asked:
            raise Refusal(400, "where the parameter path is given a form has one file")
        written.append(await _write(sandbox, inside(asked or part.filename or ""), part.data))
    if not written:
        raise Refusal(400, "expected parts called file")
    return written


async def _unpacked(request: Request) -> AsyncIterator[bytes]:
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding not in ("identity", "gzip"):
        raise Refusal(400, "content-encoding: gzip and identity are known")
    unpack = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
    got = 0
    async for piece in request.stream():
        while piece:
            try:
                data = unpack.decompress(piece, PIECE) if unpack else piece
            except zlib.error:
                raise Refusal(400, "the body is not gzip") from None
            piece = unpack.unconsumed_tail if unpack else b""
            got += len(data)
            if got > MOST:
                raise Refusal(413, f"an upload may have {MOST} bytes")
            yield data
    if unpack and not unpack.eof:
        raise Refusal(400, "the body ends in the middle of gzip")


async def _write(sandbox: AsyncSandbox, path: str, data: AsyncIterator[bytes]) -> dict[str, Any]:
    """Writes a file piece by piece, into the one that is there: those who watch it see it change."""
    begun, waiting = False, bytearray()
    async for piece in data:
        waiting += piece
        if len(waiting) >= PIECE:
            await _more(sandbox, path, bytes(waiting), begun)
            begun = True
            waiting.clear()
    if waiting or not begun:
        await _more(sandbox, path, bytes(waiting), begun)
    return {"name": plain(posixpath.basename(path)), "type": "file", "path": plain(path)}


async def _more(sandbox: AsyncSandbox, path: str, data: bytes, begun: bool) -> None:
    if begun:
        await sandbox.files.append(path, data)
    else:
        await sandbox.files.write(path, data, parents=True, atomic=False)
