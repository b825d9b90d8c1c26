#!/usr/bin/env python3
"""Writes the tables of tests/benchmarks/RESULTS.md, docs/performance.md and README.md from the raw results in tests/benchmarks/results.

    scripts/performance_page.py [--check]

--check writes nothing and exits with 1 if a page is out of date. New results:
`scripts/benchrunner.py -o benchmarks.json` makes benchmarks.raw.json, `scripts/sandbench.py --json`
sandbox.json, `scripts/programbench.py --json` programs.json, `scripts/packagebench.py --json`
package.json.
"""

from __future__ import annotations

from bench import cli
from bench.document import outdated
from bench.model import REPOSITORY


def main() -> int:
    parser = cli.parser_of(__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; name the pages that are out of date")
    options = parser.parse_args()
    changed = outdated()
    for path, text in changed.items():
        name = path.relative_to(REPOSITORY)
        if options.check:
            print(f"{name} is not as scripts/performance_page.py writes it")
        else:
            path.write_text(text)
            print(f"wrote {name}")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    cli.start("performance_page", main)
