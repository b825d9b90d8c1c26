"""Contents of files over plain HTTP: GET and POST of /files."""

from __future__ import annotations

import errno
import posixpath
import zlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ... import AsyncSandbox
from ...errors import FileError, shown
from ..core import Refusal
from .box import Box
from .entries import inside, plain

# How much is read and written at once, in bytes.
PIECE = 1 << 20
# The most bytes of an upload, and the most files of one.
MOST = 4 << 30
FILES = 1000
STATUS = {errno.ENOENT: 404, errno.EACCES: 403, errno.EPERM: 403, errno.EROFS: 403, errno.ENOSPC: 507, errno.EDQUOT: 507, errno.EFBIG: 507}


def refusal(why: FileError) -> Refusal:
    """The answer to a request that fails for a file."""
    name = shown(str(why.filename)) if why.filename is not None else "file"
    return Refusal(STATUS.get(why.errno or 0, 400), f"{name}: {why.strerror}")


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
    _limit(request)
    try:
        form = await request.form(max_files=FILES, max_fields=FILES)
    except MultiPartException as why:
        raise Refusal(400, why.message) from None
    except Exception as why:
        # Starlette turns the former into this where an application is around it.
        if type(why).__name__ == "HTTPException":
            raise Refusal(400, str(getattr(why, "detail", why))) from None
        raise
    try:
        parts = [part for name, part in form.multi_items() if name == "file" and isinstance(part, UploadFile)]
        if not parts or (asked and len(parts) > 1):
            raise Refusal(400, "expected parts called file, and one only where the parameter path is given")
        return [await _write(sandbox, inside(asked or part.filename or ""), _parts(part)) for part in parts]
    finally:
        await form.close()


def _limit(request: Request) -> None:
    """Has the body end with an error when it is too long."""
    receive, got = request._receive, 0

    async def counted() -> Any:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > MOST:
            raise Refusal(413, f"an upload may have {MOST} bytes")
        return message

    request._receive = counted


async def _parts(part: UploadFile) -> AsyncIterator[bytes]:
    while piece := await part.read(PIECE):
        yield piece


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
