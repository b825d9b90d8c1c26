"""A run of the overlays as JSON, and the tables that are made from that JSON alone."""

from __future__ import annotations

import statistics

from bench.overlay.measure import Turns
from bench.overlay.published import GROWTH, PUBLISHED, TIMES
from bench.results import Report, Values, facts_of_run, middle_halves, ratio, rows_of, table, times
from bench.tables import grid

BARE, CAGE, OVERLAY = "bare", "cage", "cage with overlay"


def raw(suite: Turns, options: dict[str, object], note: str) -> dict[str, object]:
    return {
        **facts_of_run(REPORT, suite.place),
        "rounds": suite.rounds,
        "options": options,
        "note": note,
        "columns": [column.name for column in suite.columns],
        "rows": {row: {name: [round(value, 7) for value in found] for name, found in columns.items()} for row, columns in suite.rows.items()},
        "growth": suite.growth,
        "missing": suite.missing,
        "failed": suite.failed,
    }


def about(data: dict) -> str:
    return (f"Medians of {data['rounds']} rounds in turn (of the read path three times as many) after one to warm up, in milliseconds, and the ratio to the bare "
            f"command. The children are written in {'C' if data['options']['child'] == 'c' else 'Python'}.")


def of_workload(data: dict, workload: str) -> str:
    def against_cage(_: str, columns: Values, __: list[str]) -> str:
        """The cost of the overlay alone."""
        return times(ratio(columns, OVERLAY, CAGE))

    more = {"overlay to cage": against_cage, "middle half": lambda _, columns, names: middle_halves(columns, names), PUBLISHED: lambda row, *_: TIMES.get(row, "")}
    rows = [row for row in rows_of(data) if row.startswith(f"{workload}: ")]
    return table(data, rows, BARE, more=more, name_of=lambda row: row.partition(": ")[2])


def growth(data: dict) -> str:
    names = list(dict.fromkeys(name for columns in data["growth"].values() for name in columns))
    lines = []
    for workload, columns in data["growth"].items():
        cells = [" / ".join(f"{statistics.median(value[i] for value in columns[name]):.0f}" for i in (0, 1)) if name in columns else "" for name in names]
        lines.append([workload, *cells, GROWTH.get(workload, "")])
    return grid(["bytes / allocated", *names, PUBLISHED], lines) if lines else ""


def sections(data: dict) -> list[tuple[str, str]]:
    """The tables with their titles."""
    workloads = list(dict.fromkeys(row.partition(": ")[0] for row in rows_of(data)))
    return [*((workload[0].upper() + workload[1:], of_workload(data, workload)) for workload in workloads), ("Space that the changes take", growth(data))]


REPORT = Report("overlaybench", "The cost of an overlay", "overlay", about, sections, least=0.010, strict=True)
