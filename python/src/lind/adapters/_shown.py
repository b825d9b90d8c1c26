"""The text that a model gets of a command: its output, and how it has ended."""

from __future__ import annotations

import lind

# How much output of a command a model is shown, in bytes, unless the caller says otherwise.
SHOWN = 50_000


class Shown:
    """The output of a command as one text, in the order in which it came: the beginning and the end of it if it is long."""

    def __init__(self, most: int = SHOWN) -> None:
        self._head, self._tail = bytearray(), bytearray()
        self._half = most // 2
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Takes a piece."""
        room = self._half - len(self._head)
        self._head += data[: max(room, 0)]
        self._tail += data[max(room, 0) :]
        self._dropped += max(len(self._tail) - self._half, 0)
        del self._tail[: -self._half]

    def text(self, end: lind.Result | lind.TimeoutExpired | lind.CommandNotStarted) -> str:
        """The output, and how the command has ended if that was not with 0."""
        left_out = f"\n[{self._dropped} bytes are left out here]\n" if self._dropped else ""
        output = self._head.decode(errors="replace") + left_out + self._tail.decode(errors="replace")
        said = _end(end)
        return output + (("\n" if output and not output.endswith("\n") else "") + f"[{said}]" if said else "")


def _end(end: lind.Result | lind.TimeoutExpired | lind.CommandNotStarted) -> str:
    if isinstance(end, lind.TimeoutExpired):
        return f"the command was ended after {end.timeout:g} seconds"
    if isinstance(end, lind.CommandNotStarted):
        return f"the command did not start: {end}"
    parts = [f"signal {end.signal} ended the command" if end.signal else f"exit status {end.exit_code}"] if not end.ok else []
    return "; ".join(parts + ([end.note] if end.note else []))
