"""Commands of OpenAI's SDK that go on, with or without a terminal."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from agents.sandbox.errors import ExecTransportError
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.pty_output import collect_pty_output
from agents.sandbox.session.pty_types import (
    PTY_PROCESSES_MAX,
    PtyExecUpdate,
    allocate_pty_process_id,
    clamp_pty_yield_time_ms,
    process_id_to_prune_from_meta,
    resolve_pty_write_yield_time_ms,
)
from agents.sandbox.types import User

import lind

SIZE = (80, 24)
# Output of a command that nobody reads is kept up to this many bytes; the oldest goes first.
KEPT = 4 << 20


@dataclass
class Running:
    """A command that goes on."""

    process: lind.AsyncProcess
    tty: bool
    used: float = field(default_factory=time.monotonic)
    chunks: deque[bytes] = field(default_factory=deque)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    notify: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    reader: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Takes the output as it comes, until the command ends."""
        kept = 0
        try:
            async for output in self.process:
                async with self.lock:
                    kept = sum(map(len, self.chunks)) + len(output.data)
                    while self.chunks and kept > KEPT:
                        kept -= len(self.chunks.popleft())
                    self.chunks.append(output.data)
                self.notify.set()
        finally:
            self.ended.set()
            self.notify.set()

    async def close(self) -> None:
        """Ends it."""
        await self.process.close()
        if self.reader is not None:
            self.reader.cancel()
            await asyncio.gather(self.reader, return_exceptions=True)


class TerminalSession(BaseSandboxSession):
    """A session whose commands can go on."""

    sandbox: lind.AsyncSandbox

    def __init__(self) -> None:
        self._running_commands: dict[int, Running] = {}

    def supports_pty(self) -> bool:
        """It does."""
        return True

    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: str | User | None = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        """Starts a command, and returns what it has written by then."""
        words = self._prepare_exec_command(*command, shell=shell, user=user)
        try:
            process = await self.sandbox.start(words, pty=SIZE if tty else None, stdin=tty, timeout=timeout, cwd=self.state.manifest.root,
                                               env=await self.state.manifest.environment.resolve())
        except lind.LindError as why:
            raise ExecTransportError(command=command, cause=why, message=str(why)) from why
        running = Running(process, tty)
        running.reader = asyncio.create_task(running.read())
        number = allocate_pty_process_id(set(self._running_commands))
        await self._make_room()
        self._running_commands[number] = running
        milliseconds = 10_000 if yield_time_s is None else int(yield_time_s * 1000)
        return await self._update(number, running, clamp_pty_yield_time_ms(milliseconds), max_output_tokens)

    async def pty_write_stdin(
        self, *, session_id: int, chars: str, yield_time_s: float | None = None, max_output_tokens: int | None = None
    ) -> PtyExecUpdate:
        """Types at a command's terminal, and returns what it has written since."""
        running = self._resolve_pty_session_entry(pty_processes=self._running_commands, session_id=session_id)
        running.used = time.monotonic()
        if chars:
            if not running.tty:
                raise RuntimeError("stdin is not available for this process")
            try:
                await running.process.write(chars)
            except lind.RequestError:
                # It has ended meanwhile, which the update says.
                pass
            await asyncio.sleep(0.1)
        milliseconds = resolve_pty_write_yield_time_ms(yield_time_ms=250 if yield_time_s is None else int(yield_time_s * 1000), input_empty=not chars)
        return await self._update(session_id, running, milliseconds, max_output_tokens)

    async def pty_terminate_all(self) -> None:
        """Ends all of them."""
        while self._running_commands:
            await self._running_commands.popitem()[1].close()

    async def _update(self, number: int, running: Running, milliseconds: int, tokens: int | None) -> PtyExecUpdate:
        output, count, ended = await collect_pty_output(
            output_chunks=running.chunks, output_lock=running.lock, output_notify=running.notify, is_done=running.ended.is_set,
            yield_time_ms=milliseconds, max_output_tokens=tokens)
        if not ended:
            return PtyExecUpdate(process_id=number, output=output, exit_code=None, original_token_count=count)
        self._running_commands.pop(number, None)
        await running.close()
        result = running.process.result
        return PtyExecUpdate(process_id=None, output=output, exit_code=result.exit_code if result else 1, original_token_count=count)

    async def _make_room(self) -> None:
        """Ends a command that was not used for long if there are too many."""
        if len(self._running_commands) < PTY_PROCESSES_MAX:
            return
        number = process_id_to_prune_from_meta([(number, running.used, running.ended.is_set()) for number, running in self._running_commands.items()])
        if number is not None:
            await self._running_commands.pop(number).close()
