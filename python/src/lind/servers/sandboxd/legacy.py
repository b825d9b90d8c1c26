"""The requests of the older runtime, which the clients of agent-sandbox send through a router, or to a URL."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ...errors import FileError
from ..bodies import Bounded, form_file
from ..core import Refusal, body
from ..telling import moment, plain
from . import process_v1_pb as pb
from .files import MOST, asked, download, kind, seen, write
from .paths import confined
from .pod import Box
from .processes import Expired, Limits, run

# The status of a command whose time was over, as of the program `timeout`.
TIMED_OUT = 124


async def execute(box: Box, request: Request, limits: Limits) -> Response:
    """Runs a line by a shell."""
    wanted = await body(request)
    command, seconds = wanted.get("command"), wanted.get("timeout_seconds")
    if not isinstance(command, str):
        raise Refusal(400, "command: expected a text")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 10**9):
        raise Refusal(400, "timeout_seconds: expected a number of seconds")
    least = limits.seconds if seconds is None else min(float(seconds), limits.seconds)
    try:
        code, kept = await run(box, pb.ProcessConfig(command=["/bin/sh", "-c", command]), replace(limits, seconds=least))
    except Expired as why:
        return _ran(TIMED_OUT, why.kept, str(why), timed_out=True)
    return _ran(code, kept)


def _ran(code: int, kept: dict[str, bytearray], note: str = "", *, timed_out: bool = False) -> Response:
    texts = {stream: data.decode("utf-8", "replace") for stream, data in kept.items()}
    texts["stderr"] += f"{note}\n" if note else ""
    return JSONResponse({**texts, "exit_code": code, "timed_out": timed_out})


async def upload(box: Box, request: Request) -> Response:
    """Writes a file. Its path is the name that the form has for it."""
    part = await form_file(Bounded(request, MOST))
    if not part.filename:
        raise Refusal(400, "the file has no name")
    await write(box.sandbox, await confined(box.sandbox, part.filename), part.data)
    return JSONResponse({"message": f"{plain(part.filename)}: written"})


async def fetch(box: Box, request: Request) -> Response:
    """The contents of a file."""
    path = await confined(box.sandbox, asked(request))
    info = await box.sandbox.files.stat(path)
    if not info.is_file:
        raise Refusal(404, "is not a file")
    return await download(box.sandbox, path, info, request)


async def entries(box: Box, request: Request) -> Response:
    """The entries of a directory, with their times as numbers."""
    path = await confined(box.sandbox, asked(request))
    if not (await box.sandbox.files.stat(path)).is_dir:
        raise Refusal(404, "is not a directory")
    found = [{"name": name, "size": info.size, "type": kind(info), "mod_time": moment(info.mtime)} for name, info in await seen(box.sandbox, path)]
    return JSONResponse(found)


async def exists(box: Box, request: Request) -> Response:
    """Whether there is a file of a name."""
    path = await confined(box.sandbox, asked(request))
    try:
        await box.sandbox.files.stat(path)
        there = True
    except FileError:
        there = False
    return JSONResponse({"path": plain(asked(request)), "exists": there})
