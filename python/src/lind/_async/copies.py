"""Copies of sandboxes: their files and rules at some point, of which other sandboxes are made."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from .._deadline import Deadline
from .._kept import Folder, State, is_below, kept_file, memory, mounts, new_file, with_state
from .._messages import text
from .._options import Options, guest_of, keywords
from ..errors import RequestError, SandboxError, TimeoutExpired, shown
from ..results import Policy
from ._io import work
from .files import AsyncFiles
from .session import AsyncSession

if TYPE_CHECKING:
    from .sandbox import AsyncSandbox

S = TypeVar("S", bound="AsyncSandbox")
# The most bytes that the tars of the files in memory may have.
MOST = 1 << 30
# How rules of the start are named to take them back.
RULES = {"allow": "", "grant": "write=", "reveal": "read="}


@dataclass(frozen=True)
class Piece:
    """Some files in memory: the directory `path`, with `mode` where it has to be made, and the tar of what is in it; or a link."""

    path: str
    tar: str = ""
    mode: int | None = None
    target: str | None = None


class AsyncCopy:
    """A copy, which is there until it is closed."""

    def __init__(self, options: Options, place: str | None, folder: Folder, policy: Policy) -> None:
        self._options, self._place, self._folder, self._policy = options, place, folder, policy
        self._taken = time.monotonic()
        self._states: dict[str, State] = {}
        self._pieces: list[Piece] = []
        self._left = MOST

    @classmethod
    async def take(cls, sandbox: AsyncSandbox, seconds: float) -> AsyncCopy:
        """Copies a sandbox, within so many seconds."""
        session, deadline = sandbox._session, Deadline(seconds)
        await session.open()
        if session.started.owner == 0:
            raise SandboxError("the sandbox was connected to, and its options are not known here: it is forked by the program that has started it")
        policy = await sandbox.policy(seconds)
        copy = cls(session.options.at(session.place), session.place, await work(Folder), policy)
        try:
            await copy._take_states(session, deadline)
            await copy._take_memory(sandbox.files, deadline)
        except BaseException as why:
            copy.close()
            if isinstance(why, TimeoutError):
                raise TimeoutExpired("copy", seconds) from None
            if isinstance(why, OSError):
                raise SandboxError(f"the sandbox cannot be forked: {why}") from why
            raise
        return copy

    def close(self) -> None:
        """Removes it."""
        self._folder.close()

    async def _take_states(self, session: AsyncSession, deadline: Deadline) -> None:
        """Copies the states of all overlays, of one moment: meanwhile calls for their files wait."""
        overlays = (await session.ask(deadline.left(), do="hello")).keys["overlays"]
        volumes = {(os.path.realpath(host), guest_of(host, how)): host for host, how in self._volumes().items()}
        held, found = [], []
        try:
            # The grate of a later one needs those before it to write what it has in memory.
            for number, overlay in reversed([*enumerate(overlays)]):
                host, guest = text(overlay["volume"]), text(overlay["guest"])
                if (host, guest) not in volumes:
                    raise SandboxError(f"the sandbox cannot be forked: its overlay of {shown(host)} is not one of `volumes`")
                held.append(await session.connect(deadline))
                keys = (await held[-1].ask(deadline, do="hold", volume=overlay["guest"])).keys
                if text(keys["guest"]) != guest:
                    raise SandboxError(f"the sandbox cannot be forked: {shown(guest)} is also the directory of another overlay")
                state, to = State.read(text(keys["state"])), str(self._folder.path / f"{number}.db")
                found.append((volumes[host, guest], state, to))
            for host, state, to in found:
                self._states[host] = await work(partial(state.copy, to, deadline))
        finally:
            # The session takes a state back when its connection closes.
            for connection in held:
                connection.close()

    def _volumes(self) -> dict[str, str]:
        return dict(self._options.pairs())

    async def _take_memory(self, files: AsyncFiles, deadline: Deadline) -> None:
        """Copies what is in memory."""
        found = mounts(os.fsdecode(await files.read("/proc/mounts", timeout=deadline.left())))
        volumes = {guest_of(host, how) for host, how in self._volumes().items()}
        for path in memory(found, volumes, self._options.tmpfs):
            await self._pack(files, path, found, deadline)

    async def _pack(self, files: AsyncFiles, path: str, found: dict[str, str], deadline: Deadline) -> None:
        """Packs a directory, but for what is mounted in it."""
        if not _holds(path, found):
            await self._tar(files, path, path, None, deadline)
            return
        for entry in await files.list(path, timeout=deadline.left()):
            inner = f"{path}/{entry.name}"
            if inner in found:
                continue
            if _holds(inner, found):
                await self._pack(files, inner, found, deadline)
            elif entry.target is not None:
                self._pieces.append(Piece(inner, target=entry.target))
            elif entry.is_dir:
                await self._tar(files, inner, inner, entry.mode & 0o777, deadline)
            elif entry.is_file:
                await self._tar(files, inner, path, None, deadline)

    async def _tar(self, files: AsyncFiles, path: str, below: str, mode: int | None, deadline: Deadline) -> None:
        tar = str(self._folder.path / f"{len(self._pieces)}.tar")
        with new_file(tar) as to:
            await files.tar(path, to, count=self._left, timeout=deadline.left())
            self._left -= to.tell()
        self._pieces.append(Piece(below, tar, mode))

    async def start(self, make: Callable[..., S], seconds: float, *, last: bool = False) -> S:
        """Makes a sandbox of it. With `last`, this copy becomes part of it."""
        folder, states = await self._own(last, Deadline(seconds))
        volumes = self._volumes()
        volumes.update((host, with_state(volumes[host], state)) for host, state in states.items())
        sandbox = make(**{**keywords(self._options), "volumes": volumes})
        sandbox._session.begins(self._place, folder)
        try:
            await sandbox.open()
            await self._fill(sandbox.files, Deadline(seconds))
            await self._rule(sandbox)
            if last:
                self._drop_tars()
        except BaseException as why:
            await sandbox.close()
            if isinstance(why, TimeoutError):
                raise TimeoutExpired("copy", seconds) from None
            if isinstance(why, OSError):
                raise SandboxError(f"the files of the fork cannot be made: {why}") from why
            raise
        return sandbox

    async def _own(self, last: bool, deadline: Deadline) -> tuple[Folder | None, dict[str, State]]:
        """The states of a new sandbox, and the directory in which they are."""
        if last:
            return self._folder, self._states
        if not self._states:
            return None, {}
        folder = await work(Folder)
        try:
            states = {}
            for host, state in self._states.items():
                to = str(folder.path / os.path.basename(state.path.rstrip("/")))
                states[host] = await work(partial(state.copy, to, deadline))
        except BaseException as why:
            folder.close()
            if isinstance(why, OSError) and not isinstance(why, TimeoutError):
                raise SandboxError(f"the copy cannot be used: {why}") from why
            raise
        return folder, states

    async def _fill(self, files: AsyncFiles, deadline: Deadline) -> None:
        """Makes the files in memory. Nothing runs in the sandbox yet, so no link leads elsewhere."""
        for piece in self._pieces:
            if piece.target is not None:
                await files.symlink(piece.path, piece.target, timeout=deadline.left())
                continue
            if piece.mode is not None:
                await files.mkdir(piece.path, mode=piece.mode, timeout=deadline.left())
            with kept_file(piece.tar) as source:
                await files.untar(piece.path, source, timeout=deadline.left())

    def _drop_tars(self) -> None:
        for piece in self._pieces:
            if piece.tar:
                os.unlink(piece.tar)
        self._pieces = []

    async def _rule(self, sandbox: AsyncSandbox) -> None:
        """Has the rules hold that held in the other."""
        for grate, option in (await sandbox.policy()).start:
            rule = _taken_back(grate, option)
            if rule is not None and (grate, option) not in self._policy.start:
                try:
                    await sandbox.revoke(rule)
                except RequestError as why:
                    raise SandboxError(f"the rule {option} was taken back in the sandbox, and cannot be in its fork: {why}") from None
        passed = time.monotonic() - self._taken
        for added in reversed(self._policy.rules):
            left = None if added.seconds is None else added.seconds - passed
            if left is not None and left <= 0:
                continue
            given: dict[str, Any] = {"once": added.once} if added.allow else {}
            await (sandbox.allow if added.allow else sandbox.deny)(added.rule, seconds=left, **given)


def _holds(path: str, found: dict[str, str]) -> bool:
    """Whether something is mounted in a directory."""
    return any(is_below(other, path) for other in found)


def _taken_back(grate: str, option: str) -> str | None:
    """The rule that an option of the start is, if such rules are taken back."""
    name, _, value = option.partition("=")
    if grate == "resource":
        return None if name == "use" else option
    return RULES[name] + value if name in RULES else None
