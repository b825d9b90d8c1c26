"""Results of a suite: a run as JSON, the tables that are made from that JSON alone, the comparison of two runs."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from bench.machine import filesystem_of, first_line_of, machine
from bench.model import Failed
from bench.stats import noise, verdict
from bench.tables import grid, milliseconds

Values = dict[str, list[float]]


@dataclasses.dataclass(frozen=True)
class Report:
    """The words of a suite about its results. `least`: seconds by which two medians must differ at least; without it, their noise."""

    name: str
    title: str
    # The name of the files that -o writes.
    file: str
    about: Callable[[dict], str]
    sections: Callable[[dict], list[tuple[str, str]]]
    least: float | None = None
    # The runs that are compared must have the same options and rows, and no failure.
    strict: bool = False

    @property
    def form(self) -> str:
        return f"{self.name} 1"


def facts_of_run(suite: Report, place: Path) -> dict[str, object]:
    """The first entries of every suite's results."""
    return {
        "format": suite.form,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "version": first_line_of(["git", "describe", "--always", "--dirty"]),
        "machine": machine(),
        "load": list(os.getloadavg()),
        "filesystem": filesystem_of(place),
        "user": "root" if os.geteuid() == 0 else "an ordinary user",
    }


def load(file: Path, suite: Report) -> dict:
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Failed(f"{file}: {error}") from error
    if not isinstance(data, dict) or data.get("format") != suite.form:
        raise Failed(f"{file}: not a result of {suite.name}")
    if suite.strict and data["failed"]:
        raise Failed(f"{file}: a run in which something failed")
    return data


def write(directory: Path, name: str, data: dict, text: str, page: str) -> list[Path]:
    """Writes a run's JSON and its page of Markdown, under a name with the time of the run."""
    directory.mkdir(parents=True, exist_ok=True)
    stamp = data["date"].replace("-", "").replace(":", "").replace("T", "-").rstrip("Z")
    files = [directory / f"{name}-{stamp}{suffix}" for suffix in (".json", ".md")]
    files[0].write_text(text)
    files[1].write_text(page)
    return files


def rows_of(data: dict) -> list[str]:
    return list(data["benchmarks"] if "benchmarks" in data else data["rows"])


def values(data: dict, row: str, kind: str = "times") -> Values:
    """The runs of a row by column; `kind` is times or processor."""
    if "benchmarks" in data:
        return {result["column"]: result[kind] for result in data["benchmarks"][row]["results"] if result[kind]}
    columns = data["rows"][row]
    return {name: found["seconds" if kind == "times" else kind] if isinstance(found, dict) else found for name, found in columns.items()}


def cell(found: list[float], base: list[float] | None = None) -> str:
    """The median in milliseconds, and its ratio to that of the base."""
    median = statistics.median(found)
    below = statistics.median(base) if base and base is not found else 0
    return milliseconds(median) + (f" ({median / below:.2f}x)" if below else "")


def ratio(columns: Values, of: str, to: str) -> float | None:
    base = statistics.median(columns[to]) if of in columns and to in columns else 0
    return statistics.median(columns[of]) / base if base else None


def times(value: float | None) -> str:
    return f"{value:.2f}x" if value is not None else ""


def middle_halves(columns: Values, names: list[str]) -> str:
    """The distance of the quartiles in each column: single runs that were interrupted do not count."""
    return "/".join(f"{noise(columns[name]) / statistics.median(columns[name]):.0%}" for name in names if name in columns and statistics.median(columns[name]))


def table(data: dict, rows: list[str], base: str = "", kind: str = "times", cell_of=cell, more: dict[str, Callable[[str, Values, list[str]], str]] | None = None,
          name_of: Callable[[str], str] = str, names: list[str] | None = None) -> str:
    """Rows by columns. `more`: the titles of further columns, and what is in them."""
    all_values = {row: values(data, row, kind) for row in rows}
    order = names or list(dict.fromkeys([*data.get("columns", []), *(name for columns in all_values.values() for name in columns)]))
    names = names or [name for name in order if any(name in columns for columns in all_values.values())]
    lines = [[name_of(row), *(cell_of(columns[name], columns.get(base)) if name in columns else "" for name in names),
              *(text(row, columns, names) for text in (more or {}).values())] for row, columns in all_values.items()]
    return grid(["", *names, *(more or {})], lines)


def heading(suite: Report, data: dict) -> str:
    """The kind of the numbers, and the machine they come from."""
    facts, note = data["machine"], f" {data['note']}" if data.get("note") else ""
    return (f"{suite.about(data)} {facts['cpu']}, {facts['cpus']} processors, {facts['memory']}, {facts['kernel']}, "
            f"{data['filesystem'].split()[0]}, as {data['user']}, {data['date'][:10]}, load {data['load'][0]:.1f}.{note}")


def tables(suite: Report, data: dict, mark: str) -> list[str]:
    return [heading(suite, data), *(f"{mark} {title}\n\n{text}" for title, text in suite.sections(data) if text)]


def markdown(suite: Report, data: dict) -> str:
    """The page of a run."""
    parts = [f"# {suite.title}", *tables(suite, data, "##")]
    versions = [f"- {name}: {version}" for name, version in data["columns"].items() if version] if isinstance(data.get("columns"), dict) else []
    parts += ["## Versions\n\n" + "\n".join(versions)] if versions else []
    parts += [f"## {title}\n\n{reasons(found)}" for title, found in (("Not there", data["missing"]), ("Failed", data["failed"])) if found]
    return "\n\n".join(parts) + "\n"


def reasons(found: dict[str, str]) -> str:
    """A line for each reason, with the rows or columns that it explains."""
    by_reason: dict[str, list[str]] = {}
    for what, why in found.items():
        by_reason.setdefault(why, []).append(what)
    return "\n".join(f"- {what[0]}{f' and {len(what) - 1} more' if len(what) > 1 else ''}: {why}" for why, what in by_reason.items())


@dataclasses.dataclass(frozen=True)
class Change:
    """One row in one column, in the old and the new run. `verdict` is slower, faster or same."""

    row: str
    column: str
    before: float
    after: float
    verdict: str

    @property
    def line(self) -> list[str]:
        share = f"{self.after / self.before - 1:+.1%}" if self.before else ""
        return [self.row, self.column, milliseconds(self.before), milliseconds(self.after), share, self.verdict]


def changes(suite: Report, old: dict, new: dict) -> list[Change]:
    """The rows and columns that both runs have."""
    if suite.strict and old["options"] != new["options"]:
        raise Failed("the two runs had other options")
    if suite.strict and set(rows_of(old)) != set(rows_of(new)):
        raise Failed(f"not in both: {', '.join(sorted(set(rows_of(old)) ^ set(rows_of(new))))}")
    found = []
    for row in (row for row in rows_of(old) if row in rows_of(new)):
        before, after = values(old, row), values(new, row)
        for column in (name for name in before if name in after):
            was, now = before[column], after[column]
            found.append(Change(row, column, statistics.median(was), statistics.median(now), verdict(was, now, suite.least)))
    return found


def compare_text(suite: Report, old: dict, new: dict) -> str:
    found = changes(suite, old, new)
    parts = [f"{len(found)} compared, {sum(c.verdict == 'slower' for c in found)} slower, {sum(c.verdict == 'faster' for c in found)} faster."]
    if old["machine"] != new["machine"]:
        parts.append("The machines differ: compare ratios, not times.")
    lines = [change.line for change in found if change.verdict != "same"]
    if lines:
        parts.append(grid(["row", "column", "before, ms", "after, ms", "change", ""], lines, words=2))
    return "\n\n".join(parts)
