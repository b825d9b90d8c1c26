"""Standard input and output where a client has their other ends: the loop itself reads and writes them, with no thread for each message."""

from __future__ import annotations

import asyncio
import os
import stat
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import combinations
from typing import Any, BinaryIO, cast

# The bytes of one read.
SIZE = 256 << 10


def can_wait() -> bool:
    """Whether both are pipes or sockets, each for itself. Files and terminals are read by threads."""
    try:
        about = [os.fstat(number) for number in range(3)]
    except OSError:
        return False
    are_pipes = all(stat.S_ISFIFO(one.st_mode) or stat.S_ISSOCK(one.st_mode) for one in about[:2])
    # The writers of standard error expect that a write waits for room. An output with something to
    # read, as a socket for both has, counts as closed.
    return are_pipes and not any(os.path.samestat(one, other) for one, other in combinations(about, 2))


class Lines:
    """The lines of standard input, as the SDK reads a file."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._lines: deque[bytes] = deque()
        self._rest: list[bytes] = []

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        while not self._lines:
            piece = await self._reader.read(SIZE)
            if not piece and not self._rest:
                raise StopAsyncIteration
            first, *others = piece.split(b"\n") if piece else (b"", b"")
            self._rest.append(first)
            for line in others:
                self._lines.append(b"".join(self._rest))
                self._rest = [line] if line else []
        return self._lines.popleft().decode(errors="replace")


class Output:
    """Standard output, as the SDK writes to a file."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        writer.transport.set_write_buffer_limits(0)

    async def write(self, text: str) -> None:
        """Has text sent."""
        self._writer.write(text.encode())

    async def flush(self) -> None:
        """Waits until all of it has been sent."""
        await self._writer.drain()


def _take() -> tuple[BinaryIO, BinaryIO]:
    """The files of standard input and output, in whose place others are then."""
    given, taken = (cast(BinaryIO, os.fdopen(os.dup(number), mode, 0)) for number, mode in ((0, "rb"), (1, "wb")))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return given, taken


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Any, Any]]:
    """The input and the output. Meanwhile other code reads nothing by standard input, and what it prints goes to standard error."""
    loop = asyncio.get_running_loop()
    given, taken = _take()
    reader = asyncio.StreamReader(SIZE)
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), given)
    target, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, taken)
    writer = asyncio.StreamWriter(target, protocol, None, loop)
    try:
        yield Lines(reader), Output(writer)
    finally:
        source.close()
        writer.close()
