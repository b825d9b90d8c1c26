"""The sandboxes of a pod. Each begins when it is first asked."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ... import AsyncProcess, AsyncSandbox
from ...errors import LindError
from ..core import Held, Refusal, Sandboxes
from .names import DEFAULT
from .paths import ROOT

# How many commands, watches and writes of a sandbox there may be at once. Its session has 16
# programs for files, which watches take.
COMMANDS, WATCHES = 1000, 8
# How many archives are taken at once from all clients. Each sandbox has one of them at most.
ARCHIVES = 8
# The seconds that commands have to end after SIGTERM when the server does.
GRACE = 3.0


@dataclass
class Running:
    """A command that clients know by a number."""

    process: AsyncProcess
    terminal: bool


@dataclass(eq=False)
class Box:
    """A sandbox, and what clients do in it."""

    id: str
    sandbox: AsyncSandbox
    running: dict[int, Running] = field(default_factory=dict)
    watches: int = 0
    busy: int = 0
    unpacking: set[str] = field(default_factory=set)
    began: float = field(default_factory=time.time)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Counts a watch."""
        if self.watches >= WATCHES:
            raise Refusal(429, f"{WATCHES} directories of this sandbox are watched already")
        self.watches += 1
        try:
            yield
        finally:
            self.watches -= 1

    @contextmanager
    def unpacks(self) -> Iterator[None]:
        """Counts an archive."""
        if self.id in self.unpacking or len(self.unpacking) >= ARCHIVES:
            raise Refusal(429, f"an archive for this sandbox is unpacked already, or {ARCHIVES} for others")
        self.unpacking.add(self.id)
        try:
            yield
        finally:
            self.unpacking.discard(self.id)

    @contextmanager
    def runs(self, process: AsyncProcess, *, terminal: bool) -> Iterator[int]:
        """Gives a command a number while it runs. No number comes twice."""
        number = next(self.numbers)
        self.running[number] = Running(process, terminal)
        try:
            yield number
        finally:
            del self.running[number]

    def find(self, number: int) -> Running:
        """A command that runs."""
        try:
            return self.running[number]
        except KeyError:
            raise Refusal(404, f"no command with the number {number} runs in this sandbox") from None

    async def close(self) -> None:
        """Ends it with all that runs in it."""
        await self.sandbox.close()


@dataclass
class Pod:
    """The sandboxes by their ids, and the options of new ones.

    `idle` is after how many seconds an unused one ends. Their files are in directories below `keep`, or without it in memory, of which `space` is the most.
    """

    options: dict[str, Any]
    most: int
    idle: float | None = None
    keep: Path | None = None
    space: str | None = None
    ready: bool = True
    began: float = field(default_factory=time.monotonic)
    sandboxes: Sandboxes[Box] = field(init=False)
    starts: dict[str, asyncio.Task[Held[Box]]] = field(default_factory=dict)
    unpacking: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.sandboxes = Sandboxes(self.most, self._over)

    @property
    def seconds(self) -> int:
        """How long the server has run."""
        return int(time.monotonic() - self.began)

    async def use(self, id: str) -> Held[Box]:
        """A sandbox, which begins now if it is not there."""
        try:
            return self.sandboxes.get(id)
        except Refusal:
            pass
        start = self.starts.get(id)
        if start is None:
            start = self.starts[id] = asyncio.get_running_loop().create_task(self._start(id))
            start.add_done_callback(lambda done: self._started(id, done))
        # A client that goes away does not end the start for others.
        return await asyncio.shield(start)

    def _started(self, id: str, done: asyncio.Task[Held[Box]]) -> None:
        del self.starts[id]
        if not done.cancelled():
            # Those that wait have it too.
            done.exception()

    async def _start(self, id: str) -> Held[Box]:
        return await self.sandboxes.add(self._make, Box.close, self._time(id), id)

    def _time(self, id: str) -> float | None:
        return None if id == DEFAULT else self.idle

    async def _make(self, id: str) -> Box:
        options = dict(self.options)
        if self.keep is not None:
            folder = self.keep / id
            await asyncio.to_thread(_directory, folder)
            options["volumes"] = {**options["volumes"], os.fspath(folder): f"{ROOT}:rw"}
        elif not any(how.startswith(f"{ROOT}:") for how in options["volumes"].values()):
            options["tmpfs"] = [ROOT if self.space is None else f"{ROOT}:{self.space}"]
        sandbox = AsyncSandbox(**options, workdir=ROOT)
        try:
            await sandbox.open()
        except BaseException:
            await sandbox.close()
            raise
        return Box(id, sandbox, unpacking=self.unpacking)

    async def _over(self, held: Held[Box]) -> None:
        """Ends a sandbox that nobody uses."""
        if held.what.busy:
            self.sandboxes.limit(held, self._time(held.id))
        elif self._is_there(held):
            await self.sandboxes.end(held.id)

    def _is_there(self, held: Held[Box]) -> bool:
        """Whether it has not ended. Another may have its id since."""
        return held in self.sandboxes.all()

    @contextmanager
    def using(self, held: Held[Box]) -> Iterator[Box]:
        """Counts a use, after which the time without one begins."""
        held.what.busy += 1
        try:
            yield held.what
        finally:
            held.what.busy -= 1
            if self.idle is not None and self._is_there(held):
                self.sandboxes.limit(held, self._time(held.id))

    async def drop(self, held: Held[Box]) -> bool:
        """Forgets a sandbox that has ended on its own, so that the next request begins another. False if it is alive."""
        try:
            await held.what.sandbox.stats(timeout=10)
        except LindError:
            if self._is_there(held):
                await self.sandboxes.end(held.id)
            return True
        return False

    async def close(self) -> None:
        """Asks all commands to end, and ends all sandboxes."""
        self.ready = False
        boxes = [held.what for held in self.sandboxes.all()]
        await asyncio.gather(*(_terminate(running.process) for box in boxes for running in list(box.running.values())))
        limit = time.monotonic() + GRACE
        while any(box.running for box in boxes) and time.monotonic() < limit:
            await asyncio.sleep(0.02)
        await self.sandboxes.close()


async def _terminate(process: AsyncProcess) -> None:
    try:
        await process.signal("TERM", group=True, timeout=GRACE)
    except LindError:
        # It has ended, or ends with its sandbox.
        pass


def _directory(folder: Path) -> None:
    """The directory of a sandbox, which is not a link that something has put there."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise Refusal(500, "the directory of this sandbox is a link: remove it")


