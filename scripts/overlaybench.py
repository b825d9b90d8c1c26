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
import signal
import sys
import tempfile
from pathlib import Path

from bench.building import CFLAGS, run_tool
from bench.machine import write_results
from bench.model import REPOSITORY, Failed
from bench.overlay import columns, compare, measure, results, workloads
from bench.progress import progress
from bench.tables import lines_of_json

CHILDREN = REPOSITORY / "tests/benchmarks/overlay"
# The parts of grates/overlay/state that keep a state.
LAYERS = ("vfs", "open", "state", "store", "blocks", "outside", "rows", "data", "slots", "layers")
ROUNDS, QUICK_ROUNDS = 7, 2
# A quick run only checks that all of it works.
QUICK = {"file_size_mib": 4, "cases": ["begin", "truncate", "mmap"], "modes": ["warm"], "read_files": 16, "state_files": [1]}


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def counts(text: str) -> list[int]:
    return [int(word) for word in words(text)]


def numbers(parser: argparse.ArgumentParser, title: str, **defaults: int) -> None:
    group = parser.add_argument_group(title)
    for name, value in defaults.items():
        group.add_argument(f"--{name.replace('_', '-')}", type=int, default=value, metavar="N", help=f"default {value}")


def parser_of_run() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=words, default=[], metavar="NAME,..", help="starts of names: read path, large edit, git, state")
    parser.add_argument("--columns", type=words, default=[], metavar="NAME,..", help="starts of names (default: all)")
    parser.add_argument("-n", "--rounds", type=int, metavar="N", help=f"default {ROUNDS}")
    parser.add_argument("-q", "--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds, smaller workloads")
    parser.add_argument("--child", choices=("c", "python"), default="c", help="language of the workloads (default c)")
    parser.add_argument("-b", "--binary", type=Path, default=REPOSITORY / "target/release/lind-boot", metavar="FILE", help="lind-boot")
    parser.add_argument("--image", type=Path, default=REPOSITORY / "lindfs", metavar="DIR", help="directory with the tools of cages (default: lindfs)")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where the directories are made (default: where temporary files are)")
    parser.add_argument("--timeout", type=float, default=180, metavar="SECONDS")
    parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="also write JSON and Markdown there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--note", default="", help="a sentence about the run, for its tables")
    parser.add_argument("--cc", default=os.environ.get("BENCH_CC", "cc"), help="the host's compiler")
    parser.add_argument("--modes", type=words, default=["cold", "warm"], help="modes of the read path (default cold,warm)")
    parser.add_argument("--cases", type=words, default=list(workloads.CASES), help=f"cases of the large edit (default {','.join(workloads.CASES)})")
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
    options.rounds = options.rounds if options.rounds is not None else QUICK_ROUNDS if options.quick else ROUNDS
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
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
        chosen = [column for column in every if not options.columns or column.name.startswith(tuple(options.columns))]
        suite = measure.Suite(chosen, Path(name), options.rounds, options.timeout)
        wanted = workloads.chosen(options)
        with progress(sum(options.rounds * workload.rounds_times + 1 for workload in wanted)) as say:
            for workload in wanted:
                suite.run(workload, say([workload.name]))
        kept = {name: value for name, value in vars(options).items() if name not in ("out", "json", "note", "dir", "binary", "image", "cc", "timeout")}
        data = results.raw(suite, kept | {"source": str(options.source or "")}, options.note)
    text = lines_of_json(data)
    print(text if options.json else results.markdown(data), end="")
    if options.out:
        for file in write_results(options.out, "overlay", data, text, results.markdown(data)):
            print(f"wrote {file}", file=sys.stderr)
    for what, why in data["failed"].items():
        print(f"FAILED: {what}: {why}", file=sys.stderr)
    return 1 if data["failed"] else 0


def run_compare(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="overlaybench.py compare", description="Prints the rows that became slower.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args(arguments)
    found = compare.changes(compare.load(options.old), compare.load(options.new))
    print(compare.text(found))
    return 1 if any(change.red for change in found) else 0


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run_compare(sys.argv[2:]) if sys.argv[1:2] == ["compare"] else run(parse(sys.argv[1:]))
    except Failed as failure:
        print(f"overlaybench: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("overlaybench: interrupted", file=sys.stderr)
        sys.exit(130)
