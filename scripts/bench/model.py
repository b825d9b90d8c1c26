"""The model of a measurement and its results: stacks, columns and rows."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from pathlib import Path

from bench.stats import spread

REPOSITORY = Path(__file__).resolve().parents[2]
STARTUP = "startup"


class Failed(Exception):
    """One benchmark cannot be built or run, with the reason. The others carry on."""


@dataclasses.dataclass(frozen=True)
class Stack:
    """A benchmark and the grates in front of it, as a `.grate` file's name spells them."""

    grates: tuple[str, ...]
    benchmark: str
    variant: str = ""

    @classmethod
    def parse(cls, file_name: str) -> Stack:
        parts = file_name.removesuffix(".grate").replace("_grate", "-grate").split(".")
        grates = list(itertools.takewhile(lambda part: part.endswith("-grate"), parts))
        if not grates or len(parts) - len(grates) not in (1, 2):
            raise Failed(f"{file_name}: not of the form NAME-grate.BENCHMARK.grate or NAME-grate.BENCHMARK.VARIANT.grate")
        names = tuple(g.removesuffix("-grate").replace("_", "-") for g in grates)
        return cls(names, *parts[len(grates) :])

    @property
    def label(self) -> str:
        runs = [(grate, len(list(run))) for grate, run in itertools.groupby(self.grates)]
        grates = ", ".join(f"{g}-grate" if n == 1 else f"{n} x {g}-grate" for g, n in runs)
        return f"{grates}: {self.variant}" if self.variant else grates


@dataclasses.dataclass
class Row:
    """One line of the table: the rounds' values by column (linux, lind, grate)."""

    loops: int = 0
    values: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    def median(self, column: str) -> float | None:
        values = self.values.get(column)
        return statistics.median(values) if values else None

    def spread(self, column: str) -> float | None:
        values = self.values.get(column)
        return spread(values) if values else None

    def ratio(self, column: str) -> float | None:
        mine, linux = self.median(column), self.median("linux")
        return mine / linux if mine is not None and linux else None


Rows = dict[tuple[str, str], Row]


@dataclasses.dataclass
class Column:
    """One way to run one benchmark. `own_row` is the stack to name in the label when the row is not the plain one."""

    kind: str
    file: Path
    grates: tuple[str, ...] = ()
    own_row: str = ""
    command: list[str] = dataclasses.field(default_factory=list)
    links: dict[str, Path] = dataclasses.field(default_factory=dict)
    stopped: bool = False

    @property
    def title(self) -> str:
        return f"{self.file.name} ({'Linux' if self.kind == 'linux' else 'Lind'})" if not self.grates else self.file.name
