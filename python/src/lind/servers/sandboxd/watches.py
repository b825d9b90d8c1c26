"""The service watcher.v1.FileWatcherService: changes in directories."""

from __future__ import annotations

import posixpath
import time
from collections.abc import AsyncIterator

from ... import AsyncWatch
from ...errors import FileError, RequestError, SandboxError, TimeoutExpired
from ..core import Refusal
from ..telling import plain
from . import watcher_v1_pb as pb
from .files import is_temporary
from .names import Tokens
from .paths import confined, relative
from .pod import Box, Pod
from .rpc import Context, Service

Kind = pb.FileEventType
KINDS = {"created": Kind.CREATE, "moved_to": Kind.CREATE, "modified": Kind.WRITE, "written": Kind.WRITE, "removed": Kind.REMOVE,
         "moved_from": Kind.RENAME, "attributes": Kind.CHMOD}
# The seconds in which the same change of the same file is told once, and how many changes wait.
TOGETHER, MOST = 0.25, 10_000
# How often it is looked whether the directory is there, in seconds.
LOOK = 2.0


def service(pod: Pod, tokens: Tokens) -> Service:
    """The service."""
    made = Service("watcher.v1.FileWatcherService", pod, tokens)
    made.stream("WatchDir", pb.WatchDirRequest, _watch)
    return made


async def _watch(box: Box, request: pb.WatchDirRequest, context: Context) -> AsyncIterator[pb.FileEvent]:
    """Tells changes until the client goes away, or the directory."""
    path = await confined(box.sandbox, request.path)
    there = await box.sandbox.files.stat(path)
    if not there.is_dir:
        raise Refusal(400, "only directories are watched")
    with box.watched():
        async with await box.sandbox.files.watch(path, recursive=request.recursive) as watch:
            # The client knows by these that the watch has begun.
            await context.send_initial_metadata(())
            error = None
            while error is None:
                changes, error = await _together(watch)
                for kind, name in changes:
                    yield pb.FileEvent(type=kind, path=plain(relative(posixpath.join(path, name))))
                if error is None and not await _is_there(box, path, there.inode):
                    error = "the directory was removed or renamed"
            yield pb.FileEvent(type=Kind.ERROR, path=plain(relative(path)), error=error)


async def _together(watch: AsyncWatch) -> tuple[list[tuple[Kind, str]], str | None]:
    """The next changes, each kind of each name once, and why there are no more."""
    found: dict[tuple[Kind, str], None] = {}
    end = time.monotonic() + LOOK
    try:
        while len(found) < MOST:
            change = await watch.read(timeout=max(end - time.monotonic(), 0.001))
            if change.kind == "overflow":
                return list(found), "changes were lost: there were too many at once"
            if change.kind in KINDS and not is_temporary(change.name):
                if not found:
                    end = time.monotonic() + TOGETHER
                found[KINDS[change.kind], change.name] = None
    except TimeoutExpired:
        pass
    except (FileError, RequestError, SandboxError) as why:
        return list(found), str(why)
    return list(found), None


async def _is_there(box: Box, path: str, inode: int) -> bool:
    try:
        now = await box.sandbox.files.stat(path, follow=False)
    except FileError:
        return False
    return now.is_dir and now.inode == inode
