"""A command that runs in a sandbox."""

from __future__ import annotations

import signal as signals
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._deadline import Deadline
from .._messages import Message, ProtocolError, pieces
from .._reading import read_end, read_output
from ..errors import CommandNotStarted, RequestError, SandboxError, TimeoutExpired
from ..results import Output, Result
from ._io import call
from .connection import AsyncConnection
from .session import AsyncSession

if TYPE_CHECKING:
    from typing_extensions import Self

# How much output `wait` keeps, unless the command has a `max_output`.
KEPT = 16 << 20


class AsyncProcess:
    """A command that runs. It ends when it is closed, unless it was detached.

    Its output comes in pieces, as it is written; `wait` collects what has not been read.
    """

    def __init__(self, session: AsyncSession, connection: AsyncConnection, command: str, most: int | None = None) -> None:
        self.command = command
        self.id = 0
        self.pid: int | None = None
        self.result: Result | None = None
        self.stopped: int | None = None
        self._session = session
        self._connection: AsyncConnection | None = connection
        self._most = KEPT if most is None else most
        self._unread: deque[Output] = deque()
        self._kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._at = 0
        self._dropped = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self.command}>"

    async def begin(self, deadline: Deadline) -> None:
        """Waits until it has started, or is attached to."""
        message = await self._session.await_message(self._following(), deadline)
        begun = message.keys.get("started") or message.keys.get("attached")
        if not isinstance(begun, dict):
            raise SandboxError(f"the session does not keep to the protocol: {sorted(message.keys)} instead of a start")
        self.id, self.pid, self._at = begun["id"], begun.get("pid"), begun.get("at", 0)

    async def read(self, timeout: float | None = None) -> Output | None:
        """The next piece of output, or None when the command has ended. Raises TimeoutExpired if none has come within so many seconds."""
        deadline = Deadline(timeout)
        while not self._unread:
            if self.result is not None:
                return None
            try:
                await self._advance(deadline)
            except TimeoutExpired:
                raise
            except TimeoutError:
                raise TimeoutExpired(self.command, timeout or 0) from None
        return self._unread.popleft()

    def __aiter__(self) -> AsyncIterator[Output]:
        return self

    async def __anext__(self) -> Output:
        output = await self.read()
        if output is None:
            raise StopAsyncIteration
        return output

    async def wait(
        self, timeout: float | None = None, *, on_stdout: Callable[[bytes], object] | None = None, on_stderr: Callable[[bytes], object] | None = None
    ) -> Result:
        """Waits for the end. Raises TimeoutExpired with the output so far if that has not come within so many seconds; the command goes on then.

        The output that comes meanwhile is collected, and handed to the callbacks. Output of a terminal counts as standard output.
        """
        deadline = Deadline(timeout)
        try:
            while self.result is None or self._unread:
                if not self._unread:
                    await self._advance(deadline)
                    continue
                output = self._unread.popleft()
                self._keep(output)
                callback = on_stderr if output.stream == "stderr" else on_stdout
                if callback is not None:
                    await call(callback, output.data)
        except TimeoutExpired:
            raise
        except TimeoutError:
            raise TimeoutExpired(self.command, timeout or 0, *self._collected()) from None
        self.result = self._whole(self.result)
        return self.result

    async def write(self, data: bytes | str, timeout: float | None = None) -> None:
        """Writes to the command's standard input, or types at its terminal. Waits until there is room."""
        raw = data.encode() if isinstance(data, str) else data
        for piece in pieces(raw):
            await self._session.ask(timeout, piece, do="input", id=self.id)

    async def close_stdin(self, timeout: float | None = None) -> None:
        """Ends the command's standard input. At a terminal it is ^D."""
        await self._session.ask(timeout, do="input", id=self.id, close=True)

    async def resize(self, columns: int, rows: int, timeout: float | None = None) -> None:
        """Changes the size of its terminal."""
        await self._session.ask(timeout, do="resize", id=self.id, size=[rows, columns])

    async def signal(self, signal: int | str, *, group: bool = False, timeout: float | None = None) -> None:
        """Sends a signal, by its number or its name. With `group` it goes to the command's process group, or to those in front on its terminal.
        Does nothing if the command has ended."""
        if self.result is not None:
            return
        number = int(signal) if isinstance(signal, int) else signal
        try:
            await self._session.ask(timeout, do="signal", id=self.id, signal=number, group=group)
        except RequestError:
            if not await self._has_ended(timeout):
                raise

    async def terminate(self, timeout: float | None = None) -> None:
        """Asks the command to end, by SIGTERM."""
        await self.signal(signals.SIGTERM, timeout=timeout)

    async def kill(self, timeout: float | None = None) -> None:
        """Kills the command, by SIGKILL."""
        await self.signal(signals.SIGKILL, timeout=timeout)

    async def detach(self, timeout: float | None = None) -> int:
        """Lets the command go on without this object, and returns its number for `attach`. Output that has come can still be read here."""
        connection, deadline = self._connection, Deadline(self._session.options.request_timeout if timeout is None else timeout)
        if connection is None or self.result is not None:
            return self.id
        try:
            await connection.send(deadline, do="detach")
            while self._connection is not None:
                await self._advance(deadline)
        except TimeoutError:
            self._lose()
            raise TimeoutExpired("detach", deadline.seconds or 0) from None
        return self.id

    @property
    def at(self) -> int:
        """How many bytes of output have come. `attach` takes it as `start`."""
        return self._at

    async def close(self) -> None:
        """Kills the command, unless it has ended or was detached."""
        self._lose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    def feed(self, data: bytes | memoryview) -> None:
        """Has this written to the standard input while the output is read, and ends it then."""
        for piece in pieces(data):
            self._following().queue(piece, do="input")
        self._following().queue(do="input", close=True)

    def _following(self) -> AsyncConnection:
        if self._connection is None:
            raise SandboxError(f"{self.command}: nobody follows this command any more: use `attach`")
        return self._connection

    async def _has_ended(self, timeout: float | None) -> bool:
        """Whether the session says that it has ended."""
        message = await self._session.ask(timeout, do="list")
        return not any(command.get("id") == self.id and "ended" not in command for command in message.keys["commands"])

    async def _advance(self, deadline: Deadline) -> None:
        """Takes the next event."""
        connection = self._following()
        try:
            self._hear(await self._session.await_message(connection, deadline))
        except RequestError as why:
            self._lose()
            raise CommandNotStarted(str(why), why.status, why.errno) from None
        except (SandboxError, ProtocolError, KeyError):
            self._lose()
            raise

    def _hear(self, message: Message) -> None:
        keys: dict[str, Any] = message.keys
        if "output" in keys:
            output = read_output(keys, message.body)
            self._at = output.at + len(output.data)
            self._unread.append(output)
        elif "ended" in keys:
            self.result = read_end(keys["ended"], note=keys.get("note"))
            self._leave()
        elif "detached" in keys:
            self._leave()
        elif "stopped" in keys:
            self.stopped = keys["stopped"]
        elif "continued" in keys:
            self.stopped = None

    def _keep(self, output: Output) -> None:
        room = self._most - sum(map(len, self._kept.values()))
        self._kept["stderr" if output.stream == "stderr" else "stdout"] += output.data[: max(room, 0)]
        self._dropped += max(len(output.data) - max(room, 0), 0)

    def _collected(self) -> tuple[bytes, bytes]:
        return bytes(self._kept["stdout"]), bytes(self._kept["stderr"])

    def _whole(self, result: Result) -> Result:
        stdout, stderr = self._collected()
        return replace(result, stdout_bytes=stdout, stderr_bytes=stderr, dropped=result.dropped + self._dropped)

    def _leave(self) -> None:
        """Gives the connection back."""
        if self._connection is not None:
            self._session.keep(self._connection)
            self._connection = None

    def _lose(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
