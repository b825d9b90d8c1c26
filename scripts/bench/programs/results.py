"""A run of the suite as JSON, and the tables that are made from that JSON alone."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.machine import facts_of_run
from bench.programs.columns import CAGE, DEBIAN, NATIVE
from bench.sandbox.measure import Suite
from bench.sandbox.results import reasons
from bench.stats import noise
from bench.tables import grid, milliseconds

FORMAT = "programbench 1"
NAMES = (DEBIAN, NATIVE, CAGE)
# The ratios that are shown.
RATIOS = ((CAGE, DEBIAN), (CAGE, NATIVE), (NATIVE, DEBIAN))


def raw(suite: Suite, note: str) -> dict[str, object]:
    rows = {row: {name: {"seconds": [round(value, 6) for value in cell.times], "processor": [round(value, 6) for value in cell.processor]}
                  for name, cell in cells.items() if cell.runs} for row, cells in suite.cells.items()}
    return {
        **facts_of_run(FORMAT, suite.place),
        "rounds": suite.runs,
        "note": note,
        "rows": {row: columns for row, columns in rows.items() if columns},
        "missing": suite.missing,
        "failed": suite.failures,
    }


def heading(data: dict) -> str:
    facts = data["machine"]
    note = f" {data['note']}" if data["note"] else ""
    return (f"Medians of {data['rounds']} runs in turn. {facts['cpu']}, {facts['cpus']} processors, {facts['memory']}, {facts['kernel']}, "
            f"{data['date'][:10]}, load {data['load'][0]:.1f}.{note}")


def ratio(columns: dict, of: str, to: str, kind: str) -> float | None:
    if of not in columns or to not in columns:
        return None
    base = statistics.median(columns[to][kind])
    return statistics.median(columns[of][kind]) / base if base else None


def shown(value: float | None) -> str:
    return f"{value:.2f}x" if value is not None else ""


def table(data: dict, kind: str) -> str:
    """`kind`: seconds or processor. The last column is the distance of the quartiles of each."""
    lines = []
    for row, columns in data["rows"].items():
        cells = [milliseconds(statistics.median(columns[name][kind])) if name in columns else "" for name in NAMES]
        ratios = [shown(ratio(columns, of, to, kind)) for of, to in RATIOS]
        halves = "/".join(f"{noise(values) / statistics.median(values):.0%}" for name in NAMES if name in columns
                          for values in [columns[name][kind]] if statistics.median(values))
        lines.append([row, *cells, *ratios, halves])
    return grid(["", *NAMES, *(f"{of} to {to}" for of, to in RATIOS), "middle half"], lines)


def means(data: dict) -> str:
    """The ratios of each program: geometric means over its rows, of processor time and of time."""
    programs = list(dict.fromkeys(row.partition(" ")[0] for row in data["rows"]))
    lines = []
    for program in programs:
        rows = [columns for row, columns in data["rows"].items() if row.partition(" ")[0] == program]
        lines.append([program, str(len(rows)), *(mean([ratio(columns, of, to, kind) for columns in rows])
                                                 for kind in ("processor", "seconds") for of, to in RATIOS[:2])])
    return grid(["", "rows", *(f"{of} to {to}, {kind}" for kind in ("processor time", "time") for of, to in RATIOS[:2])], lines)


def mean(ratios: Sequence[float | None]) -> str:
    known = [value for value in ratios if value]
    return shown(statistics.geometric_mean(known)) if known else ""


def sections(data: dict) -> list[tuple[str, str]]:
    """The tables with their titles."""
    return [("Each program", means(data)), ("Processor time, in milliseconds", table(data, "processor")), ("Time, in milliseconds", table(data, "seconds"))]


def markdown(data: dict) -> str:
    parts = ["# Programs in a cage", heading(data)]
    for title, text in sections(data):
        parts += [f"## {title}", text]
    for title, found in (("Not there", data["missing"]), ("Failed", data["failed"])):
        if found:
            parts += [f"## {title}", reasons(found)]
    return "\n\n".join(parts) + "\n"
