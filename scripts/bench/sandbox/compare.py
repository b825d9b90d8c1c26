"""Compares two runs of the suite."""

from __future__ import annotations

import dataclasses
import statistics
from pathlib import Path

from bench.machine import load_results
from bench.sandbox.results import FORMAT, times_of
from bench.stats import differs
from bench.tables import grid, milliseconds


@dataclasses.dataclass(frozen=True)
class Change:
    """One row in one column, in the old and the new run. `verdict` is slower, faster or same."""

    row: str
    column: str
    before: float
    after: float
    verdict: str

    @property
    def share(self) -> float:
        return self.after / self.before - 1


def load(file: Path) -> dict:
    return load_results(file, FORMAT)


def changes(old: dict, new: dict) -> list[Change]:
    """The rows and columns that both runs have."""
    result = []
    for row in old["benchmarks"]:
        if row not in new["benchmarks"]:
            continue
        before, after = times_of(old, row), times_of(new, row)
        for column in (name for name in before if name in after):
            was, now = statistics.median(before[column]), statistics.median(after[column])
            moved = differs(before[column], after[column])
            verdict = "same" if not moved else "slower" if now > was else "faster"
            result.append(Change(row, column, was, now, verdict))
    return result


def text(old: dict, new: dict) -> str:
    found = changes(old, new)
    lines = [[c.row, c.column, milliseconds(c.before), milliseconds(c.after), f"{c.share:+.1%}", c.verdict] for c in found
             if c.verdict != "same"]
    parts = [f"{len(found)} compared, {sum(c.verdict == 'slower' for c in found)} slower, {sum(c.verdict == 'faster' for c in found)} faster."]
    if old["machine"] != new["machine"]:
        parts.append("The machines differ: compare ratios, not times.")
    if lines:
        parts.append(grid(["row", "column", "before, ms", "after, ms", "change", ""], lines))
    return "\n\n".join(parts)
