"""The parts of pages that are made from raw results, so that no page quotes a number by hand.

Such a part is between `<!-- NAME: written by scripts/performance_page.py -->` and `<!-- end of NAME
-->`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from bench import containers, servers, tier
from bench.budgets import verdicts
from bench.model import REPOSITORY, Failed, Row, Rows
from bench.overlay import results as overlay
from bench.package import results as package
from bench.programs import results as programs
from bench.report import KERNELS, all_rows, cell, kernels_row
from bench.results import Report, tables
from bench.sandbox import results as sandbox
from bench.tables import grid, with_unit

RESULTS = Path("tests/benchmarks/results")
COMMAND = "scripts/performance_page.py"

# README's rows: their titles, benchmark and param, and the row whose grate they show.
NUMBERS = [
    ("geteuid", "Geteuid", "0", "Geteuid"),
    ("read, 1 byte", "Read", "1", "Read"),
    ("write, 4,096 bytes", "Write", "4096", "Write"),
    ("open and close", "Open+close", "0", "Open+close"),
    ("pipe, 1 byte", "Pipe", "1", ""),
    ("fork and exec", "Fork+exec", "0", ""),
    ("start of a program", "Startup", "0", ""),
]


def rows_of(raw: dict) -> Rows:
    """The rows of a benchmark runner's raw file."""
    return {(test, param): Row(raw["loops"][test][param], columns)
            for test, params in raw["values"].items() for param, columns in params.items()}


def benchmarks(raw: dict) -> str:
    """Every row of the benchmark runner."""
    lines = []
    for test, param, row in all_rows(rows_of(raw)):
        cells = [cell(row, column, "", " ({:.2f}x)") for column in ("linux", "lind", "grate")]
        spreads = "/".join(f"{row.spread(c):.0%}" for c in row.values if len(row.values[c]) > 1)
        lines.append([test, param, *cells, spreads, ", ".join(verdicts(test, param, row))])
    return f"{about(raw)}\n\n" + grid(["", "param", "Linux, ns", "cage, ns", "behind a grate, ns", "spread", "budget"], lines)


def about(raw: dict) -> str:
    """The facts about a run, as one line."""
    facts = raw["machine"]
    known = [facts.get("cpu"), f"{facts['cpus']} processors" if "cpus" in facts else "", facts.get("memory"), facts.get("kernel"),
             raw.get("filesystem", "").partition(" ")[0], f"load {raw['load'][0]:.1f}" if "load" in raw else "",
             f"lind-boot of {raw['versions']['commit']}" if "versions" in raw else ""]
    note = f" {raw['note']}" if raw.get("note") else ""
    return f"Medians of {raw['rounds']} rounds in turn. {', '.join(filter(None, known))}.{note}"


def numbers(raw: dict) -> str:
    """README's short table."""
    rows = rows_of(raw)

    def value(key: tuple[str, str], column: str) -> str:
        ns = rows[key].median(column) if key in rows else None
        return with_unit(ns) if ns is not None else ""

    lines = [[name, value((test, param), "linux"), value((test, param), "lind"), value((grate, param), "grate")]
             for name, test, param, grate in NUMBERS]
    mean = kernels_row(rows)
    if mean:
        lines.append([KERNELS.replace("geomean", "geometric mean"), "1", f"{mean.ratio('lind'):.2f}", ""])
    return grid(["", "Linux", "in a cage", "behind a grate"], lines)


def section(sections: Callable[[dict], list[tuple[str, str]]], wanted: str, rows: tuple[str, ...] = ()) -> Callable[[dict], str]:
    """The table of that title alone; with `rows`, those alone."""
    def part(raw: dict) -> str:
        lines = dict(sections(raw))[wanted].split("\n")
        return "\n".join(line for line in lines[:2] + [line for line in lines[2:] if not rows or line.split("|")[1].strip() in rows])
    return part


def suite(of: Report) -> Callable[[dict], str]:
    """All tables of a suite."""
    return lambda raw: "\n\n".join(tables(of, raw, "###"))


# The parts of pages: page, name, raw file, and the function that makes the part.
RESULTS_PAGE, PAGE = "tests/benchmarks/RESULTS.md", "docs/performance.md"
PARTS: list[tuple[str, str, str, Callable[[dict], str]]] = [
    ("README.md", "numbers", "benchmarks.raw.json", numbers),
    (RESULTS_PAGE, "benchmarks", "benchmarks.raw.json", benchmarks),
    (RESULTS_PAGE, "programs", "programs.json", suite(programs.REPORT)),
    (RESULTS_PAGE, "sandboxes", "sandbox.json", suite(sandbox.REPORT)),
    (RESULTS_PAGE, "overlays", "overlay.json", suite(overlay.REPORT)),
    (RESULTS_PAGE, "package", "package.json", suite(package.REPORT)),
    (PAGE, "numbers", "benchmarks.raw.json", numbers),
    (PAGE, "each", "programs.json", section(programs.sections, "Each program")),
    (PAGE, "commands", "sandbox.json", section(sandbox.sections, "Commands", ("true", "python", "git-status", "file-write", "small-files"))),
    (PAGE, "git", "overlay.json", section(overlay.sections, "Git")),
    (PAGE, "package", "package.json", section(package.sections, package.TITLE)),
    ("docs/servers.md", "loads", "servers.json", servers.table),
    ("docs/tier.md", "tier", "tier.json", tier.table),
    ("docs/oci.md", "speed", "containers.json", containers.speed),
]


def replaced(text: str, name: str, part: str) -> str:
    """The page's text with another part between its marks."""
    begin, end = f"<!-- {name}: written by {COMMAND} -->", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise Failed(f"no part {name!r} between `{begin}` and `{end}`")
    return f"{before}{begin}\n{part}\n{end}{after}"


def pages(top: Path = REPOSITORY) -> dict[Path, str]:
    """The correct text of each page."""
    texts: dict[Path, str] = {}
    for page, name, file, render in PARTS:
        path = top / page
        try:
            raw = json.loads((top / RESULTS / file).read_text())
            texts[path] = replaced(texts.get(path) or path.read_text(), name, render(raw))
        except Failed as failure:
            raise Failed(f"{page}: {failure}") from failure
        except (OSError, ValueError, KeyError) as error:
            raise Failed(f"{page}: {RESULTS / file}: {error!r}") from error
    return texts


def outdated(top: Path = REPOSITORY) -> dict[Path, str]:
    """The pages that are out of date, with their correct text."""
    return {path: text for path, text in pages(top).items() if path.read_text() != text}
