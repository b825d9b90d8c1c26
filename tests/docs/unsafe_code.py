#!/usr/bin/env python3
"""The table of files with unsafe code in docs/threat-model.md: `run` fails where it differs from the source.

    tests/docs/unsafe_code.py    writes it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

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


def parts(top: Path) -> tuple[str, str, str]:
    """The text of the page before the table, the table, and the text after it."""
    before, rest = (top / PAGE).read_text().split(BEGIN)
    shown, after = rest.split(END)
    return before, shown.strip(), after


def wrong(top: Path) -> Iterator[str]:
    if parts(top)[1] != table(top):
        yield "the table of unsafe code is not the source's: tests/docs/unsafe_code.py writes it"


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[2]
    head, _, tail = parts(here)
    (here / PAGE).write_text(f"{head}{BEGIN}\n{table(here)}\n{END}{tail}")
