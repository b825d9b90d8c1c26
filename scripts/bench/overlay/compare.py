"""Compares two runs: prints the rows that became slower by more than 5 % and by more than 10 ms."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path

from bench.machine import load_results
from bench.model import Failed
from bench.overlay.results import FORMAT
from bench.tables import grid, milliseconds

SHARE, SECONDS = 0.05, 0.010


@dataclasses.dataclass(frozen=True)
class Change:
    row: str
    column: str
    before: float
    after: float

    @property
    def red(self) -> bool:
        return self.after - self.before > SECONDS and self.after > self.before * (1 + SHARE)

    @property
    def line(self) -> list[str]:
        share = f"{self.after / self.before - 1:+.1%}" if self.before else ""
        return [self.row, self.column, milliseconds(self.before), milliseconds(self.after), share, "RED" if self.red else ""]


def load(file: Path) -> dict:
    data = load_results(file, FORMAT)
    if data["failed"]:
        raise Failed(f"{file}: a run in which something failed")
    return data


def changes(old: dict, new: dict) -> list[Change]:
    """Every row and column of both; raises Failed if they do not have the same rows."""
    if old["options"] != new["options"]:
        raise Failed("the two runs had other options")
    if set(old["rows"]) != set(new["rows"]):
        raise Failed(f"not in both: {', '.join(sorted(set(old['rows']) ^ set(new['rows'])))}")
    return [Change(row, name, statistics.median(values), statistics.median(new["rows"][row][name]))
            for row, columns in old["rows"].items() for name, values in columns.items() if name in new["rows"][row]]


def text(found: list[Change]) -> str:
    red = sum(change.red for change in found)
    return f"{len(found)} compared, {red} red.\n\n" + grid(["row", "column", "before, ms", "after, ms", "change", ""], [c.line for c in found], words=2)
