"""A run of the programs as JSON, and the tables that are made from that JSON alone."""

from __future__ import annotations

import statistics

from bench.programs.columns import CAGE, DEBIAN, NATIVE
from bench.results import Report, facts_of_run, middle_halves, ratio, rows_of, table, times, values
from bench.sandbox import measure
from bench.tables import grid

NAMES = [DEBIAN, NATIVE, CAGE]
# The ratios that are shown.
RATIOS = ((CAGE, DEBIAN), (CAGE, NATIVE), (NATIVE, DEBIAN))
TITLES = {f"{of} to {to}": (of, to) for of, to in RATIOS}


def raw(suite: measure.Suite, note: str) -> dict[str, object]:
    rows = {row: {name: {"seconds": [round(value, 6) for value in cell.times], "processor": [round(value, 6) for value in cell.processor]}
                  for name, cell in cells.items() if cell.runs} for row, cells in suite.cells.items()}
    return {
        **facts_of_run(REPORT, suite.place),
        "rounds": suite.runs,
        "note": note,
        "rows": {row: columns for row, columns in rows.items() if columns},
        "missing": suite.missing,
        "failed": suite.failures,
    }


def of_kind(data: dict, kind: str) -> str:
    """`kind`: times or processor."""
    ratios = {title: lambda _, columns, __, pair=pair: times(ratio(columns, *pair)) for title, pair in TITLES.items()}
    halves = {"middle half": lambda _, columns, names: middle_halves(columns, names)}
    return table(data, rows_of(data), "", kind, more=ratios | halves, names=NAMES)


def means(data: dict) -> str:
    """The ratios of each program: geometric means over its rows, of processor time and of time."""
    programs = list(dict.fromkeys(row.partition(" ")[0] for row in rows_of(data)))
    lines = []
    for program in programs:
        rows = [row for row in rows_of(data) if row.partition(" ")[0] == program]
        found = [[ratio(values(data, row, kind), *pair) for row in rows] for kind in ("processor", "times") for pair in RATIOS[:2]]
        lines.append([program, str(len(rows)), *(times(statistics.geometric_mean(known) if (known := [one for one in each if one]) else None) for each in found)])
    return grid(["", "rows", *(f"{of} to {to}, {kind}" for kind in ("processor time", "time") for of, to in RATIOS[:2])], lines)


def sections(data: dict) -> list[tuple[str, str]]:
    """The tables with their titles."""
    return [("Each program", means(data)), ("Processor time, in milliseconds", of_kind(data, "processor")), ("Time, in milliseconds", of_kind(data, "times"))]


REPORT = Report("programbench", "Programs in a cage", "programs", lambda data: f"Medians of {data['rounds']} runs in turn.", sections)
