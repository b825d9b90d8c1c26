"""Commands that several clients may follow.

The session of a sandbox hands output to one reader, which is the server; it hands that on to each client that follows the command. A client that does not
read has the command wait, as a full pipe would, and a command that nobody follows goes on: what it writes then is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ... import AsyncProcess, Output, Result
from ...errors import CommandNotStarted, LindError

# How many pieces of output wait for a client. The session makes none of more than 64 KiB.
PIECES = 16


@dataclass(frozen=True)
class Left:
    """The command cannot be followed any more, and why."""

    why: str
    not_started: bool = False


Event = Output | Result | Left


class Command:
    """A command that runs, and those who follow it."""

    def __init__(self, process: AsyncProcess, words: list[str], envs: dict[str, str], cwd: str | None, tag: str | None, *, terminal: bool) -> None:
        self.process, self.words, self.envs, self.cwd, self.tag, self.terminal = process, words, envs, cwd, tag, terminal
        self._followers: list[asyncio.Queue[Event]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Its number for clients."""
        return self.process.pid or self.process.id

    def begin(self, gone: Callable[[Command], object]) -> None:
        """Has its output handed on. `gone` is called when it has ended."""
        self._task = asyncio.get_running_loop().create_task(self._hand_on(gone))

    async def _hand_on(self, gone: Callable[[Command], object]) -> None:
        last: Event
        try:
            while (output := await self.process.read()) is not None:
                await self._tell(output)
            last = await self.process.wait()
        except CommandNotStarted as why:
            last = Left(str(why), not_started=True)
        except LindError as why:
            last = Left(str(why))
        finally:
            gone(self)
            await self.process.close()
        await self._tell(last)

    async def _tell(self, event: Event) -> None:
        for follower in list(self._followers):
            await follower.put(event)

    def leave(self, why: str, *, ends: bool = False) -> None:
        """Ends the following of all clients. The command goes on, unless it `ends`."""
        for follower in self._followers:
            _empty(follower)
            follower.put_nowait(Left(why))
        if ends and self._task is not None:
            self._task.cancel()

    def follow(self) -> Follower:
        """Follows it from now on. The follower must be closed."""
        mine: asyncio.Queue[Event] = asyncio.Queue(PIECES)
        self._followers.append(mine)
        return Follower(mine, self._followers)


class Follower:
    """A client that follows a command."""

    def __init__(self, mine: asyncio.Queue[Event], among: list[asyncio.Queue[Event]]) -> None:
        self._mine, self._among = mine, among

    async def next(self, silence: float) -> Event | None:
        """The next event; the last one is not output. None where nothing happens for so many seconds."""
        if not self._mine.empty():
            return self._mine.get_nowait()
        try:
            return await asyncio.wait_for(self._mine.get(), silence)
        except asyncio.TimeoutError:
            return None

    def close(self) -> None:
        """Follows it no more."""
        if self._mine in self._among:
            self._among.remove(self._mine)
        # The command goes on if it has waited for room.
        _empty(self._mine)


def _empty(queue: asyncio.Queue[Event]) -> None:
    while not queue.empty():
        queue.get_nowait()
