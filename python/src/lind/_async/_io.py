"""Input and output by asyncio. `_sync/_io.py` has the same with blocking calls; all other files of `_sync` are made of those of `_async`."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TypeVar, Union

from .. import _forks
from .._deadline import Deadline

T = TypeVar("T")
R = TypeVar("R")
SIZE = 256 << 10

AsyncLock = asyncio.Lock
AsyncSemaphore = asyncio.Semaphore


async def within(deadline: Deadline, work: Awaitable[T]) -> T:
    """Waits no longer than that."""
    try:
        left = deadline.left()
    except TimeoutError:
        if inspect.iscoroutine(work):
            work.close()
        raise
    if sys.version_info >= (3, 11):
        # Its wait_for loses a cancellation that comes when the work has just been done.
        async with asyncio.timeout(left):
            return await work
    try:
        return await asyncio.wait_for(work, left)
    except asyncio.TimeoutError:
        raise TimeoutError from None


class AsyncStream:
    """A connection to a unix socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        _forks.register(self)

    @classmethod
    async def connect(cls, path: str, deadline: Deadline) -> AsyncStream:
        """Connects."""
        return cls(*await within(deadline, asyncio.open_unix_connection(path, limit=SIZE)))

    def queue(self, parts: Sequence[bytes | memoryview]) -> None:
        """Has bytes sent meanwhile, as the other side takes them."""
        for part in parts:
            self._writer.write(part)

    async def flush(self, deadline: Deadline) -> None:
        """Waits until most of what was queued has been sent."""
        await within(deadline, self._writer.drain())

    async def receive(self, deadline: Deadline) -> bytes:
        """The next bytes; none at the end."""
        return await within(deadline, self._reader.read(SIZE))

    @property
    def is_idle(self) -> bool:
        """Whether all that was queued has been sent."""
        return self._writer.transport.get_write_buffer_size() == 0

    def close(self) -> None:
        """Closes it at once."""
        self._writer.transport.abort()

    def forked(self) -> None:
        """In a child this is the parent's."""
        socket = self._writer.get_extra_info("socket")
        _forks.blind(-1 if socket is None else socket.fileno())


# The value of a function that may be a coroutine.
Returned = Union[R, Awaitable[R]]  # noqa: UP007


async def call(callback: Callable[[T], Returned[R]], argument: T) -> R:
    """Calls back; waits for it if it is a coroutine. Returns what it does."""
    done = callback(argument)
    return await done if inspect.isawaitable(done) else done


_tasks: set[asyncio.Task[None]] = set()


def spawn(work: Callable[[T], Coroutine[None, None, None]], argument: T) -> None:
    """Has work done meanwhile."""
    task = asyncio.get_running_loop().create_task(work(argument))
    # The loop alone does not hold it.
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def work(function: Callable[[], R]) -> R:
    """Has a thread call a function that waits for the host, and does not leave it before its end."""
    called = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(called)
    except BaseException:
        await asyncio.wait([called])
        raise


async def execute(words: Sequence[str | bytes | os.PathLike[str]], deadline: Deadline, patience: float = 0, cwd: str | None = None) -> tuple[int, str, str]:
    """Runs a program of the host without input. Its exit status, output and errors. If nobody waits any more, it has `patience` seconds to end."""
    # Cancelled in the middle of a start, asyncio would kill the program at once.
    work = asyncio.ensure_future(_execute(words, cwd))
    try:
        return await within(deadline, asyncio.shield(work))
    except BaseException as why:
        await asyncio.wait([work], timeout=0 if isinstance(why, TimeoutError) else patience)
        work.cancel()
        await asyncio.wait([work])
        raise


async def _execute(words: Sequence[str | bytes | os.PathLike[str]], cwd: str | None) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(*words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd)
    try:
        out, errors = await process.communicate()
    except BaseException:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        raise
    return process.returncode or 0, out.decode(errors="replace"), errors.decode(errors="replace")
