"""The limits of the rows."""

from __future__ import annotations

import dataclasses

from bench.model import Row

KERNELS = "C kernels (geomean)"


@dataclasses.dataclass(frozen=True)
class Budget:
    """The limit of a row: a ratio to the Linux column, or nanoseconds more than the Lind column."""

    test: str
    column: str
    limit: float
    params: tuple[str, ...] = ()
    added: bool = False


BUDGETS = [
    Budget("Close", "lind", 0.25),
    Budget("Geteuid", "lind", 0.25),
    Budget("Getpid", "lind", 0.25),
    Budget("Read", "lind", 1.15),
    Budget("Write", "lind", 1.15),
    Budget("Read", "grate", 0.25, ("1",)),
    Budget("Read", "grate", 0.45, ("10240",)),
    Budget("Write", "grate", 0.3, ("1",)),
    Budget("Write", "grate", 0.45, ("10240",)),
    Budget("Geteuid", "grate", 0.4),
    Budget("Read (forward-grate)", "grate", 30, added=True),
    Budget("Read (forward-grate: handler)", "grate", 30, added=True),
    Budget("Read (forward-grate: result)", "grate", 30, added=True),
    Budget("Read (namespace-grate, imfs-grate)", "grate", 0.4, ("1",)),
    Budget("Geteuid (forward-grate)", "grate", 30, added=True),
    Budget("Geteuid (forward-grate: handler)", "grate", 30, added=True),
    Budget("Geteuid (forward-grate: result)", "grate", 30, added=True),
    Budget("Geteuid (8 x forward-grate)", "grate", 240, added=True),
    Budget("Geteuid (8 x forward-grate: handler)", "grate", 240, added=True),
    Budget("Getpid (witness-grate)", "grate", 300, added=True),
    Budget("Open+close", "grate", 0.5),
    Budget("Stat", "grate", 0.5),
    Budget("Readdir", "grate", 0.7),
    Budget("Startup", "lind", 2.0),
    Budget("Spawn", "lind", 0.6),
    Budget("Fork", "lind", 1.5, ("0",)),
    Budget("Fork", "lind", 8, ("100",)),
    Budget("Fork+exec", "lind", 1.0),
    Budget("Pipe", "lind", 1.1),
    Budget("UDS", "lind", 1.1),
    Budget("Thread", "lind", 2.0),
    Budget("Condvar", "lind", 1.2),
    Budget("Mutex", "lind", 1.2),
    Budget("Signal", "lind", 1.0),
    Budget(KERNELS, "lind", 1.35),
]


def verdicts(test: str, param: str, row: Row) -> list[str]:
    """`grate 0.30x met`, `grate +40 ns missed`: the budgets that a row has values for."""
    result = []
    for budget in BUDGETS:
        if budget.test != test or (budget.params and param not in budget.params):
            continue
        mine, base = row.median(budget.column), row.median("lind" if budget.added else "linux")
        if mine is None or not base:
            continue
        value = mine - base if budget.added else mine / base
        goal = f"+{budget.limit:.0f} ns" if budget.added else f"{budget.limit:g}x"
        result.append(f"{budget.column} {goal} {'met' if value <= budget.limit else 'missed'}")
    return result
