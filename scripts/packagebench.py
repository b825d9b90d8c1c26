#!/usr/bin/env python3
"""Times sandboxes as a program uses them: the Python package beside bubblewrap and containers.

    scripts/packagebench.py [--columns NAME,..] [--count N] [-n N] [-q] [-o DIR] [--json]
    scripts/packagebench.py compare OLD.json NEW.json

Rows: make a sandbox, run a command and end it; a command in a sandbox that is there; many sandboxes at once; a file of 1 MiB; the first
program after installing the wheel that dist has, with an empty home.
Bubblewrap keeps no sandbox, so that each of its commands makes one. The columns take turns, and their answers are looked at. Programs that are not
installed are lines. Exits with 1 if something failed or (compare) became slower, with 2 if called wrongly.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench import cli
from bench.package import columns, measure, results
from bench.progress import progress

COUNT, QUICK_COUNT = 100, 8


def parser_of_run() -> argparse.ArgumentParser:
    parser = cli.parser_of(__doc__)
    cli.add_run(parser, 10, 2, f", {QUICK_COUNT} sandboxes at once")
    parser.add_argument("--container-image", default="alpine", metavar="IMAGE", help="for podman and docker (default: alpine)")
    parser.add_argument("--columns", type=cli.words, default=[], metavar="NAME,..", help="starts of names (default: all)")
    parser.add_argument("--count", type=cli.positive, metavar="N", help=f"sandboxes at once (default {COUNT})")
    return parser


def run(options: argparse.Namespace) -> int:
    every = columns.every_column(options.binary.resolve(), options.image.resolve(), options.container_image)
    count = options.count or (QUICK_COUNT if options.quick else COUNT)
    rows = measure.every_row(count)
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="packagebench.") as name:
        turns = measure.Turns(cli.chosen("--columns", every, options.columns, "column"), Path(name), cli.rounds_of(options))
        usable = turns.usable()
        with progress(len(rows) * turns.rounds) as say:
            for row in rows:
                turns.run(row, usable, say([row.name]))
        return cli.report(results.REPORT, results.raw(turns, options.note), options)


def main() -> int:
    return cli.compare(results.REPORT, sys.argv[2:]) if sys.argv[1:2] == ["compare"] else run(parser_of_run().parse_args(sys.argv[1:]))


if __name__ == "__main__":
    cli.start("packagebench", main)
