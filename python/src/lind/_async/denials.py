"""Denials as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from .._deadline import Deadline
from .._reading import read_denials
from ..errors import SandboxError, TimeoutExpired
from ..results import Denial
from ._io import call
from .connection import AsyncConnection
from .session import AsyncSession

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncDenials:
    """Calls that are denied, one after the other. It is closed when it is left."""

    def __init__(self, session: AsyncSession, connection: AsyncConnection, first: tuple[Denial, ...]) -> None:
        self._session = session
        self._connection = connection
        self._unread = deque(first)

    async def read(self, timeout: float | None = None) -> Denial:
        """The next denial. Raises TimeoutExpired if none comes within so many seconds."""
        deadline = Deadline(timeout)
        try:
            while not self._unread:
                message = await self._session.await_message(self._connection, deadline)
                self._unread.extend(read_denials(message.keys.get("denials", [])))
        except TimeoutExpired:
            raise
        except TimeoutError:
            raise TimeoutExpired("denials", timeout or 0) from None
        return self._unread.popleft()

    async def tell(self, callback: Callable[[Denial], object]) -> None:
        """Hands all denials to a function, until the sandbox ends."""
        try:
            while True:
                await call(callback, await self.read())
        except (SandboxError, OSError):
            # It has ended.
            pass
        finally:
            await self.close()

    def __aiter__(self) -> AsyncIterator[Denial]:
        return self

    async def __anext__(self) -> Denial:
        return await self.read()

    async def close(self) -> None:
        """Ends it."""
        self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
