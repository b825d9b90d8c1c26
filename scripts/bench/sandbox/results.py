"""A run of the sandboxes as JSON, and the tables that are made from that JSON alone."""

from __future__ import annotations

import platform
import re
import shlex
import statistics
from pathlib import Path

from bench.model import REPOSITORY
from bench.results import Report, cell, facts_of_run, rows_of, table, values
from bench.sandbox import measure
from bench.sandbox.columns import Column
from bench.sandbox.model import Cell
from bench.sandbox.probes import PROBES
from bench.stats import quantile, spread
from bench.tables import grid, milliseconds, with_unit

BARE = "bare"
# The longest command that is kept: one that protects a thousand names is long.
LONGEST = 300


def shown(command: list[str], place: Path) -> str:
    """A command in its short form, without the paths of this run."""
    text = shlex.join(command)
    text = re.sub(rf"{re.escape(str(place))}/[^/\s]+/workspace", "WORKSPACE", text).replace(str(place), "PLACE")
    text = text.replace(f"{REPOSITORY}/", "")
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 2 :]}"


def hyperfine(column: str, found: Cell, place: Path, served: bool = False) -> dict[str, object]:
    """One column of a row with the names and units (seconds) of hyperfine's export; the column's name and the processor's times are ours."""
    times = found.times
    return {
        "command": shown(found.command, place),
        "column": column,
        "mean": statistics.fmean(times),
        "stddev": statistics.stdev(times) if len(times) > 1 else None,
        "median": statistics.median(times),
        "user": statistics.fmean(run.user for run in found.runs),
        "system": statistics.fmean(run.system for run in found.runs),
        "min": min(times),
        "max": max(times),
        "times": [round(value, 7) for value in times],
        "processor": [] if served else [round(value, 6) for value in found.processor],
        "exit_codes": [run.status for run in found.runs],
    }


def raw(suite: measure.Suite, columns: list[Column], facts: dict[str, object]) -> dict[str, object]:
    served = {column.name for column in columns if column.served}
    benchmarks = {row: {"results": [hyperfine(name, found, suite.place, name in served) for name, found in cells.items() if found.runs]}
                  for row, cells in suite.cells.items()}
    return {
        **facts_of_run(REPORT, suite.place),
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


def tail_cell(times: list[float], _: list[float] | None) -> str:
    return f"{milliseconds(quantile(times, 0.95))} ({spread(times):.0%})"


def per_command(data: dict) -> str:
    """The cost of one more command: (hundred - ten) / 90, so that the sandbox's own start is not in it."""
    ten, hundred = "amortized-true-10", "amortized-true-100"
    if ten not in data["benchmarks"] or hundred not in data["benchmarks"]:
        return ""
    few, many = values(data, ten), values(data, hundred)
    names = [name for name in dict.fromkeys([*data["columns"], *few]) if name in few and name in many]
    each = {name: [(statistics.median(many[name]) - statistics.median(few[name])) / 90] for name in names}
    return grid(["", *names], [["one more command", *(cell(each[name], each.get(BARE)) for name in names)]])


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


def sections(data: dict) -> list[tuple[str, str]]:
    """The tables with their titles; empty ones are left out."""
    rows = rows_of(data)
    groups = {"Many commands in one sandbox": "amortized-", "Start under each profile": "profile-", "A write refused by the last of many rules": "deny-"}
    plain = [row for row in rows if not row.startswith(tuple(groups.values()))]
    some = [("Commands", plain), *((title, [row for row in rows if row.startswith(start)]) for title, start in groups.items())]
    found = [(title, table(data, chosen, BARE)) for title, chosen in some if chosen]
    found += [("One more command in a sandbox", per_command(data)), ("Refusals of each sandbox", isolation(data)),
              ("Memory of an idle sandbox", memory(data)), ("Components", components(data))]
    if rows:
        found.append(("Processor time, which a busy machine changes less", table(data, rows, BARE, "processor")))
        found.append(("95th percentile, and spread: (largest - smallest) / median", table(data, rows, BARE, cell_of=tail_cell)))
    return [(title, text) for title, text in found if text]


REPORT = Report("sandbench", "Sandboxes compared", "{platform}-{arch}",
              lambda data: f"Medians of {data['runs']} runs in turn, in milliseconds, and the ratio to the bare command.", sections)
