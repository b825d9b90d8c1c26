"""Input and output by blocking calls: what `_async/_io.py` has for asyncio. It is written by hand; the other files of this folder are generated."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from .. import _forks
from .._deadline import Deadline

T = TypeVar("T")
R = TypeVar("R")
SIZE = 256 << 10
# The most that is read while something is sent.
EARLY = 8 << 20

Lock = threading.Lock
Semaphore = threading.Semaphore


class Stream:
    """A connection to a unix socket."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._unsent: deque[memoryview] = deque()
        self._early: deque[bytes] = deque()
        _forks.register(self)

    @classmethod
    def connect(cls, path: str, deadline: Deadline) -> Stream:
        """Connects."""
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.settimeout(deadline.left())
            connected.connect(path)
            connected.setblocking(False)
        except BaseException:
            connected.close()
            raise
        return cls(connected)

    def queue(self, parts: Sequence[bytes | memoryview]) -> None:
        """Has bytes sent while `receive` waits, as the other side takes them."""
        self._unsent.extend(memoryview(part) for part in parts)

    def flush(self, deadline: Deadline) -> None:
        """Sends what was queued. Bytes that come meanwhile are kept, so that the other side never waits for this one to read."""
        while self._send():
            reads = sum(map(len, self._early)) < EARLY
            if self._wait(deadline, reads) & ~select.POLLOUT and reads:
                self._early.append(self._socket.recv(SIZE))

    def receive(self, deadline: Deadline) -> bytes:
        """The next bytes; none at the end."""
        while not self._early:
            self._send()
            try:
                return self._socket.recv(SIZE)
            except BlockingIOError:
                self._wait(deadline)
        return self._early.popleft()

    @property
    def is_idle(self) -> bool:
        """Whether all that was queued has been sent."""
        return not self._unsent

    def close(self) -> None:
        """Closes it at once."""
        self._socket.close()

    def forked(self) -> None:
        """In a child this is the parent's."""
        _forks.blind(self._socket.fileno())

    def _send(self) -> bool:
        """Sends as much as there is room for. Whether something is left."""
        while self._unsent:
            try:
                sent = self._socket.send(self._unsent[0])
            except BlockingIOError:
                return True
            if sent == len(self._unsent[0]):
                self._unsent.popleft()
            else:
                self._unsent[0] = self._unsent[0][sent:]
        return False

    def _wait(self, deadline: Deadline, reads: bool = True) -> int:
        """Waits until bytes have come, or there is room for those that wait. Returns what is possible then, as bits of poll(2)."""
        left = deadline.left()
        wanted = (select.POLLIN if reads else 0) | (select.POLLOUT if self._unsent else 0)
        ready = select.poll()
        ready.register(self._socket, wanted)
        events = ready.poll(None if left is None else left * 1000)
        if not events:
            raise TimeoutError
        return events[0][1]


# The value of a function; that of asyncio may be one of a coroutine.
Returned = Annotated[R, "at once"]


def call(callback: Callable[[T], Returned[R]], argument: T) -> R:
    """Calls back."""
    return callback(argument)


def spawn(work: Callable[[T], None], argument: T) -> None:
    """Has work done meanwhile, by a thread."""
    threading.Thread(target=work, args=(argument,), daemon=True).start()


def work(function: Callable[[], R]) -> R:
    """Calls a function that waits for the host."""
    return function()


def execute(words: Sequence[str | bytes | os.PathLike[str]], deadline: Deadline, patience: float = 0, cwd: str | None = None) -> tuple[int, str, str]:
    """Runs a program of the host without input. Its exit status, output and errors. If nobody waits any more, it has `patience` seconds to end."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd) as process:
        try:
            out, errors = process.communicate(timeout=deadline.left())
        except subprocess.TimeoutExpired:
            process.terminate()
            raise TimeoutError from None
        except BaseException:
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.terminate()
            raise
    return process.returncode, out.decode(errors="replace"), errors.decode(errors="replace")
