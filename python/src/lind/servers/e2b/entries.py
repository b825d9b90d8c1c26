"""The service filesystem.Filesystem: directories, and what changes in them."""

from __future__ import annotations

import posixpath
import secrets
import stat
from collections.abc import AsyncIterator, Callable
from typing import Any

from connectrpc.request import RequestContext
from protobuf.wkt import Timestamp

from ... import AsyncSandbox, Change, FileInfo
from ...errors import LindError, NotDirectoryError, NotFoundError, TimeoutExpired
from ..core import Refusal
from ..telling import moment, plain
from . import filesystem_pb as pb
from .box import HOME, Box
from .connect import Service, one, silence
from .watchers import Watcher

# How many watches of one sandbox there may be: the session has 16 programs for files.
WATCHES = 8
# A link that leads nowhere is one. Clients leave out of lists all that has none of these types.
TYPES = {"file": pb.FileType.FILE, "directory": pb.FileType.DIRECTORY, "link": pb.FileType.SYMLINK}
EVENTS = {"created": pb.EventType.CREATE, "moved_to": pb.EventType.CREATE, "modified": pb.EventType.WRITE, "removed": pb.EventType.REMOVE,
          "moved_from": pb.EventType.RENAME, "attributes": pb.EventType.CHMOD}


def service(boxes: Callable[[str], Box]) -> Service:
    """The service, for the sandboxes that `boxes` finds by their ids."""
    made = Service("filesystem.Filesystem", boxes)
    made.unary("Stat", pb.StatRequest, pb.StatResponse, _stat)
    made.unary("MakeDir", pb.MakeDirRequest, pb.MakeDirResponse, _make)
    made.unary("Move", pb.MoveRequest, pb.MoveResponse, _move)
    made.unary("ListDir", pb.ListDirRequest, pb.ListDirResponse, _list)
    made.unary("Remove", pb.RemoveRequest, pb.RemoveResponse, _remove)
    made.stream("WatchDir", pb.WatchDirRequest, pb.WatchDirResponse, _watch)
    made.unary("CreateWatcher", pb.CreateWatcherRequest, pb.CreateWatcherResponse, _create_watcher)
    made.unary("GetWatcherEvents", pb.GetWatcherEventsRequest, pb.GetWatcherEventsResponse, _events)
    made.unary("RemoveWatcher", pb.RemoveWatcherRequest, pb.RemoveWatcherResponse, _remove_watcher)
    return made


def inside(path: str) -> str:
    """A path of a client: below the home unless it begins with /."""
    if "\0" in path:
        raise Refusal(400, "a path with a null byte")
    return posixpath.normpath(posixpath.join(HOME, path.removeprefix("~").lstrip("/") if path == "~" or path.startswith("~/") else path))


def entry(path: str, info: FileInfo, target: FileInfo | None) -> pb.EntryInfo:
    """A file as clients know it; `target` is what a link leads to."""
    seen = target or info
    mode = info.mode & 0o7777
    when = moment(info.mtime)
    seconds = int(when)
    return pb.EntryInfo(
        name=plain(posixpath.basename(path)),
        type=TYPES.get(seen.type, pb.FileType.UNSPECIFIED),
        path=plain(path),
        size=info.size,
        mode=mode,
        permissions=stat.filemode(mode | {"directory": stat.S_IFDIR, "link": stat.S_IFLNK}.get(info.type, stat.S_IFREG)),
        owner="root" if info.uid == 0 else "user",
        group="root" if info.gid == 0 else "user",
        modified_time=Timestamp(seconds=seconds, nanos=int((when - seconds) * 1e9)),
        symlink_target=None if info.target is None else plain(posixpath.normpath(posixpath.join(posixpath.dirname(path), info.target))),
        is_symlink=info.is_link,
    )


async def look(sandbox: AsyncSandbox, path: str, info: FileInfo | None = None) -> pb.EntryInfo:
    """A file, as it is now."""
    found = info or await sandbox.files.stat(path, follow=False)
    target = None
    if found.is_link:
        try:
            target = await sandbox.files.stat(path)
        except LindError:
            # It leads nowhere.
            pass
    return entry(path, found, target)


async def _stat(box: Box, request: pb.StatRequest) -> pb.StatResponse:
    return pb.StatResponse(entry=await look(await box.running(), inside(request.path)))


async def _make(box: Box, request: pb.MakeDirRequest) -> pb.MakeDirResponse:
    sandbox, path = await box.running(), inside(request.path)
    try:
        there = await sandbox.files.stat(path)
    except NotFoundError:
        await sandbox.files.mkdir(path, parents=True)
    else:
        raise Refusal(409 if there.is_dir else 400, f"{plain(path)}: is there already" if there.is_dir else f"{plain(path)}: is not a directory")
    return pb.MakeDirResponse(entry=await look(sandbox, path))


async def _move(box: Box, request: pb.MoveRequest) -> pb.MoveResponse:
    sandbox, source, to = await box.running(), inside(request.source), inside(request.destination)
    await sandbox.files.stat(source, follow=False)
    await sandbox.files.mkdir(posixpath.dirname(to), parents=True, exist_ok=True)
    await sandbox.files.rename(source, to)
    return pb.MoveResponse(entry=await look(sandbox, to))


async def _list(box: Box, request: pb.ListDirRequest) -> pb.ListDirResponse:
    sandbox, path, depth = await box.running(), inside(request.path), max(request.depth, 1)
    found = await sandbox.files.list(path, recursive=depth > 1, depth=depth if depth > 1 else None, count=20_000)
    paths = [(posixpath.join(path, info.name), info) for info in sorted(found, key=lambda info: info.name)]
    return pb.ListDirResponse(entries=[await look(sandbox, name, info) for name, info in paths])


async def _remove(box: Box, request: pb.RemoveRequest) -> pb.RemoveResponse:
    sandbox = await box.running()
    await sandbox.files.remove(inside(request.path), recursive=True, missing_ok=True)
    return pb.RemoveResponse()


async def _directory(sandbox: AsyncSandbox, path: str) -> str:
    if not (await sandbox.files.stat(path)).is_dir:
        raise NotDirectoryError(20, "is not a directory", path)
    return path


async def event(sandbox: AsyncSandbox, base: str, change: Change, *, entries: bool) -> pb.FilesystemEvent | None:
    """A change as clients know it, or None for those that they do not know."""
    kind = EVENTS.get(change.kind)
    if kind is None:
        return None
    seen = None
    if entries:
        try:
            seen = await look(sandbox, posixpath.join(base, change.name))
        except LindError:
            # It has gone since.
            pass
    return pb.FilesystemEvent(name=plain(change.name), type=kind, entry=seen)


async def _watch(box: Box, request: pb.WatchDirRequest, context: RequestContext[Any, Any]) -> AsyncIterator[pb.WatchDirResponse]:
    sandbox, seconds = await box.running(), silence(context)
    path = await _directory(sandbox, inside(request.path))
    async with await sandbox.files.watch(path, recursive=request.recursive) as watch:
        yield pb.WatchDirResponse(event=one("start", pb.WatchDirResponse.StartEvent()))
        while not box.paused:
            try:
                change = await watch.read(timeout=seconds)
            except TimeoutExpired:
                yield pb.WatchDirResponse(event=one("keepalive", pb.WatchDirResponse.KeepAlive()))
                continue
            told = await event(sandbox, path, change, entries=request.include_entry)
            if told is not None:
                yield pb.WatchDirResponse(event=one("filesystem", told))


async def _create_watcher(box: Box, request: pb.CreateWatcherRequest) -> pb.CreateWatcherResponse:
    sandbox = await box.running()
    if len(box.watchers) >= WATCHES:
        raise Refusal(429, f"{WATCHES} directories of this sandbox are watched already")
    path = await _directory(sandbox, inside(request.path))
    watch = await sandbox.files.watch(path, recursive=request.recursive)
    id = secrets.token_hex(8)
    box.watchers[id] = Watcher(path, watch, entries=request.include_entry)
    return pb.CreateWatcherResponse(watcher_id=id)


def _watcher(box: Box, id: str) -> Watcher:
    try:
        return box.watchers[id]
    except KeyError:
        raise Refusal(404, "there is no watch of this id") from None


async def _events(box: Box, request: pb.GetWatcherEventsRequest) -> pb.GetWatcherEventsResponse:
    sandbox, watcher = await box.running(), _watcher(box, request.watcher_id)
    told = [await event(sandbox, watcher.path, change, entries=watcher.entries) for change in watcher.fetch()]
    return pb.GetWatcherEventsResponse(events=[one for one in told if one is not None])


async def _remove_watcher(box: Box, request: pb.RemoveWatcherRequest) -> pb.RemoveWatcherResponse:
    await _watcher(box, request.watcher_id).close()
    del box.watchers[request.watcher_id]
    return pb.RemoveWatcherResponse()
