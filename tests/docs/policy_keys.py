#!/usr/bin/env python3
"""The table of the keys of a policy in docs/sandbox.md: `run` fails where it differs from the types that are read.

    tests/docs/policy_keys.py    writes it
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import written

PAGE = "docs/sandbox.md"
BEGIN, END = "<!-- keys: written by tests/docs/policy_keys.py -->", "<!-- end of keys -->"
POLICY, LIMITS = "lind-boot/src/plan/policy.rs", "lind-boot/src/cli/sandbox.rs"
FIELD = re.compile(r"((?:    ///[^\n]*\n)+)(?:    #\[[^\n]*\n)*    pub (\w+):")


def fields(file: Path, name: str) -> Iterator[tuple[str, str]]:
    """The fields of a struct, and their comments."""
    body = file.read_text().split(f"pub struct {name} {{\n")[1].split("\n}\n")[0]
    found = FIELD.findall(body)
    if len(found) != len(re.findall(r"^    pub \w+:", body, re.MULTILINE)):
        raise ValueError(f"{file}: a field of {name} has no comment, or an attribute of several lines")
    for comment, field in found:
        yield field.replace("_", "-"), " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())


def table(top: Path) -> str:
    parts = {"protect": (POLICY, "Protect"), "limits": (LIMITS, "Amounts")}
    lines = ["| key | value |", "|---|---|"]
    for key, about in fields(top / POLICY, "Policy"):
        lines.append(f"| `{key}` | {about} |")
        if key in parts:
            file, name = parts[key]
            lines.extend(f"| `{key}.{inner}` | {what[0].lower()}{what[1:]} |" for inner, what in fields(top / file, name))
    return "\n".join(lines)


def wrong(top: Path) -> Iterator[str]:
    if written.between(top / PAGE, BEGIN, END)[1] != table(top):
        yield "the table of a policy's keys is not that of the types: tests/docs/policy_keys.py writes it"


if __name__ == "__main__":
    here = Path(__file__).resolve().parents[2]
    written.write(here / PAGE, BEGIN, END, table(here))
