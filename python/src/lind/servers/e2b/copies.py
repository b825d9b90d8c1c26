"""The routes by which clients fork sandboxes, and keep them as snapshots of which others are made.

Both keep files, and not what runs. So they are refused while something runs, unless the client asks for files alone.
"""

from __future__ import annotations

import errno
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..._async.copies import AsyncCopy
from ...errors import FileError, LindError
from ..core import Refusal
from .box import Box

# How many forks a request may ask for; the clients of E2B send no more.
FORKS = 20
# The seconds that a copy may take.
SECONDS = 600.0
# The tag of snapshots without one.
TAG = ":default"
NAME = re.compile(r"[a-z0-9][a-z0-9._/-]{0,127}(?::[a-z0-9._-]{1,64})?")
# The program that serves files, which is there while it does.
SERVER = b"session_grate\0files\0"


@dataclass(eq=False)
class Snapshot:
    """The files of a sandbox at some time. `names` are those that clients know it by, beside its id."""

    id: str
    source: str
    names: list[str]
    copy: AsyncCopy

    def about(self) -> dict[str, Any]:
        """It as clients read it."""
        return {"snapshotID": self.id, "names": self.names}


@dataclass
class Snapshots:
    """The snapshots of the server, `most` of them. They end with it."""

    most: int
    reserved: frozenset[str]
    _kept: dict[str, Snapshot] = field(default_factory=dict)
    _begun: int = 0
    _closed: bool = False

    async def make(self, box: Box, name: object, memory: object) -> Snapshot:
        """Keeps the files of a sandbox."""
        if name is not None and (not isinstance(name, str) or not NAME.fullmatch(name)):
            raise Refusal(400, "name: expected small letters, digits, dots, dashes and underscores, and a tag behind a colon")
        if name is not None and name.partition(":")[0] in self.reserved:
            raise Refusal(400, f"name: {name} is a template of the server")
        if memory not in (None, True, False):
            raise Refusal(400, "memory: expected true or false")
        id = _tagged(name or secrets.token_hex(10))
        if len(self._kept) + self._begun >= self.most and id not in self._kept:
            raise Refusal(429, f"there are {self.most} snapshots already: delete some, or start the server with a larger --sandboxes")
        self._begun += 1
        try:
            copy = await taken(box, whole=memory is not False)
        finally:
            self._begun -= 1
        if self._closed:
            copy.close()
            raise Refusal(503, "the server is ending")
        self.delete(id)
        found = self._kept[id] = Snapshot(id, box.id, [id] if name else [], copy)
        return found

    def find(self, template: object) -> Snapshot | None:
        """The snapshot that a client names as a template."""
        return self._kept.get(_tagged(template)) if isinstance(template, str) else None

    def all(self) -> list[Snapshot]:
        """All of them, the newest first."""
        return list(reversed(self._kept.values()))

    def delete(self, id: str) -> bool:
        """Removes one, by its id. False if it is not there."""
        found = self._kept.pop(_tagged(id), None)
        if found is not None:
            found.copy.close()
        return found is not None

    def close(self) -> None:
        """Removes all; no other can be made then."""
        self._closed = True
        for id in list(self._kept):
            self.delete(id)


def _tagged(name: str) -> str:
    return name if ":" in name else name + TAG


async def taken(box: Box, *, whole: bool) -> AsyncCopy:
    """Copies a sandbox. With `whole` nothing may run in it, for that would be missing."""
    async with box.lock:
        if box.paused:
            raise Refusal(409, "the sandbox is paused: resume it first")
        if whole and (box.commands or await _runs(box)):
            raise Refusal(501, "programs run in the sandbox, and sandboxes of Lind are copied without them: end them first; a snapshot of mode "
                               '"filesystem" leaves them out')
        return await AsyncCopy.take(box.sandbox, SECONDS)


async def _runs(box: Box) -> bool:
    """Whether something runs in the sandbox that a command has left."""
    for entry in await box.sandbox.files.list("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            line = await box.sandbox.files.read(f"/proc/{entry.name}/cmdline", count=4096)
        except FileError as why:
            # It may have ended meanwhile.
            if why.errno not in (errno.ENOENT, errno.ESRCH):
                raise
        else:
            if not line.startswith(SERVER):
                return True
    return False


def forks(value: object) -> int:
    """How many forks a request asks for."""
    count = 1 if value is None else value
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= FORKS:
        raise Refusal(400, f"count: expected a number from 1 to {FORKS}")
    return count


async def result(make: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """Makes one fork, and returns the sandbox or the error as clients read them."""
    try:
        return {"sandbox": await make()}
    except Refusal as why:
        return {"error": {"code": why.status, "message": str(why)}}
    except LindError as why:
        return {"error": {"code": 500, "message": str(why)}}
