"""A sandbox as clients of E2B know it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ... import AsyncSandbox
from ...errors import LindError
from ..core import Refusal, is_same
from .commands import Command
from .watchers import Watcher

# The home of the user, whom clients call "user".
HOME = "/home/user"
# The most bytes that all that clients say about one sandbox may have.
SAID = 64 << 10


@dataclass(eq=False)
class Box:
    """A sandbox, what was said about it, and what runs in it. `token` is the secret of those who may use it."""

    id: str
    template: str
    sandbox: AsyncSandbox
    metadata: dict[str, str]
    envs: dict[str, str]
    rules: list[int]
    pauses: bool = False
    resumes: bool = False
    network: dict[str, Any] = field(default_factory=dict)
    internet: bool | None = None
    paused: bool = False
    token: str = field(default_factory=lambda: secrets.token_hex(20), repr=False)
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    commands: dict[int, Command] = field(default_factory=dict)
    watchers: dict[str, Watcher] = field(default_factory=dict)
    measured: tuple[float, float] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def twin(self, id: str, sandbox: AsyncSandbox, rules: list[int]) -> Box:
        """A fork, of which the same was said, with a token of its own."""
        return Box(id, self.template, sandbox, dict(self.metadata), dict(self.envs), rules, pauses=self.pauses, resumes=self.resumes,
                   network=dict(self.network), internet=self.internet)

    async def close(self) -> None:
        """Ends it with all that runs in it."""
        for command in list(self.commands.values()):
            command.leave("the sandbox has ended")
        for watcher in list(self.watchers.values()):
            await watcher.close()
        await self.sandbox.close()

    async def pause(self, keeps_memory: bool) -> None:
        """Stops all commands, or kills them. Files and the memory of stopped commands stay where they are."""
        async with self.lock:
            if self.paused:
                raise Refusal(409, "the sandbox is paused already")
            await self._tell("STOP" if keeps_memory else "KILL")
            self.paused = True
            for command in list(self.commands.values()):
                command.leave("the sandbox was paused", ends=not keeps_memory)

    async def resume(self, restores: bool = True) -> None:
        """Lets them go on, or kills them."""
        async with self.lock:
            if self.paused:
                if not restores:
                    await self._tell("KILL")
                await self._tell("CONT")
                self.paused = False

    async def _tell(self, signal: str) -> None:
        for command in list(self.commands.values()):
            await command.process.signal(signal, group=True)

    async def running(self) -> AsyncSandbox:
        """The sandbox, if it runs."""
        if self.paused and self.resumes:
            await self.resume()
        if self.paused:
            raise Refusal(502, f"sandbox {self.id} was not found: it is paused")
        return self.sandbox

    async def metric(self) -> dict[str, Any]:
        """The amounts that it uses, as clients read them."""
        stats = await self.sandbox.stats()
        now, cpu = time.monotonic(), stats.cpu.used or 0.0
        before, had = self.measured or (now - max(stats.seconds, 0.001), 0.0)
        self.measured = now, cpu
        return {
            "timestamp": datetime.now(timezone.utc).isoformat(),
            "timestampUnix": int(time.time()),
            "cpuCount": 1,
            "cpuUsedPct": round(100 * (cpu - had) / max(now - before, 0.001), 1),
            "memUsed": int(stats.resident or 0),
            "memTotal": int(stats.memory.limit or 0),
            "memCache": 0,
            "diskUsed": int(stats.disk.used or 0),
            "diskTotal": int(stats.disk.limit or 0),
        }

    def signature(self, path: str, operation: str, user: str, expires: str | None) -> str:
        """The signature of a URL by which a file is read or written without the token."""
        said = f"{path}:{operation}:{user}:{self.token}" + (f":{expires}" if expires is not None else "")
        return "v1_" + base64.b64encode(hashlib.sha256(said.encode("utf-8", "surrogatepass")).digest()).rstrip(b"=").decode()

    def signed(self, operation: str, query: Mapping[str, str]) -> bool:
        """Whether a URL is signed, and its time is not over."""
        expires = query.get("signature_expiration")
        if expires is not None and not (expires.isascii() and expires.isdigit() and len(expires) < 12 and int(expires) >= time.time()):
            return False
        return is_same(query.get("signature"), self.signature(query.get("path", ""), operation, query.get("username", ""), expires))


def texts(value: object, what: str) -> dict[str, str]:
    """An object of texts in a request."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) and isinstance(text, str) for key, text in value.items()):
        raise Refusal(400, f"{what}: expected an object of texts")
    if sum(len(key) + len(text) for key, text in value.items()) > SAID:
        raise Refusal(400, f"{what}: more than {SAID} characters")
    return dict(value)


def number(value: object, what: str) -> float:
    """A number of seconds in a request."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 10**9:
        raise Refusal(400, f"{what}: expected a number of seconds")
    return float(value)


async def alive(box: Box) -> bool:
    """Whether its session answers."""
    try:
        await box.sandbox.stats(timeout=10)
    except LindError:
        return False
    return True
