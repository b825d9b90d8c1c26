#!/usr/bin/env python3
"""The table of files with unsafe code in docs/threat-model.md: `run` fails where it differs from the source.

    tests/docs/unsafe_code.py    writes it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import written

PAGE = "docs/threat-model.md"
FOLDERS = ("src/abi", "src/kernel", "src/engine", "src/passes", "lind-boot/src")
BEGIN, END = "<!-- unsafe: written by tests/docs/unsafe_code.py -->", "<!-- end of unsafe -->"
NO_CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)


def table(top: Path) -> str:
    rows = []
    for folder in FOLDERS:
        for file in sorted((top / folder).rglob("*.rs")):
            name = str(file.relative_to(top))
            count = len(re.findall(r"\bunsafe\b(?!_)", NO_CODE.sub("", file.read_text())))
            if count and "tests" not in file.relative_to(top).parts[:-1] and file.stem != "tests" and "/examples/" not in name:
                rows.append((name, count))
    lines = [f"{sum(count for _, count in rows)} places in {len(rows)} files, tests and examples left out.", "", "| file | places |", "|---|---|"]
    return "\n".join([*lines, *(f"| `{name}` | {count} |" for name, count in rows)])


def wrong(top: Path) -> Iterator[str]:
    if written.between(top / PAGE, BEGIN, END)[1] != table(top):
        yield "the table of unsafe code is not the source's: tests/docs/unsafe_code.py writes it"


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[2]
    written.write(here / PAGE, BEGIN, END, table(here))
