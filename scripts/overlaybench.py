#!/usr/bin/env python3
"""Measures what an overlay costs: reading a tree, a small change of a large file, work with git.

    scripts/overlaybench.py [--workloads NAME,..] [--columns NAME,..] [-n N] [--quick] [--child c|python] [-o DIR] [--json]
    scripts/overlaybench.py compare OLD.json NEW.json

Columns: the bare command, a cage, a cage with an overlay whose state is a file or a directory (`overlay-dir`), overlayfs and
fuse-overlayfs where they mount. They take turns, and all must see the
same; the directory below the overlays must not change. Exits with 1 if something failed or (compare) a median is more than 5 % and more than
10 ms slower; with 2 if called wrongly or the two results do not go together. tests/benchmarks/README.md says more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench import cli
from bench.building import CFLAGS, run_tool
from bench.model import REPOSITORY
from bench.overlay import columns, measure, results, workloads
from bench.progress import progress

CHILDREN = REPOSITORY / "tests/benchmarks/overlay"
# The parts of grates/overlay/state that keep a state.
LAYERS = ("vfs", "open", "state", "store", "blocks", "outside", "rows", "data", "slots", "layers")
# A quick run only checks that all of it works.
QUICK = {"file_size_mib": 4, "cases": ["begin", "truncate", "mmap"], "modes": ["warm"], "read_files": 16, "state_files": [1]}
# Options that say nothing about the work.
ASIDE = ("out", "json", "note", "dir", "binary", "image", "cc", "timeout", "numbers")


def counts(text: str) -> list[int]:
    return [int(word) for word in cli.words(text)]


def numbers(parser: argparse.ArgumentParser, title: str, **defaults: int) -> None:
    group = parser.add_argument_group(title)
    for name, value in defaults.items():
        group.add_argument(f"--{name.replace('_', '-')}", type=int, default=value, metavar="N", help=f"default {value}")


def parser_of_run() -> argparse.ArgumentParser:
    parser = cli.parser_of(__doc__)
    cli.add_run(parser, 7, 2, ", smaller workloads")
    parser.add_argument("--workloads", type=cli.words, default=[], metavar="NAME,..", help="starts of names: read path, large edit, git, state")
    parser.add_argument("--columns", type=cli.words, default=[], metavar="NAME,..", help="starts of names (default: all)")
    parser.add_argument("--child", choices=("c", "python"), default="c", help="language of the workloads (default c)")
    parser.add_argument("--timeout", type=float, default=180, metavar="SECONDS")
    parser.add_argument("--cc", default=os.environ.get("BENCH_CC", "cc"), help="the host's compiler")
    parser.add_argument("--modes", type=cli.words, default=["cold", "warm"], help="modes of the read path (default cold,warm)")
    parser.add_argument("--cases", type=cli.words, default=list(workloads.CASES), help=f"cases of the large edit (default {','.join(workloads.CASES)})")
    numbers(parser, "read path", files=8, dirs=2, file_size_bytes=65536, scan_bytes=1024, stat_iterations=8, readdir_iterations=8,
            open_iterations=8, open_read_bytes=512, repeated_read_iterations=8, repeated_read_files=4)
    numbers(parser, "large edit", file_size_mib=50)
    numbers(parser, "git", read_files=64, read_bytes=4096, edit_files=8)
    parser.add_argument("--state-files", type=counts, default=[1, 10000], metavar="N,..", help="changed files of states (default 1,10000)")
    parser.add_argument("--source", type=Path, metavar="PATH", help="a repository instead of one that is made")
    parser.add_argument("--search-token", default="OVERLAY_TOKEN", metavar="WORD")
    parser.add_argument("--skip-fsck", action="store_true")
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = parser_of_run()
    options = parser.parse_args(arguments)
    if options.quick:
        parser.set_defaults(**QUICK)
        options = parser.parse_args(arguments)
    options.rounds = cli.rounds_of(options)
    for given, known in (options.modes, ("cold", "warm")), (options.cases, workloads.CASES):
        if set(given) - set(known):
            parser.error(f"{','.join(sorted(set(given) - set(known)))}: not one of {','.join(known)}")
    return options


def times_layers(made: Path) -> Path:
    """The overlay's own sources, with a main that calls them."""
    overlay, sqlite = REPOSITORY / "grates/overlay", REPOSITORY / "build/sqlite"
    sources = [CHILDREN / "layers/layers.c", *(overlay / "state" / f"{name}.c" for name in LAYERS), sqlite / "sqlite3.o"]
    run_tool(["make", "-C", str(overlay)], "make")
    run_tool([str(REPOSITORY / "scripts/lind_compile"), "-O2", "-std=c11", "-D_GNU_SOURCE", f"-I{overlay / 'state'}", f"-I{sqlite}", "-o", str(made), *map(str, sources)], "lind_compile")
    return made


def children(options: argparse.Namespace, place: Path) -> columns.Children:
    tool = place / "tool"
    native, cage, script = tool / "child", tool / "child.cwasm", tool / "child.py"
    tool.mkdir()
    script.write_text((CHILDREN / "child.py").read_text())
    if options.child == "c":
        sources = [str(file) for file in sorted(CHILDREN.glob("*.c"))]
        run_tool([options.cc, *CFLAGS, "-o", str(native), *sources], "native compile")
        run_tool([str(REPOSITORY / "scripts/lind_compile"), *CFLAGS, "-o", str(cage), *sources], "lind_compile")
    return columns.Children(options.child, native, cage, script, times_layers(tool / "layers.cwasm"))


def run(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="overlaybench.") as name:
        every = columns.every_column(children(options, Path(name)), options.binary.resolve(), options.image.resolve())
        turns = measure.Turns(cli.chosen("--columns", every, options.columns, "column"), Path(name), options.rounds, options.timeout)
        wanted = workloads.chosen(options)
        with progress(sum(options.rounds * workload.rounds_times + 1 for workload in wanted)) as say:
            for workload in wanted:
                turns.run(workload, say([workload.name]))
        kept = {name: value for name, value in vars(options).items() if name not in ASIDE}
        return cli.report(results.REPORT, results.raw(turns, kept | {"source": str(options.source or "")}, options.note), options)


def main() -> int:
    return cli.compare(results.REPORT, sys.argv[2:]) if sys.argv[1:2] == ["compare"] else run(parse(sys.argv[1:]))


if __name__ == "__main__":
    cli.start("overlaybench", main)
