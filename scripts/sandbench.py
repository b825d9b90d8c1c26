#!/usr/bin/env python3
"""Compares `lind-boot run` with the bare command and with other sandboxes: time, what they refuse, memory.

    scripts/sandbench.py [--rows ROW,..] [--against SANDBOX,..] [-n N] [-q] [-o DIR] [--network] [--json]
    scripts/sandbench.py compare OLD.json NEW.json
    scripts/sandbench.py profile ROW [--column SANDBOX] [-o DIR]

Every command is executed directly: /bin/true is the program, not what a shell has built in. The columns of a row take turns, and
all must give the same answer. Sandboxes and tools that are not installed are a line, not an error. Exits with 1 if a command
failed, gave another answer or (compare) became slower by more than 5 % and more than the noise; with 2 if called wrongly.
tests/benchmarks/README.md says more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench import cli
from bench.model import Failed, Missing, NotOffered
from bench.progress import progress
from bench.sandbox import columns, components, memory, probes, profile, results, rows
from bench.sandbox.measure import Suite, local_server

IDLE, QUICK_IDLE = 200, 20


def add_columns(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--container-image", default="alpine", metavar="IMAGE", help="for podman and docker (default: alpine)")


def parser_of_run() -> argparse.ArgumentParser:
    parser = cli.parser_of(__doc__)
    cli.add_run(parser, 30, 10, ", one to warm up, without slow rows")
    add_columns(parser)
    parser.add_argument("--rows", type=cli.words, default=[], metavar="ROW,..", help="starts of rows' names (default: all)")
    parser.add_argument("--against", type=cli.words, default=[], metavar="SANDBOX,..", help="starts of sandboxes' names (default: all)")
    parser.add_argument("--network", action="store_true", help="also rows that use the network: a server of our own")
    parser.add_argument("--only-rows", action="store_true", help="no probes, memory and components")
    parser.add_argument("--list", action="store_true", help="print rows and sandboxes")
    parser.add_argument("--cc", default=os.environ.get("BENCH_CC", "cc"), help="the host's compiler, for the probe")
    return parser


def parser_of_profile() -> argparse.ArgumentParser:
    parser = cli.parser_of("Shows where the time of a row goes: strace, perf stat and perf record.", prog="sandbench.py profile")
    cli.add_places(parser)
    add_columns(parser)
    parser.add_argument("row")
    parser.add_argument("--column", default="lind", metavar="SANDBOX")
    parser.add_argument("-o", "--out", type=Path, default=Path(), metavar="DIR")
    return parser


def every_column(options: argparse.Namespace) -> list[columns.Column]:
    return columns.every_column(options.binary.resolve(), options.image.resolve(), options.container_image)


def run(options: argparse.Namespace) -> int:
    chosen_columns = columns.choose(every_column(options), options.against)
    chosen_rows = rows.choose(rows.every_row(), options.rows, options.network, options.quick)
    if options.list:
        print("\n".join(["rows:", *(f"  {row.name}" for row in chosen_rows), "sandboxes:", *(f"  {c.name}" for c in chosen_columns)]))
        return 0
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="sandbench.") as name:
        suite = Suite(chosen_columns, Path(name), cli.rounds_of(options), *([1] if options.quick else []))
        return cli.report(results.REPORT, measure(suite, chosen_rows, options), options)


def measure(suite: Suite, chosen: list, options: argparse.Namespace) -> dict[str, object]:
    usable = suite.usable()
    facts: dict[str, object] = {"quick": options.quick, "note": options.note}
    count = QUICK_IDLE if options.quick else IDLE
    with progress(len(chosen) * suite.runs + (0 if options.only_rows else 2 * len(usable))) as say, local_server() as port:
        suite.run(chosen, usable, port, say)
        if not options.only_rows:
            facts["isolation"] = of_each(suite, usable, "isolation", say, lambda column: probes.probe(column, suite.place, options.cc))
            facts["memory"] = of_each(suite, usable, f"memory of {count}", say, lambda column: memory.measure(column, suite.place, count))
            facts["components"], failed = components.measure_all(options.binary.resolve(), suite.place, suite.runs, say)
            suite.missing |= {f"components, {name}": why for name, why in failed.items()}
    return results.raw(suite, usable, facts)


def of_each(suite: Suite, usable: list[columns.Column], what: str, say, take) -> dict[str, object]:
    """The findings of `take` about each column; a line gives the reason for one without them."""
    found = {}
    for column in usable:
        step = say([f"{what}, {column.name}"])
        try:
            found[column.name] = take(column)
        except (Failed, Missing, NotOffered) as reason:
            suite.missing[f"{what}, {column.name}"] = str(reason)
        step()
    return found


def run_profile(options: argparse.Namespace) -> int:
    row = next((row for row in rows.every_row() if row.name == options.row), None)
    column = next((column for column in every_column(options) if column.name == options.column), None)
    if row is None or column is None:
        raise Failed(f"there is no {'row ' + options.row if row is None else 'sandbox ' + options.column}; --list prints them")
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="sandbench.") as name:
        workspace = Path(name) / "workspace"
        workspace.mkdir()
        row.make(workspace)
        column.check()
        files, lines = profile.profile(row, column, workspace, options.out.resolve() / f"{row.name}-{column.name.replace(' ', '-')}")
    print("\n".join([*map(str, files), *lines]))
    return 0 if files else 1


def main() -> int:
    command, rest = (sys.argv[1], sys.argv[2:]) if sys.argv[1:2] and sys.argv[1] in ("run", "compare", "profile") else ("run", sys.argv[1:])
    if command == "compare":
        return cli.compare(results.REPORT, rest)
    return run_profile(parser_of_profile().parse_args(rest)) if command == "profile" else run(parser_of_run().parse_args(rest))


if __name__ == "__main__":
    cli.start("sandbench", main)
