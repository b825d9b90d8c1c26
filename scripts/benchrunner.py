#!/usr/bin/env python3
"""Runs tests/benchmarks natively, in a cage and behind grates, and puts the times side by side.

    scripts/benchrunner.py [-o result.json] [--rounds N] [--compare OLD.json] [--plot FILE] [PREFIX]...

A PREFIX selects benchmarks by the start of their file name; none selects all. tests/benchmarks/README.md explains what a
benchmark is. Writes the table to stdout or JSON to -o (with every value in a sibling .raw.json); builds in a directory of
its own under lindfs/, which it removes. Exits with 1 if a benchmark failed, 2 if it was called wrongly.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from bench import cli
from bench.model import REPOSITORY, Failed
from bench.report import report
from bench.selection import available, plan, select
from bench.session import Session


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    def at(path: str) -> Path:
        return Path(path).resolve()

    parser = cli.parser_of(__doc__)
    parser.add_argument("prefixes", nargs="*", metavar="PREFIX", help="start of a file name in tests/benchmarks")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="write JSON instead of the table")
    parser.add_argument("--rounds", type=cli.positive, default=5, metavar="N", help="runs of each column (default 5)")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="print what changed beyond noise")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratios, as .svg or .png")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where all columns run (default: lindfs)")
    parser.add_argument("--note", default="", help="a sentence about the run, kept with the raw values")
    parser.add_argument("--list", action="store_true", help="print the names that can be selected")
    parser.add_argument("--cc", default=os.environ.get("BENCH_CC", "clang-22"), help="native compiler")
    parser.add_argument("--benchmarks", type=at, default=REPOSITORY / "tests/benchmarks", help=argparse.SUPPRESS)
    parser.add_argument("--grates", type=at, default=REPOSITORY / "grates", help=argparse.SUPPRESS)
    parser.add_argument("--lindfs", type=at, default=REPOSITORY / "lindfs", help=argparse.SUPPRESS)
    parser.add_argument("--lind-boot", type=at, default=REPOSITORY / "target/release/lind-boot", help=argparse.SUPPRESS)
    parser.add_argument("--lind-compile", type=at, default=REPOSITORY / "scripts/lind_compile", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    # A wrong file is reported before anything is measured.
    if options.compare:
        check_old(parser, options.compare)
    if options.out:
        check_written(parser, "--out", options.out)
    if options.plot:
        check_written(parser, "--plot", options.plot)
        if options.plot.suffix not in (".svg", ".png"):
            parser.error(f"--plot: {options.plot}: the name ends in .svg or .png")
    return options


def check_old(parser: argparse.ArgumentParser, file: Path) -> None:
    if not file.exists():
        parser.error(f"--compare: {file} does not exist")
    try:
        old = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        parser.error(f"--compare: {file}: {error}")
    rows = [row for rows in old.values() if isinstance(rows, dict) for row in rows.values()] if isinstance(old, dict) else []
    if not rows or not all(isinstance(row, dict) for row in rows):
        parser.error(f"--compare: {file}: not a result of -o")


def check_written(parser: argparse.ArgumentParser, option: str, file: Path) -> None:
    if not file.parent.is_dir() or file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        parser.error(f"{option}: {file} cannot be written")


def require_packages(options: argparse.Namespace) -> None:
    wanted = [] if options.out else ["tabulate"]
    wanted += ["rich"] if sys.stderr.isatty() else []
    wanted += ["matplotlib"] if options.plot else []
    for package in wanted:
        try:
            __import__(package)
        except ImportError as error:
            raise Failed(f"python package {package} is missing: pip install -r scripts/requirements.txt") from error


def main() -> int:
    options = parse_arguments()
    names = available(options.benchmarks)
    if options.list:
        print("\n".join(names))
        return 0
    require_packages(options)
    groups = plan(options.benchmarks, names, select(names, options.prefixes))
    options.lindfs.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.dir or options.lindfs, prefix="bench.") as place:
        session = Session(options, Path(place))
        session.run(groups)
        report(session)
    return 1 if session.failures else 0


if __name__ == "__main__":
    cli.start("benchrunner", main)
