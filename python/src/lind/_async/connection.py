"""A connection to a session: one request after the other."""

from __future__ import annotations

from typing import Any

from .._deadline import Deadline
from .._messages import Decoder, Message, ProtocolError, encode
from ..errors import RequestError, SandboxError, refusal
from ._io import AsyncStream

# The status of a command line that is too long, as of a program that cannot be executed.
TOO_LONG = 126


class AsyncConnection:
    """A connection. After an error in the middle of a request, it must be closed."""

    def __init__(self, stream: AsyncStream) -> None:
        self._stream = stream
        self._decoder = Decoder()

    @classmethod
    async def open(cls, path: str, deadline: Deadline) -> AsyncConnection:
        """Connects to a session."""
        try:
            return cls(await AsyncStream.connect(path, deadline))
        except (FileNotFoundError, ConnectionError) as why:
            raise SandboxError("the sandbox has ended") from why

    def queue(self, body: bytes | memoryview = b"", **keys: Any) -> None:
        """Has a message sent while others are received."""
        try:
            parts = encode(keys, body)
        except ProtocolError as why:
            raise RequestError(str(why), TOO_LONG, "E2BIG") from None
        self._stream.queue(parts)

    async def send(self, deadline: Deadline, body: bytes | memoryview = b"", **keys: Any) -> None:
        """Sends a message."""
        self.queue(body, **keys)
        try:
            await self._stream.flush(deadline)
        except ConnectionError as why:
            raise SandboxError("the sandbox has ended") from why

    async def receive(self, deadline: Deadline) -> Message:
        """The next message. Raises what it stands for if it is an error."""
        try:
            while (message := self._decoder.next()) is None:
                data = await self._stream.receive(deadline)
                if not data:
                    raise SandboxError("the sandbox has ended")
                self._decoder.feed(data)
        except ConnectionError as why:
            raise SandboxError("the sandbox has ended") from why
        except ProtocolError as why:
            raise SandboxError(f"the session does not keep to the protocol: {why}") from why
        if "error" in message.keys:
            raise refusal(message.keys)
        return message

    async def ask(self, deadline: Deadline, body: bytes | memoryview = b"", **keys: Any) -> Message:
        """The answer to a request that has one."""
        await self.send(deadline, body, **keys)
        return await self.receive(deadline)

    @property
    def is_idle(self) -> bool:
        """Whether all that was queued has been sent."""
        return self._stream.is_idle

    def close(self) -> None:
        """Closes it. A command that it has started, and that is not detached, ends."""
        self._stream.close()
