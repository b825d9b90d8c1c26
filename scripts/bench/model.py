"""The model of a measurement and its results: stacks, columns and rows."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import statistics
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from bench.stats import spread

REPOSITORY = Path(__file__).resolve().parents[2]
STARTUP = "startup"


# The host's tools are looked for here, never where a user has put wrappers.
NATIVE_PATH = "/usr/local/bin:/usr/bin:/bin"


class Failed(Exception):
    """One benchmark cannot be built or run, with the reason. The others carry on."""


class Missing(Exception):
    """A tool is missing: reported in a line, not an error."""


class NotOffered(Exception):
    """A column cannot do this: an empty cell, not a failure."""


class Checked(Protocol):
    """A column that may be missing here."""

    name: str

    def check(self) -> None:
        """Raises Missing if it cannot run here."""


C = TypeVar("C", bound=Checked)


class Present(Generic[C]):
    """Columns, and why some of them are missing here."""

    columns: list[C]
    missing: dict[str, str]

    def usable(self) -> list[C]:
        """The columns that can run here; a line gives the reason for each other one."""
        result = []
        for column in self.columns:
            try:
                column.check()
                result.append(column)
            except Missing as missing:
                self.missing[column.name] = str(missing)
        return result


def found(program: str) -> str:
    path = shutil.which(program, path=NATIVE_PATH)
    if path is None:
        raise Missing(f"{program} is not installed")
    return path


def environment(settings: dict[str, str]) -> dict[str, str]:
    """The same environment for every column. lind-boot keeps compiled code below HOME."""
    kept = {name: os.environ[name] for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_DATA_HOME") if name in os.environ}
    return {"PATH": NATIVE_PATH, **settings, **kept}


def in_image(image: Path, name: str) -> str:
    """A program of an image, by its name there."""
    if not any(os.path.lexists(image / "bin" / (name + suffix)) for suffix in ("", ".cwasm", ".wasm")):
        raise Missing(f"{name} is not in the image")
    return name


def need_boot(boot: Path) -> None:
    if not os.access(boot, os.X_OK):
        raise Missing(f"{boot} is not built")


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
