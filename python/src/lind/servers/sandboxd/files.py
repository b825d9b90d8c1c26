"""Files over plain HTTP: GET, PUT, POST and DELETE of /v1/files."""

from __future__ import annotations

import errno
import posixpath
import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from email.utils import formatdate
from typing import Any, BinaryIO, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ... import AsyncSandbox, FileInfo
from ...errors import ExistsError, FileError, NotFoundError, shown
from ..bodies import Bounded, Broken, form_file
from ..core import Refusal, body
from ..telling import moment, plain
from .paths import ROOT, confined
from .pod import Box

# How much is read and written at once, the most bytes of an upload, and the most entries of a list.
PIECE, MOST, ENTRIES = 1 << 20, 4 << 30, 20_000
# The most bytes of an archive, those of it that are kept in memory, and the seconds of unpacking.
ARCHIVE, SPOOLED, UNPACK = 512 << 20, 4 << 20, 600.0
MODE = re.compile(r"0[0-7]{3}")
RANGE = re.compile(r"bytes=([0-9]{1,19})?-([0-9]{1,19})?")
# The name of a file that is being written begins with this, as sessions have it. Lists and watches
# leave it out.
TEMPORARY = "lind-write-"
STATUS = {errno.ENOTDIR: 404, errno.ENOTEMPTY: 409, errno.EEXIST: 409}
TRUE = {"1", "t", "T", "true", "TRUE", "True"}
FALSE = {"0", "f", "F", "false", "FALSE", "False", ""}


def is_temporary(name: str) -> bool:
    """Whether a file is one that is being written."""
    return posixpath.basename(name).startswith(TEMPORARY)


def switch(request: Request, name: str) -> bool:
    """A parameter that is true or false."""
    given = request.query_params.get(name, "")
    if given not in TRUE | FALSE:
        raise Refusal(400, f"{name}: expected true or false")
    return given in TRUE


def asked(request: Request) -> str:
    """The path of a request."""
    return str(request.path_params.get("path", ""))


async def get(box: Box, request: Request) -> Response:
    """The contents of a file, or the entries of a directory."""
    path = await confined(box.sandbox, asked(request))
    info = await box.sandbox.files.stat(path)
    if info.is_dir:
        entries = [entry(name, one) for name, one in await seen(box.sandbox, path, recursive=switch(request, "recursive"))]
        return JSONResponse({"path": "/" + plain(asked(request)).lstrip("/"), "entries": entries})
    if not info.is_file:
        raise Refusal(400, "neither a file nor a directory")
    return await download(box.sandbox, path, info, request)


async def download(sandbox: AsyncSandbox, path: str, info: FileInfo, request: Request, **headers: str) -> Response:
    """The contents of a file, or a range of them. They are read as the client takes them, and cut short if the file is replaced meanwhile."""
    about = {"accept-ranges": "bytes", "last-modified": formatdate(moment(info.mtime), usegmt=True), "x-content-type-options": "nosniff", **headers}
    part = _range(request.headers.get("range"), info.size) if "if-range" not in request.headers else None
    start, end = part or (0, info.size)
    if start > end:
        return Response(status_code=416, headers={"content-range": f"bytes */{info.size}"})
    about["content-length"] = str(end - start)
    if part is not None:
        about["content-range"] = f"bytes {start}-{end - 1}/{info.size}"
    status = 200 if part is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=about, media_type="application/octet-stream")
    return StreamingResponse(_pieces(sandbox, path, info.inode, start, end), status, about, media_type="application/octet-stream")


def _range(header: str | None, size: int) -> tuple[int, int] | None:
    """The bytes that a client asks for, from the first to behind the last; None for all. It is empty the wrong way round where there are none.

    >>> _range("bytes=1-2", 10), _range("bytes=-3", 10), _range("bytes=7-", 10), _range("bytes=10-", 10), _range("lines=1-2", 10)
    ((1, 3), (7, 10), (7, 10), (1, 0), None)
    """
    found = RANGE.fullmatch(header or "")
    if found is None or found[1] is None is found[2]:
        return None
    if found[1] is None:
        first, last = max(size - int(found[2]), 0), size
    else:
        first, last = int(found[1]), size if found[2] is None else min(int(found[2]) + 1, size)
        if found[2] is not None and int(found[2]) < first:
            return None
    return (first, last) if first < last else (1, 0)


async def _pieces(sandbox: AsyncSandbox, path: str, inode: int, at: int, end: int) -> AsyncIterator[bytes]:
    while at < end:
        try:
            piece = await sandbox.files.read(path, start=at, count=min(PIECE, end - at))
            same = (await sandbox.files.stat(path)).inode == inode
        except FileError:
            same, piece = False, b""
        if not same or not piece:
            raise Broken(f"{shown(path)}: replaced or cut while it was read")
        yield piece
        at += len(piece)


async def seen(sandbox: AsyncSandbox, path: str, *, recursive: bool = False) -> list[tuple[str, FileInfo]]:
    """The files of a directory, by their names. A link is what it leads to, and is left out where that is not below the root."""
    found = await sandbox.files.list(path, recursive=recursive, count=ENTRIES)
    known = [(info.name, await _seen(sandbox, posixpath.join(path, info.name), info)) for info in sorted(found, key=lambda info: info.name)]
    return [(plain(name), info) for name, info in known if info is not None and not is_temporary(name)]


async def _seen(sandbox: AsyncSandbox, path: str, info: FileInfo) -> FileInfo | None:
    if info.errno is not None or not info.is_link:
        return info if info.errno is None else None
    try:
        return await sandbox.files.stat(await confined(sandbox, path))
    except (FileError, Refusal):
        return None


def kind(info: FileInfo) -> str:
    """The word of clients for it: they know two kinds."""
    return "directory" if info.is_dir else "file"


def entry(name: str, info: FileInfo) -> dict[str, Any]:
    """A file as clients know it."""
    when = datetime.fromtimestamp(int(moment(info.mtime)), timezone.utc)
    return {"name": name, "size": info.size, "type": kind(info), "modified_at": when.strftime("%Y-%m-%dT%H:%M:%SZ"), "mode": f"{info.mode & 0o777:04o}"}


async def put(box: Box, request: Request) -> Response:
    """Writes a file, in the place of the one that is there unless the client does not want that."""
    given = request.query_params.get("mode", "")
    if given and MODE.fullmatch(given) is None:
        raise Refusal(400, f"mode {given[:20]!r}: expected four octal digits that begin with 0, as 0644")
    create = request.headers.get("if-none-match", "").strip() == "*"
    path = await confined(box.sandbox, asked(request))
    data = await _contents(request)
    try:
        await write(box.sandbox, path, data, mode=int(given or "644", 8), create=create)
    except ExistsError:
        raise Refusal(412 if create else 400, "a file of this name is there" if create else "is a directory") from None
    return Response(status_code=204)


async def _contents(request: Request) -> AsyncIterator[bytes]:
    """The bytes that a client sends, as the body or as the part "file" of a form."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal(415, "the body may not be compressed")
    bounded = Bounded(request, MOST)
    if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return (await form_file(bounded)).data
    return bounded.stream()


async def write(sandbox: AsyncSandbox, path: str, data: AsyncIterator[bytes], *, mode: int = 0o644, create: bool = False) -> None:
    """Writes a file piece by piece beside the one that is there, and puts it in its place at the end."""
    if path == ROOT or await _is_directory(sandbox, path):
        raise Refusal(400, "is a directory")
    temporary, waiting, begun = posixpath.join(posixpath.dirname(path), TEMPORARY + secrets.token_hex(8)), bytearray(), False
    try:
        async for piece in data:
            waiting += piece
            if len(waiting) >= PIECE:
                begun = await _more(sandbox, temporary, waiting, begun, mode)
        if not begun:
            await sandbox.files.write(path, bytes(waiting), mode=mode, parents=True, create=create)
            return
        await _more(sandbox, temporary, waiting, begun, mode)
        await sandbox.files.rename(temporary, path, create=create)
        begun = False
    finally:
        if begun:
            await sandbox.files.remove(temporary, missing_ok=True)


async def _is_directory(sandbox: AsyncSandbox, path: str) -> bool:
    try:
        return (await sandbox.files.stat(path)).is_dir
    except NotFoundError:
        return False


async def _more(sandbox: AsyncSandbox, path: str, waiting: bytearray, begun: bool, mode: int) -> bool:
    if begun:
        await sandbox.files.append(path, bytes(waiting))
    else:
        await sandbox.files.write(path, bytes(waiting), mode=mode, parents=True, create=True)
    waiting.clear()
    return True


async def delete(box: Box, request: Request) -> Response:
    """Removes a file or a directory. A link is removed itself."""
    path, recursive = await confined(box.sandbox, asked(request), follow=False), switch(request, "recursive")
    if path != ROOT:
        await box.sandbox.files.remove(path, recursive=recursive)
        return Response(status_code=204)
    if not recursive:
        raise Refusal(409, "the root is not removed: with recursive=true all that is in it is")
    for info in await box.sandbox.files.list(ROOT, count=ENTRIES):
        await box.sandbox.files.remove(posixpath.join(ROOT, info.name), recursive=True, missing_ok=True)
    return Response(status_code=204)


async def post(box: Box, request: Request) -> Response:
    """Does something to a path: makes a directory, moves, copies, or unpacks an archive into it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/x-tar", "application/tar"):
        return await _unpack(box, request)
    wanted = await body(request)
    do, to, create = wanted.get("do"), wanted.get("to"), wanted.get("create", False)
    if not isinstance(create, bool):
        raise Refusal(400, "create: expected true or false")
    if do == "mkdir":
        return await _mkdir(box, asked(request), create=create)
    if do not in ("move", "copy") or not isinstance(to, str):
        raise Refusal(400, 'expected a tar, or an object with "do": mkdir, move or copy, and for these "to"')
    return await _move(box, asked(request), to, copies=do == "copy", create=create)


async def _mkdir(box: Box, path: str, *, create: bool) -> Response:
    where = await confined(box.sandbox, path)
    await box.sandbox.files.mkdir(posixpath.dirname(where) if create else where, parents=True, exist_ok=True)
    if create:
        await box.sandbox.files.mkdir(where)
    return Response(status_code=204)


async def _move(box: Box, path: str, to: str, *, copies: bool, create: bool) -> Response:
    files = box.sandbox.files
    source, target = await confined(box.sandbox, path, follow=False), await confined(box.sandbox, to, follow=False)
    if ROOT in (source, target):
        raise Refusal(400, "the root is neither moved nor replaced")
    if target == source or target.startswith(f"{source}/"):
        raise Refusal(400, "a directory is not put into itself")
    await files.stat(source, follow=False)
    await files.mkdir(posixpath.dirname(target), parents=True, exist_ok=True)
    if copies:
        await files.copy(source, target, recursive=True, create=create)
    else:
        await files.rename(source, target, create=create)
    return Response(status_code=204)


async def _unpack(box: Box, request: Request) -> Response:
    """Unpacks a tar into a directory. It is kept in memory, and beyond that in a file without a name, until all of it has come."""
    path = await confined(box.sandbox, asked(request))
    with box.unpacks(), tempfile.SpooledTemporaryFile(SPOOLED) as archive:
        async for piece in Bounded(request, ARCHIVE).stream():
            archive.write(piece)
        archive.seek(0)
        done = await box.sandbox.files.untar(path, cast("BinaryIO", archive), parents=True, timeout=UNPACK)
    return JSONResponse({"count": done.count, "skipped": [plain(name) for name in done.skipped]})
