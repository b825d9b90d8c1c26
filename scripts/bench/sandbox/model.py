"""The model of the sandbox suite: a row is something to do, a column a sandbox to do it in."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from bench.timing import Timed


@dataclasses.dataclass(frozen=True)
class Wish:
    """The needs of a command."""

    words: tuple[str, ...]
    workspace: Path
    # Whether the command uses the workspace at all.
    here: bool = True
    # A port of this host's 127.0.0.1 that it may reach.
    port: int | None = None
    # Names in the workspace that it must not change.
    protect: tuple[str, ...] = ()
    # A policy of lind-boot's.
    policy: str | None = None


def nothing(_: Path) -> None:
    """For rows that need no files."""


def no_answer(_: Path, printed: bytes) -> object:
    return printed


@dataclasses.dataclass(frozen=True)
class Row:
    """`make` prepares the workspace once, `reset` before each run. All columns must agree on
    `answer`: on that of `expected`, or if this is None on that of the first column, which is the
    bare command."""

    name: str
    words: tuple[str, ...]
    make: Callable[[Path], None] = nothing
    reset: Callable[[Path], None] = nothing
    answer: Callable[[Path, bytes], object] = no_answer
    expected: object = None
    # Tools beside the first word.
    tools: tuple[str, ...] = ()
    here: bool = True
    status: int = 0
    network: bool = False
    slow: bool = False
    protect: tuple[str, ...] = ()
    policy: str | None = None

    def wish(self, workspace: Path, port: int | None) -> Wish:
        words = tuple(word.replace("{port}", str(port)) for word in self.words)
        return Wish(words, workspace, self.here, port if self.network else None, self.protect, self.policy)


@dataclasses.dataclass
class Cell:
    """The runs of one row in one column, and their wanted number."""

    command: list[str]
    wanted: int = 0
    runs: list[Timed] = dataclasses.field(default_factory=list)

    @property
    def times(self) -> list[float]:
        return [run.seconds for run in self.runs]

    @property
    def processor(self) -> list[float]:
        return [run.user + run.system for run in self.runs]
