"""The output of a command, of which the beginning and the end are kept."""

from __future__ import annotations

from .display import decoded, lines


class Output:
    """The output of a command, at most so many bytes of it.

    >>> output = Output(8)
    >>> output.add(b"0123456789")
    >>> output.since(0, ended=True)
    ('0123\\n[2 bytes are left out here]\\n6789', 10, 2)
    >>> output.since(7, ended=True)
    ('789', 10, 0)
    """

    def __init__(self, most: int) -> None:
        self._half = max(most // 2, 1)
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Takes a piece."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[: max(room, 0)]
        self._tail += data[max(room, 0) :]
        del self._tail[: -self._half]

    def since(self, start: int, *, ended: bool) -> tuple[str, int, int]:
        """The text behind the first `start` bytes, how many bytes there are up to its end, and how many are left out in it. Of a command that has not
        ended, a character that has come in part is left for the next time."""
        start = min(max(start, 0), self.total)
        first = self.total - len(self._tail)
        head = bytes(self._head[start:])
        tail = bytes(self._tail[max(start - first, 0) :])
        missing = max(first - max(start, len(self._head)), 0)
        if missing == 0:
            text, rest = decoded(head + tail, ended)
            return lines(text), self.total - rest, 0
        text, rest = decoded(tail, ended)
        return f"{lines(decoded(head, True)[0])}\n[{missing} bytes are left out here]\n{lines(text)}", self.total - rest, missing

    def last_line(self) -> str:
        """The last line that is not empty, shortened."""
        written = (bytes(self._head + self._tail) if len(self._tail) < self._half else bytes(self._tail))[-2000:]
        text = decoded(written, True)[0].rstrip().rpartition("\n")[2]
        return lines(text.rpartition("\r")[2])[-200:]
