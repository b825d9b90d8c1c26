"""Watches whose events clients fetch when they like."""

from __future__ import annotations

import asyncio
from collections import deque

from ... import AsyncWatch, Change
from ...errors import LindError

# How many events wait for a client; the oldest go.
EVENTS = 4096


class Watcher:
    """A watch of a directory, `path`, and the events that nobody has fetched."""

    def __init__(self, path: str, watch: AsyncWatch, *, entries: bool) -> None:
        self.path, self.entries = path, entries
        self._watch = watch
        self._events: deque[Change] = deque(maxlen=EVENTS)
        self._task = asyncio.get_running_loop().create_task(self._collect())

    async def _collect(self) -> None:
        try:
            async for change in self._watch:
                self._events.append(change)
        except LindError:
            # The sandbox has ended, and says so to the next request.
            pass

    def fetch(self) -> list[Change]:
        """The events since the last time."""
        events = list(self._events)
        self._events.clear()
        return events

    async def close(self) -> None:
        """Ends it."""
        self._task.cancel()
        await self._watch.close()
