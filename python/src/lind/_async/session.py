"""The session that a sandbox is: its start, its end, and connections to it."""

from __future__ import annotations

import os
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from .. import _forks
from .._deadline import Deadline
from .._images import find
from .._kept import Folder
from .._messages import Message
from .._options import Options
from .._reading import read_sessions
from .._runtime import Started, forget, give_up, new_name, program, why
from ..errors import LindError, RequestError, SandboxError, TimeoutExpired, shown
from ..results import SessionInfo
from ._io import AsyncLock, AsyncSemaphore, execute, work
from .connection import AsyncConnection

# How many connections wait for the next request.
SPARE = 4
# How many requests for files may be carried out at once: a session has 16 programs for them, and
# watches take some.
FILES = 8
# The seconds after which a silent session is asked whether it is there, and those that it has to
# answer.
SILENCE, ANSWER = 30.0, 10.0
# The seconds that a start has to end which nobody waits for any more. A session is told to end when
# it has started: earlier it may miss that.
PATIENCE = 10.0


async def sessions(timeout: float = 60.0) -> list[SessionInfo]:
    """The sessions of this user that run.

    >>> async with AsyncSandbox() as sandbox:
    ...     found = [session.name for session in await sessions()]
    >>> sandbox.name in found
    True
    """
    try:
        status, said, errors = await execute([str(program()), "session", "ls", "--json"], Deadline(timeout))
    except TimeoutError:
        raise TimeoutExpired("session ls", timeout) from None
    if status != 0:
        raise SandboxError(f"sessions cannot be listed: {why(errors)}")
    return read_sessions(said)


class AsyncSession:
    """A session of `lind-boot`, started when it is first used."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.files = AsyncSemaphore(FILES)
        self._started: Started | None = None
        self._lock = AsyncLock()
        self._spare: list[AsyncConnection] = []
        self._closed = False
        self._end: Callable[[], object] | None = None
        # The directory in which it is started, which relative paths of its options begin at.
        self.place: str | None = None
        self._kept: Folder | None = None
        _forks.register(self)

    def begins(self, place: str | None, kept: Folder | None) -> None:
        """Says before its start where it is started, and what is removed with it."""
        self.place, self._kept = place, kept

    @property
    def started(self) -> Started:
        """Where it is."""
        if self._started is None:
            raise SandboxError("the sandbox has not been started")
        return self._started

    async def open(self) -> None:
        """Starts it, unless it has been started."""
        if self._started is not None and not self._closed:
            return
        async with self._lock:
            if self._closed:
                raise SandboxError("the sandbox is closed")
            if self._started is None:
                self._started = await self._start()
                self._end = weakref.finalize(self, self._started.stop)

    async def _start(self) -> Started:
        seconds, name = self.options.start_timeout, new_name()
        deadline, here = Deadline(seconds), self._here()
        try:
            image = await work(partial(find, self.options.image, deadline))
            words = [os.path.abspath(program()), "session", "start", f"--die-with-parent={os.getpid()}", "--json", *([f"--image={image}"] if image else []), *self.options.words(), name]
            status, said, errors = await execute(words, deadline, PATIENCE, here)
        except TimeoutError:
            give_up(name)
            raise SandboxError(f"the sandbox has not started within {seconds:g} seconds") from None
        except BaseException:
            give_up(name)
            raise
        if status != 0:
            forget(name)
            raise SandboxError(f"the sandbox cannot be started: {why(errors)}")
        return Started.read(said)

    def _here(self) -> str | None:
        """The directory to start in; None for the current one."""
        if self.place is None:
            with suppress(OSError):
                self.place = os.getcwd()
            return None
        if not os.path.isdir(self.place):
            raise SandboxError(f"the sandbox cannot be started: {shown(self.place)} is not there any more, in which the one was started that is forked")
        return self.place

    async def find(self, name: str) -> None:
        """Connects to one that runs already, instead of a start."""
        found = [about for about in await sessions(self.options.request_timeout) if about.name == name]
        if not found:
            raise SandboxError(f"no session {shown(name)} runs: `lind.sessions()` lists those of this user")
        self._started = Started.found(found[0])
        try:
            await self.ask(None, do="hello")
        except RequestError as why:
            raise SandboxError(f"session {shown(name)}: {why}") from None

    async def close(self, timeout: float, stop: bool = False) -> None:
        """Ends it if this process has started it, or with `stop`. Commands that still run are killed."""
        async with self._lock:
            started, was_closed = self._started, self._closed
            self._closed = True
            if started is None or was_closed:
                self._forget()
                return
            try:
                if started.is_own or stop:
                    await self._stop(Deadline(timeout))
            except (LindError, OSError):
                # It has ended already, or will with this process.
                pass
            finally:
                while self._spare:
                    self._spare.pop().close()
                if self._end is not None:
                    self._end()
                self._forget()

    def _forget(self) -> None:
        if self._kept is not None:
            self._kept.close()

    async def _stop(self, deadline: Deadline) -> None:
        async with self.connection(deadline) as connection:
            await connection.ask(deadline, do="signal", signal="KILL", all=True)
            await connection.ask(deadline, do="stop")
            while True:
                # It closes the connection when all has ended.
                await connection.receive(deadline)

    @asynccontextmanager
    async def connection(self, deadline: Deadline) -> AsyncIterator[AsyncConnection]:
        """A connection for one request, which is kept for the next unless something fails."""
        connection = await self.connect(deadline)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self.keep(connection)

    async def connect(self, deadline: Deadline) -> AsyncConnection:
        """A connection."""
        try:
            return self._spare.pop()
        except IndexError:
            pass
        return await AsyncConnection.open(self.started.socket, deadline)

    def keep(self, connection: AsyncConnection) -> None:
        """Keeps a connection that carries no request."""
        if connection.is_idle and len(self._spare) < SPARE and not self._closed:
            self._spare.append(connection)
        else:
            connection.close()

    async def ask(self, timeout: float | None, body: bytes | memoryview = b"", **keys: Any) -> Message:
        """The answer to a request that has one."""
        await self.open()
        seconds = self.options.request_timeout if timeout is None else timeout
        try:
            deadline = Deadline(seconds)
            async with self.connection(deadline) as connection:
                return await connection.ask(deadline, body, **keys)
        except TimeoutExpired:
            raise
        except TimeoutError:
            raise TimeoutExpired(str(keys["do"]), seconds) from None

    async def await_message(self, connection: AsyncConnection, deadline: Deadline) -> Message:
        """The next message of a connection. Raises SandboxError if the session does not answer any more."""
        while True:
            try:
                return await connection.receive(deadline.within(SILENCE))
            except TimeoutExpired:
                raise
            except TimeoutError:
                deadline.left()
            await self._look()

    async def _look(self) -> None:
        """Asks the session whether it is there."""
        try:
            deadline = Deadline(ANSWER)
            async with self.connection(deadline) as other:
                await other.ask(deadline, do="hello")
        except TimeoutError:
            raise SandboxError("the session does not answer") from None

    def forked(self) -> None:
        """A child has its own connections, and does not end the session."""
        self._spare = []
        self._lock = AsyncLock()
        self.files = AsyncSemaphore(FILES)
