"""A point in time by which an operation has to be done."""

from __future__ import annotations

import time


class Deadline:
    """So many seconds from now; None is never."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """How many seconds are left. Raises TimeoutError if none are."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def within(self, seconds: float) -> Deadline:
        """The earlier of this one and so many seconds from now."""
        left = self.left()
        return Deadline(seconds if left is None else min(seconds, left))

    @property
    def rest(self) -> float:
        """How many seconds are left, 0 if none are."""
        return float("inf") if self._end is None else max(self._end - time.monotonic(), 0.0)

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return self._end is not None and time.monotonic() >= self._end
