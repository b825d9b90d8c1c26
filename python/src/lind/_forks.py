"""Open connections in a child that `os.fork` makes.

A child has copies of the sockets of its parent. The session would take a command for one that is still followed as long as one of the copies is
open, and messages of both would mix. So a child puts /dev/null in the place of each, and makes connections of its own.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """Something that has to know of a fork."""

    def forked(self) -> None:
        """Called in the child."""


_known: weakref.WeakSet[Forked] = weakref.WeakSet()


def register(thing: Forked) -> None:
    """Has `forked` called in each child from now on."""
    _known.add(thing)


def blind(fd: int) -> None:
    """Puts /dev/null in the place of a descriptor."""
    if fd < 0:
        return
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(null, fd, inheritable=False)
    finally:
        os.close(null)


def _in_child() -> None:
    for thing in list(_known):
        thing.forked()


os.register_at_fork(after_in_child=_in_child)
