"""The table of docs/tier.md: programs with functions that another compiler made, to the same program without."""

from __future__ import annotations

import statistics

from bench.tables import grid

COLUMNS = {"loop-gcc": "loop, gcc", "loop-clang": "loop, clang", "all-gcc": "all, gcc", "all-clang": "all, clang", "native": "Linux, gcc -O2"}


def table(raw: dict) -> str:
    """A row for each program: the time without, and ratios to it of the same round, their median and range."""
    lines = []
    for name, row in raw["rows"].items():
        cells = [f"{statistics.median(row['base']) * 1000:.0f}"]
        for column in COLUMNS:
            ratios = [one / base for one, base in zip(row.get(column, []), row["base"], strict=False)]
            cells.append(f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else "")
        lines.append([f"{name}, {len(row['base'])} rounds", *cells])
    facts = raw["machine"]
    about = f"{facts['cpu']}, {facts['cpus']} processors, load {raw['load'][0]:.0f}."
    return f"{about}\n\n" + grid(["", "Cranelift, ms", *COLUMNS.values()], lines)
