"""Writes the table, the JSON files, the comparison, and the drawing."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import sys
from pathlib import Path

from bench.budgets import KERNELS, verdicts
from bench.building import CFLAGS
from bench.machine import filesystem_of, first_line_of, machine
from bench.model import Row, Rows
from bench.session import Session
from bench.tables import lines_of_json


def ns_text(ns: float) -> str:
    return f"{ns:.0f}" if ns >= 100 else f"{ns:.1f}"


def kernels_row(rows: Rows) -> Row | None:
    """The geometric mean over the C kernels that have both columns."""
    kernels = [r for (test, _), r in rows.items() if test.startswith("CPU ") and r.ratio("lind")]
    if not kernels:
        return None
    mean = {c: math.exp(statistics.fmean(math.log(r.median(c)) for r in kernels)) for c in ("linux", "lind")}
    return Row(0, {column: [value] for column, value in mean.items()})


def all_rows(rows: Rows) -> list[tuple[str, str, Row]]:
    result = [(test, param, row) for (test, param), row in sorted(rows.items(), key=row_order)]
    mean = kernels_row(rows)
    return result + ([(KERNELS, "-", mean)] if mean else [])


def row_order(item: tuple[tuple[str, str], Row]) -> tuple[str, int]:
    (test, param), _ = item
    return test, int(param)


def cell(row: Row, column: str, none: str = "-", shape: str = " ({:.3f})") -> str:
    """A median, and the ratio to Linux after it, in this format."""
    median, ratio = row.median(column), row.ratio(column)
    if median is None:
        return none
    return ns_text(median) + (shape.format(ratio) if ratio is not None and column != "linux" else "")


def table(rows: Rows) -> str:
    from tabulate import tabulate

    lines = []
    for test, param, row in all_rows(rows):
        spreads = [row.spread(c) for c in ("linux", "lind", "grate") if c in row.values and row.loops]
        lines.append([test, param, *(cell(row, c) for c in ("linux", "lind", "grate")), row.loops or "-",
                      "/".join(f"{s:.0%}" for s in spreads) or "-", ", ".join(verdicts(test, param, row))])
    headers = ["TEST", "PARAM", "LINUX (ns)", "LIND (ns)", "GRATE (ns)", "ITERATIONS", "SPREAD", "BUDGET"]
    return tabulate(lines, headers, tablefmt="simple", disable_numparse=True)


def result_json(rows: Rows) -> dict[str, dict[str, dict[str, str]]]:
    result: dict[str, dict[str, dict[str, str]]] = {}
    for (test, param), row in sorted(rows.items(), key=row_order):
        entry = {column: ns_text(row.median(column)) for column in sorted(row.values)}
        result.setdefault(test, {})[param] = {**entry, "loops": str(row.loops)}
    return result


def raw_json(session: Session) -> dict[str, object]:
    options = session.options
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    loops: dict[str, dict[str, int]] = {}
    for (test, param), row in sorted(session.rows.items(), key=row_order):
        values.setdefault(test, {})[param] = row.values
        loops.setdefault(test, {})[param] = row.loops
    return {
        "rounds": options.rounds,
        "unit": "ns",
        "note": options.note,
        "load": list(os.getloadavg()),
        "machine": machine(),
        "filesystem": filesystem_of(options.lindfs),
        "flags": {"linux": [options.cc, *CFLAGS], "lind": ["scripts/lind_compile", *CFLAGS]},
        "versions": {
            "compiler": first_line_of([options.cc, "--version"]),
            "lind-boot": first_line_of([str(options.lind_boot), "--version"]),
            "commit": first_line_of(["git", "describe", "--always", "--dirty"]),
            "libc": " ".join(platform.libc_ver()),
            "python": platform.python_version(),
        },
        "values": values,
        "loops": loops,
        "budgets": {f"{t} {p}": v for t, p, r in all_rows(session.rows) if (v := verdicts(t, p, r))},
        "notes": session.notes,
        "skipped": session.skipped,
        "failed": session.failures,
    }


def raw_path(file: Path) -> Path:
    return file.with_name(f"{file.stem}.raw.json")


def changes(old: dict, old_raw: dict | None, rows: Rows) -> list[str]:
    """The rows that moved: the rounds of then and now do not overlap and the medians differ by 2 %. Without raw values: by 10 %."""
    result = []
    for (test, param), row in sorted(rows.items(), key=row_order):
        for column in ("linux", "lind", "grate"):
            before, now = old.get(test, {}).get(param, {}).get(column), row.median(column)
            if before is None or now is None or not float(before):
                continue
            change = now / float(before) - 1
            rounds = (old_raw or {}).get("values", {}).get(test, {}).get(param, {}).get(column)
            if rounds:
                new = row.values[column]
                beyond = abs(change) > 0.02 and (min(new) > max(rounds) or max(new) < min(rounds))
            else:
                beyond = abs(change) > 0.10
            if beyond:
                result.append(f"{test} {param} {column}: {before} -> {ns_text(now)} ns ({change:+.1%})")
    return result


def compare(old_file: Path, rows: Rows) -> str:
    old = json.loads(old_file.read_text())
    raw = raw_path(old_file)
    lines = changes(old, json.loads(raw.read_text()) if raw.exists() else None, rows)
    return "\n".join([f"Changes since {old_file}:", *(lines or ["none beyond noise"])])


def plot(file: Path, rows: Rows) -> None:
    """Bars of time relative to Linux, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [(f"{t} {p}", r) for t, p, r in all_rows(rows) if r.ratio("lind") or r.ratio("grate")][::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.4 * len(shown)))
    for offset, column, colour in ((0.2, "lind", "#4477aa"), (-0.2, "grate", "#ee6677")):
        bars = [(i + offset, r.ratio(column)) for i, (_, r) in enumerate(shown) if r.ratio(column)]
        if bars:
            drawn = axes.barh([b[0] for b in bars], [b[1] for b in bars], 0.38, label=column, color=colour)
            axes.bar_label(drawn, fmt="%.2f", padding=2, fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("time relative to native Linux (left of the line is faster)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)


def report(session: Session) -> None:
    options = session.options
    if options.out:
        options.out.write_text(json.dumps(result_json(session.rows), indent=2, sort_keys=True) + "\n")
        raw_path(options.out).write_text(lines_of_json(raw_json(session)))
    elif session.rows:
        print(table(session.rows))
    for note in session.notes:
        print(f"note: {note}", file=sys.stderr)
    for title, reason in session.skipped.items():
        print(f"skipped: {title}: {reason}", file=sys.stderr)
    for title, why in session.failures.items():
        print(f"FAILED: {title}: {why}", file=sys.stderr)
    if options.compare:
        print(compare(options.compare, session.rows))
    if options.plot:
        plot(options.plot, session.rows)
