#!/usr/bin/env python3
"""Measures programs of ports/ in a cage, built from the same source for Linux, and as Debian's own.

    scripts/programbench.py [--rows ROW,..] [-n N] [-q] [-o DIR] [--json] [--build]

The work is in tests/benchmarks/programs. Columns take turns, and all must print the same. A row is
called by its program and its file: `--rows python,"lua calls"`. --build first makes what is not
there: ports on both sides, and Debian's packages. A missing program is reported in a line and is
not an error. Exits with 1 if something failed, with 2 if called wrongly.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.machine import write_results
from bench.model import REPOSITORY, Failed
from bench.programs import columns, results, rows
from bench.progress import progress
from bench.sandbox.measure import Suite
from bench.tables import lines_of_json

ROUNDS, QUICK_ROUNDS = 7, 2


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=words, default=[], metavar="ROW,..", help="starts of rows' names (default: all)")
    parser.add_argument("-n", "--rounds", type=int, metavar="N", help=f"runs of each (default {ROUNDS})")
    parser.add_argument("-q", "--quick", action="store_true", help=f"{QUICK_ROUNDS} runs")
    parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="also write JSON and Markdown there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--note", default="", help="a sentence about the run, for its tables")
    parser.add_argument("-b", "--binary", type=Path, default=REPOSITORY / "target/release/lind-boot", metavar="FILE", help="lind-boot")
    parser.add_argument("--image", type=Path, default=REPOSITORY / "lindfs", metavar="DIR", help="the ports' root (default: lindfs)")
    parser.add_argument("--build", action="store_true", help="make what is missing, then measure")
    parser.add_argument("--list", action="store_true", help="print the rows")
    options = parser.parse_args(arguments)
    options.rounds = options.rounds if options.rounds is not None else QUICK_ROUNDS if options.quick else ROUNDS
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    return options


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
    chosen = rows.choose(rows.every_row(), options.rows)
    if options.list:
        print("\n".join(row.name for row in chosen))
        return 0
    if options.build:
        build(list(dict.fromkeys(row.words[0] for row in chosen)))
    image = options.image.resolve()
    (image / "tmp").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=image / "tmp", prefix="programbench.") as name:
        suite = Suite(columns.every_column(options.binary.resolve(), image), Path(name), options.rounds, warm_up=1)
        with progress(len(chosen) * options.rounds) as say:
            suite.run(chosen, suite.usable(), None, say)
        data = results.raw(suite, options.note)
    text = lines_of_json(data)
    print(text if options.json else results.markdown(data), end="")
    if options.out:
        for file in write_results(options.out, "programs", data, text, results.markdown(data)):
            print(f"wrote {file}", file=sys.stderr)
    for what, why in data["failed"].items():
        print(f"FAILED: {what}: {why}", file=sys.stderr)
    return 1 if data["failed"] else 0


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(parse(sys.argv[1:]))
    except Failed as failure:
        print(f"programbench: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("programbench: interrupted", file=sys.stderr)
        sys.exit(130)
