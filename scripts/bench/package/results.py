"""A run of the package as JSON, and the table that is made from that JSON alone."""

from __future__ import annotations

from bench.package.measure import Turns
from bench.results import Report, Values, facts_of_run, middle_halves, rows_of, table
from bench.tables import milliseconds

BARE, TITLE = "bare", "From a program"


def raw(suite: Turns, note: str) -> dict[str, object]:
    return {
        **facts_of_run(REPORT, suite.place),
        "rounds": suite.rounds,
        "note": note,
        "columns": [column.name for column in suite.columns],
        "rows": {row: {name: [round(value, 7) for value in found] for name, found in columns.items()} for row, columns in suite.rows.items()},
        "missing": suite.missing,
        "failed": suite.failed,
    }


def sections(data: dict) -> list[tuple[str, str]]:
    more = {"middle half": lambda _, columns, names: middle_halves(columns, names), "slowest": slowest}
    return [(TITLE, table(data, rows_of(data), BARE, more=more))] if data["rows"] else []


def slowest(_: str, columns: Values, names: list[str]) -> str:
    """The slowest round in each column."""
    return " / ".join(milliseconds(max(columns[name])) for name in names if name in columns)


REPORT = Report("packagebench", "Sandboxes from Python", "package",
                lambda data: f"Medians of {data['rounds']} rounds in turn after one to warm up, in milliseconds, and the ratio to the bare command.", sections)
