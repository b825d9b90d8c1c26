"""The common part of the command lines: options, the end of a run, the comparison of two."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from bench import results
from bench.model import REPOSITORY, Failed, Missing
from bench.tables import lines_of_json


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def parser_of(doc: str, **more) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter, **more)


def add_places(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-b", "--binary", type=Path, default=REPOSITORY / "target/release/lind-boot", metavar="FILE", help="lind-boot (default: the checkout's)")
    parser.add_argument("--image", type=Path, default=REPOSITORY / "lindfs", metavar="DIR", help="directory with the tools of cages (default: lindfs)")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where workspaces are made (default: where temporary files are)")


def add_run(parser: argparse.ArgumentParser, rounds: int, quick: int, quick_help: str) -> None:
    """The options of a run; `rounds_of` has their number."""
    add_places(parser)
    parser.add_argument("-n", "--rounds", "--runs", type=positive, metavar="N", help=f"runs of each (default {rounds})")
    parser.add_argument("-q", "--quick", action="store_true", help=f"{quick} runs{quick_help}")
    parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="also write JSON and Markdown there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--note", default="", help="a sentence about the run, for its tables")
    parser.set_defaults(numbers=(rounds, quick))


def rounds_of(options: argparse.Namespace) -> int:
    return options.rounds or options.numbers[options.quick]


def chosen(option: str, every: list, wanted: list[str], kind: str) -> list:
    """Those whose names start with one of these words; without words all."""
    for word in wanted:
        if not any(one.name.startswith(word) for one in every):
            raise Failed(f"{option}: no {kind}'s name starts with {word!r}; there are: {', '.join(one.name for one in every)}")
    return [one for one in every if not wanted or one.name.startswith(tuple(wanted))]


def report(suite: results.Report, data: dict, options: argparse.Namespace) -> int:
    """Prints and writes the results of a run; returns the status."""
    text, page = lines_of_json(data), results.markdown(suite, data)
    print(text if options.json else page, end="")
    if options.out:
        for file in results.write(options.out, suite.file.format(**data), data, text, page):
            print(f"wrote {file}", file=sys.stderr)
    for what, why in data["failed"].items():
        print(f"FAILED: {what}: {why}", file=sys.stderr)
    return 1 if data["failed"] else 0


def compare(suite: results.Report, arguments: list[str]) -> int:
    """`REPORT compare OLD.json NEW.json`: 1 if anything became slower."""
    parser = argparse.ArgumentParser(prog=f"{suite.name}.py compare", description="Prints the rows that changed.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args(arguments)
    old, new = results.load(options.old, suite), results.load(options.new, suite)
    print(results.compare_text(suite, old, new))
    return 1 if any(change.verdict == "slower" for change in results.changes(suite, old, new)) else 0


def start(name: str, action: Callable[[], int]) -> None:
    """The main of a script: 2 if it was called wrongly, 130 if it was interrupted."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(action())
    except (Failed, Missing) as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        # The temporary files of the run are removed by now.
        print(f"{name}: interrupted", file=sys.stderr)
        sys.exit(130)
