"""Selects the benchmarks to run, and their columns."""

from __future__ import annotations

from pathlib import Path

from bench.model import STARTUP, Column, Failed, Stack

# Grates that answer no calls themselves: the stacks behind them show the price of the way through,
# in rows of their own.
PASSING_ON = {"forward", "strace", "witness"}


def spelled_alike(name: str) -> str:
    """`-` and `_` before `grate` name the same stack."""
    return name.replace("_grate", "-grate")


def available(directory: Path) -> list[str]:
    files = [f.name for f in directory.iterdir() if f.suffix in (".c", ".grate") and f.name != "bench.c"]
    return sorted(files) + [STARTUP]


def select(names: list[str], prefixes: list[str]) -> list[str]:
    wanted = [spelled_alike(Path(p).name) for p in prefixes]
    for prefix in wanted:
        if not any(spelled_alike(n).startswith(prefix) for n in names):
            raise Failed(f"no benchmark's name starts with {prefix!r}")
    return [n for n in names if not wanted or any(spelled_alike(n).startswith(p) for p in wanted)]


def own_rows(names: list[str]) -> set[str]:
    """The stacks that do not fill the plain row: those that only pass on, and every second one of a benchmark."""
    taken: set[str] = set()
    result = set()
    for name in (n for n in names if n.endswith(".grate")):
        stack = Stack.parse(name)
        if PASSING_ON & set(stack.grates) or stack.benchmark in taken:
            result.add(name)
        else:
            taken.add(stack.benchmark)
    return result


def plan(directory: Path, names: list[str], selected: list[str]) -> dict[str, list[Column]]:
    """The selected columns by benchmark, so that those of one benchmark can take turns."""
    groups: dict[str, list[Column]] = {}
    apart = own_rows(names)
    for name in selected:
        file = directory / name
        if name == STARTUP:
            groups[STARTUP] = []
        elif name.endswith(".c"):
            groups.setdefault(file.stem, [])[:0] = [Column("linux", file), Column("lind", file)]
        else:
            stack = Stack.parse(name)
            column = Column("grate", file, stack.grates, stack.label if name in apart else "")
            groups.setdefault(stack.benchmark, []).append(column)
    return groups
