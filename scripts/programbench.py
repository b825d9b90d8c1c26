#!/usr/bin/env python3
"""Measures programs of ports/ in a cage, built from the same source for Linux, and as Debian's own.

    scripts/programbench.py [--rows ROW,..] [-n N] [-q] [-o DIR] [--json] [--build]
    scripts/programbench.py compare OLD.json NEW.json

The work is in tests/benchmarks/programs. Columns take turns, and all must print the same. A row is
called by its program and its file: `--rows python,"lua calls"`. --build first makes what is not
there: ports on both sides, and Debian's packages. A missing program is reported in a line and is
not an error. Exits with 1 if something failed, with 2 if called wrongly.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import cli
from bench.model import REPOSITORY, Failed
from bench.programs import columns, results, rows
from bench.progress import progress
from bench.sandbox.measure import Suite


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = cli.parser_of(__doc__)
    cli.add_run(parser, 7, 2, "")
    parser.add_argument("--rows", type=cli.words, default=[], metavar="ROW,..", help="starts of rows' names (default: all)")
    parser.add_argument("--build", action="store_true", help="make what is missing, then measure")
    parser.add_argument("--list", action="store_true", help="print the rows")
    return parser.parse_args(arguments)


def build(programs: list[str]) -> None:
    """Builds both sides of the ports that rows name, and installs Debian's packages."""
    wanted = [columns.PROGRAMS[name] for name in programs]
    ports = [program.port for program in wanted]
    commands = [["scripts/setup.sh", *(program.package for program in wanted if program.package)], ["ports/build.sh", *ports],
                ["ports/build.sh", "--native", *ports]]
    for command in commands:
        if len(command) > 1 and subprocess.run(command, cwd=REPOSITORY, check=False).returncode:
            raise Failed(f"{' '.join(command)} failed; the lines above say why")


def run(options: argparse.Namespace) -> int:
    chosen = cli.chosen("--rows", rows.every_row(), options.rows, "row")
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    if options.build:
        build(list(dict.fromkeys(row.words[0] for row in chosen)))
    image, rounds = options.image.resolve(), cli.rounds_of(options)
    (image / "tmp").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=image / "tmp", prefix="programbench.") as name:
        suite = Suite(columns.every_column(options.binary.resolve(), image), Path(name), rounds, warm_up=1)
        with progress(len(chosen) * rounds) as say:
            suite.run(chosen, suite.usable(), None, say)
        return cli.report(results.REPORT, results.raw(suite, options.note), options)


def main() -> int:
    return cli.compare(results.REPORT, sys.argv[2:]) if sys.argv[1:2] == ["compare"] else run(parse(sys.argv[1:]))


if __name__ == "__main__":
    cli.start("programbench", main)
