"""A run of the suite as JSON, and the tables that are made from that JSON alone."""

from __future__ import annotations

import statistics

from bench.machine import facts_of_run
from bench.overlay.measure import Suite
from bench.overlay.published import GROWTH, PUBLISHED, TIMES
from bench.sandbox.results import reasons
from bench.stats import noise
from bench.tables import grid, milliseconds

FORMAT = "overlaybench 1"
BARE, CAGE, OVERLAY = "bare", "cage", "cage with overlay"


def raw(suite: Suite, options: dict[str, object], note: str) -> dict[str, object]:
    results = suite.results
    return {
        **facts_of_run(FORMAT, suite.place),
        "rounds": suite.rounds,
        "options": options,
        "note": note,
        "columns": [column.name for column in suite.columns],
        "rows": {row: {name: [round(value, 7) for value in values] for name, values in columns.items()} for row, columns in results.rows.items()},
        "growth": results.growth,
        "missing": results.missing,
        "failed": results.failed,
    }


def heading(data: dict) -> str:
    facts = data["machine"]
    note = f" {data['note']}" if data["note"] else ""
    return (f"Medians of {data['rounds']} rounds in turn (of the read path three times as many) after one to warm up, in milliseconds, and the ratio to the bare command. The children "
            f"are written in {'C' if data['options']['child'] == 'c' else 'Python'}. {facts['cpu']}, {facts['cpus']} processors, "
            f"{facts['memory']}, {facts['kernel']}, {data['filesystem'].split()[0]}, as {data['user']}, {data['date'][:10]}, "
            f"load {data['load'][0]:.1f}.{note}")


def times_cell(values: list[float], bare: list[float] | None) -> str:
    median = statistics.median(values)
    base = statistics.median(bare) if bare and bare is not values else 0
    return milliseconds(median) + (f" ({median / base:.2f}x)" if base else "")


def against_cage(columns: dict[str, list[float]]) -> str:
    """The cost of the overlay alone."""
    if CAGE not in columns or OVERLAY not in columns:
        return ""
    return f"{statistics.median(columns[OVERLAY]) / statistics.median(columns[CAGE]):.2f}x"


def middle_half(values: list[float]) -> str:
    """The distance of the quartiles: some phases of less than a millisecond are interrupted, and then take a hundred times as long."""
    return f"{noise(values) / statistics.median(values):.0%}"


def times(data: dict, workload: str) -> str:
    rows = {row: columns for row, columns in data["rows"].items() if row.startswith(f"{workload}: ")}
    names = [name for name in data["columns"] if any(name in columns for columns in rows.values())]
    lines = []
    for row, columns in rows.items():
        cells = [times_cell(columns[name], columns.get(BARE)) if name in columns else "" for name in names]
        spreads = "/".join(middle_half(columns[name]) for name in names if name in columns)
        lines.append([row.partition(": ")[2], *cells, against_cage(columns), spreads, TIMES.get(row, "")])
    return grid(["", *names, "overlay to cage", "middle half", PUBLISHED], lines)


def growth(data: dict) -> str:
    names = list(dict.fromkeys(name for columns in data["growth"].values() for name in columns))
    lines = []
    for workload, columns in data["growth"].items():
        cells = []
        for name in names:
            values = columns.get(name, [])
            cells.append(" / ".join(f"{statistics.median(value[i] for value in values):.0f}" for i in (0, 1)) if values else "")
        lines.append([workload, *cells, GROWTH.get(workload, "")])
    return grid(["bytes / allocated", *names, PUBLISHED], lines) if lines else ""


def sections(data: dict) -> list[tuple[str, str]]:
    """The tables with their titles."""
    workloads = list(dict.fromkeys(row.partition(": ")[0] for row in data["rows"]))
    tables = [(workload[0].upper() + workload[1:], times(data, workload)) for workload in workloads]
    return [*tables, *([("Space that the changes take", growth(data))] if data["growth"] else [])]


def markdown(data: dict) -> str:
    parts = ["# What an overlay costs", heading(data)]
    for title, text in sections(data):
        parts += [f"## {title}", text]
    for title, found in (("Not there", data["missing"]), ("Failed", data["failed"])):
        if found:
            parts += [f"## {title}", reasons(found)]
    return "\n\n".join(parts) + "\n"
