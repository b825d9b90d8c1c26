"""A run of the suite as JSON, and the tables that are made from that JSON alone."""

from __future__ import annotations

import platform
import re
import shlex
import statistics
from pathlib import Path

from bench.machine import facts_of_run
from bench.model import REPOSITORY
from bench.sandbox.columns import Column
from bench.sandbox.measure import Suite
from bench.sandbox.model import Cell
from bench.sandbox.probes import PROBES
from bench.stats import quantile, spread
from bench.tables import grid, milliseconds, with_unit

FORMAT = "sandbench 1"
BARE = "bare"
# The longest command that is kept: one that protects a thousand names is long.
LONGEST = 300


def shown(command: list[str], place: Path) -> str:
    """A command in its short form, without the paths of this run."""
    text = shlex.join(command)
    text = re.sub(rf"{re.escape(str(place))}/[^/\s]+/workspace", "WORKSPACE", text).replace(str(place), "PLACE")
    text = text.replace(f"{REPOSITORY}/", "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


def hyperfine(column: str, cell: Cell, place: Path, served: bool = False) -> dict[str, object]:
    """One column of a row with the names and units (seconds) of hyperfine's export; the column's name and the processor's times are ours."""
    times = cell.times
    return {
        "command": shown(cell.command, place),
        "column": column,
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "user": statistics.fmean(run.user for run in cell.runs),
        "system": statistics.fmean(run.system for run in cell.runs),
        "min": min(times),
        "max": max(times),
        "times": [round(value, 7) for value in times],
        "processor": [] if served else [round(value, 6) for value in cell.processor],
        "exit_codes": [run.status for run in cell.runs],
    }


def raw(suite: Suite, columns: list[Column], facts: dict[str, object]) -> dict[str, object]:
    served = {column.name for column in columns if column.served}
    benchmarks = {row: {"results": [hyperfine(name, cell, suite.place, name in served) for name, cell in cells.items() if cell.runs]}
                  for row, cells in suite.cells.items()}
    return {
        **facts_of_run(FORMAT, suite.place),
        "platform": platform.system().lower(),
        "arch": platform.machine(),
        "kernel": platform.release(),
        "runs": suite.runs,
        "columns": {column.name: column.version() for column in columns},
        "benchmarks": {row: value for row, value in benchmarks.items() if value["results"]},
        **facts,
        "missing": suite.missing,
        "failed": suite.failures,
    }


def times_of(data: dict, row: str, kind: str = "times") -> dict[str, list[float]]:
    """The runs of each column; `kind` is times or processor."""
    return {result["column"]: result[kind] for result in data["benchmarks"][row]["results"] if result[kind]}


def column_names(data: dict) -> list[str]:
    """In the order of the first row that has each."""
    return list(dict.fromkeys([*data["columns"], *(name for row in data["benchmarks"] for name in times_of(data, row))]))


def used_columns(data: dict, rows: list[str]) -> list[str]:
    return [name for name in column_names(data) if any(name in times_of(data, row) for row in rows)]


def table(data: dict, rows: list[str], cell, kind: str = "times") -> str:
    """Rows by columns; `cell(times, those of bare)` is the text."""
    names = used_columns(data, rows)
    lines = []
    for row in rows:
        times = times_of(data, row, kind)
        lines.append([row, *(cell(times[name], times.get(BARE)) if name in times else "" for name in names)])
    return grid(["", *names], lines)


def median_cell(times: list[float], bare: list[float] | None) -> str:
    median = statistics.median(times)
    base = statistics.median(bare) if bare else None
    return milliseconds(median) + (f" ({median / base:.2f}x)" if base and bare is not times else "")


def tail_cell(times: list[float], _: list[float] | None) -> str:
    return f"{milliseconds(quantile(times, 0.95))} ({spread(times):.0%})"


def per_command(data: dict) -> str:
    """The cost of one more command: (hundred - ten) / 90, so that the sandbox's own start is not in it."""
    ten, hundred = "amortized-true-10", "amortized-true-100"
    if ten not in data["benchmarks"] or hundred not in data["benchmarks"]:
        return ""
    few, many = times_of(data, ten), times_of(data, hundred)
    names = [name for name in column_names(data) if name in few and name in many]
    each = {name: (statistics.median(many[name]) - statistics.median(few[name])) / 90 for name in names}
    base = each.get(BARE)
    line = [milliseconds(value) + (f" ({value / base:.2f}x)" if base and name != BARE else "") for name, value in each.items()]
    return grid(["", *names], [["one more command", *line]])


def isolation(data: dict) -> str:
    lines = [[name, *("allowed" if found[probe]["allowed"] else "refused" for probe in PROBES)]
             for name, found in data.get("isolation", {}).items()]
    heads = ["", "sees the host's processes", "reads a file outside", "writes outside", "connects to the host", "kills a process outside"]
    return grid(heads, lines) if lines else ""


def memory(data: dict) -> str:
    lines = [[name, str(found["count"]), f"{found['bytes'] / 2**20:.2f}"] for name, found in data.get("memory", {}).items()]
    return grid(["", "at once", "MiB each"], lines) if lines else ""


def components(data: dict) -> str:
    lines = [[name, found["how"], with_unit(found["seconds"] * 1e9)] for name, found in data.get("components", {}).items()]
    return grid(["", "measured as", "time"], lines, words=2) if lines else ""


def groups(data: dict) -> list[tuple[str, list[str]]]:
    def those(*starts: str) -> list[str]:
        return [row for row in data["benchmarks"] if row.startswith(starts)]

    special = those("amortized-", "profile-", "deny-")
    return [("Commands", [row for row in data["benchmarks"] if row not in special]), ("Many commands in one sandbox", those("amortized-")),
            ("Start under each profile", those("profile-")), ("A write refused by the last of many rules", those("deny-"))]


def heading(data: dict) -> str:
    facts = data["machine"]
    load = data["load"][0]
    return (f"Medians of {data['runs']} runs in turn, in milliseconds, and the ratio to the bare command. "
            f"{facts['cpu']}, {facts['cpus']} processors, {facts['memory']}, {facts['kernel']}, {data['filesystem'].split()[0]}, "
            f"as {data['user']}, {data['date'][:10]}, load {load:.1f}." + (f" {data['note']}" if data.get("note") else ""))


def sections(data: dict) -> list[tuple[str, str]]:
    """The tables with their titles; empty ones are left out."""
    tables = [(title, table(data, rows, median_cell)) for title, rows in groups(data) if rows]
    tables += [("One more command in a sandbox", per_command(data)), ("Refusals of each sandbox", isolation(data)),
               ("Memory of an idle sandbox", memory(data)), ("Components", components(data))]
    rows = list(data["benchmarks"])
    if rows:
        tables.append(("Processor time, which a busy machine changes less", table(data, rows, median_cell, "processor")))
        tables.append(("95th percentile, and spread: (largest - smallest) / median", table(data, rows, tail_cell)))
    return [(title, text) for title, text in tables if text]


def markdown(data: dict) -> str:
    parts = ["# Sandboxes compared", heading(data)]
    for title, text in sections(data):
        parts += [f"## {title}", text]
    versions = [f"- {name}: {version}" for name, version in data["columns"].items() if version]
    parts += ["## Versions", "\n".join(versions)] if versions else []
    for title, found in (("Not there", data["missing"]), ("Failed", data["failed"])):
        if found:
            parts += [f"## {title}", reasons(found)]
    return "\n\n".join(parts) + "\n"


def reasons(found: dict[str, str]) -> str:
    """A line for each reason, with the rows or columns that it explains."""
    by_reason: dict[str, list[str]] = {}
    for what, why in found.items():
        by_reason.setdefault(why, []).append(what)
    return "\n".join(f"- {what[0]}{f' and {len(what) - 1} more' if len(what) > 1 else ''}: {why}" for why, what in by_reason.items())
