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
import signal
import sys
import tempfile
from pathlib import Path

from bench.machine import write_results
from bench.model import REPOSITORY, Failed
from bench.progress import progress
from bench.sandbox import columns, compare, components, memory, probes, profile, results, rows
from bench.sandbox.measure import Suite, local_server
from bench.tables import lines_of_json

COMMANDS = ("run", "compare", "profile")
RUNS, QUICK_RUNS = 30, 10
IDLE, QUICK_IDLE = 200, 20


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def add_columns(parser: argparse.ArgumentParser) -> None:
    boot = REPOSITORY / "target/release/lind-boot"
    parser.add_argument("-b", "--binary", type=Path, default=boot, metavar="FILE", help="lind-boot (default: the checkout's)")
    parser.add_argument("--image", type=Path, default=REPOSITORY / "lindfs", metavar="DIR", help="directory with the tools of cages (default: lindfs)")
    parser.add_argument("--container-image", default="alpine", metavar="IMAGE", help="for podman and docker (default: alpine)")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where workspaces are made (default: where temporary files are)")


def parser_of_all() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure (the default command)")
    add_columns(run)
    run.add_argument("--rows", type=words, default=[], metavar="ROW,..", help="starts of rows' names (default: all)")
    run.add_argument("--against", type=words, default=[], metavar="SANDBOX,..", help="starts of sandboxes' names (default: all)")
    run.add_argument("-n", "--runs", type=int, metavar="N", help=f"runs of each (default {RUNS})")
    run.add_argument("-q", "--quick", action="store_true", help=f"{QUICK_RUNS} runs, one to warm up, without slow rows")
    run.add_argument("-o", "--out", type=Path, metavar="DIR", help="also write JSON and Markdown there")
    run.add_argument("--network", action="store_true", help="also rows that use the network: a server of our own")
    run.add_argument("--json", action="store_true", help="print JSON in the format of hyperfine, for each row")
    run.add_argument("--only-rows", action="store_true", help="no probes, memory and components")
    run.add_argument("--note", default="", help="a sentence about the run, for its tables")
    run.add_argument("--list", action="store_true", help="print rows and sandboxes")
    run.add_argument("--cc", default=os.environ.get("BENCH_CC", "cc"), help="the host's compiler, for the probe")
    two = commands.add_parser("compare", help="print the changes between two results")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    one = commands.add_parser("profile", help="strace, perf stat and perf record of a row")
    add_columns(one)
    one.add_argument("row")
    one.add_argument("--column", default="lind", metavar="SANDBOX")
    one.add_argument("-o", "--out", type=Path, default=Path(), metavar="DIR")
    return parser


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = parser_of_all()
    known = arguments and (arguments[0] in COMMANDS or arguments[0] in ("-h", "--help"))
    options = parser.parse_args(arguments if known else ["run", *arguments])
    if options.command == "run":
        options.runs = options.runs if options.runs is not None else QUICK_RUNS if options.quick else RUNS
        if options.runs < 1:
            parser.error("--runs: at least 1")
    return options


def run(options: argparse.Namespace) -> int:
    every = columns.every_column(options.binary.resolve(), options.image.resolve(), options.container_image)
    chosen_columns = columns.choose(every, options.against)
    chosen_rows = rows.choose(rows.every_row(), options.rows, options.network, options.quick)
    if options.list:
        print("\n".join(["rows:", *(f"  {row.name}" for row in chosen_rows), "sandboxes:", *(f"  {c.name}" for c in chosen_columns)]))
        return 0
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="sandbench.") as name:
        suite = Suite(chosen_columns, Path(name), options.runs, *([1] if options.quick else []))
        data = measure(suite, chosen_rows, options)
    text = lines_of_json(data)
    print(text if options.json else results.markdown(data), end="")
    if options.out:
        for file in write_results(options.out, f"{data['platform']}-{data['arch']}", data, text, results.markdown(data)):
            print(f"wrote {file}", file=sys.stderr)
    for what, why in suite.failures.items():
        print(f"FAILED: {what}: {why}", file=sys.stderr)
    return 1 if suite.failures else 0


def measure(suite: Suite, chosen: list, options: argparse.Namespace) -> dict[str, object]:
    usable = suite.usable()
    facts: dict[str, object] = {"quick": options.quick, "note": options.note}
    with progress(len(chosen) * suite.runs + (0 if options.only_rows else 2 * len(usable))) as say, local_server() as port:
        suite.run(chosen, usable, port, say)
        if not options.only_rows:
            facts["isolation"], failed = probes.probe_all(usable, suite.place, options.cc, say)
            suite.missing |= {f"isolation, {name}": why for name, why in failed.items()}
            facts["memory"], failed = memory.measure_all(usable, suite.place, QUICK_IDLE if options.quick else IDLE, say)
            suite.missing |= {f"memory, {name}": why for name, why in failed.items()}
            facts["components"], failed = components.measure_all(options.binary.resolve(), suite.place, suite.runs, say)
            suite.missing |= {f"components, {name}": why for name, why in failed.items()}
    return results.raw(suite, usable, facts)


def run_compare(options: argparse.Namespace) -> int:
    old, new = compare.load(options.old), compare.load(options.new)
    print(compare.text(old, new))
    return 1 if any(change.verdict == "slower" for change in compare.changes(old, new)) else 0


def run_profile(options: argparse.Namespace) -> int:
    row = next((row for row in rows.every_row() if row.name == options.row), None)
    every = columns.every_column(options.binary.resolve(), options.image.resolve(), options.container_image)
    column = next((column for column in every if column.name == options.column), None)
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
    options = parse_arguments(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    actions = {"run": run, "compare": run_compare, "profile": run_profile}
    try:
        return actions[options.command](options)
    except (Failed, columns.Missing) as failure:
        print(f"sandbench: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("sandbench: interrupted", file=sys.stderr)
        sys.exit(130)
