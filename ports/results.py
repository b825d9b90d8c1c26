#!/usr/bin/env python3
"""Writes what came of ports' own tests into ports/RESULTS.md: ports/results.py NAME... Rows of other ports stay as they are."""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILDS = HERE.parent / "build" / "ports"
TABLE = HERE / "RESULTS.md"
HEAD = """\
# What the ports' own tests say

`make ports-test PORT="sed jq"` runs a port's own tests on Linux and in a cage, and writes its row
here. A case that passes on Linux only is a failure of ours, unless the reason is known.

| port | version | cases | pass on Linux | pass in a cage | skipped in a cage | on Linux only, and why |
|---|---|--:|--:|--:|--:|---|
"""


def verdicts(name: str, side: str) -> dict[str, str]:
    """The verdict of each case."""
    lines = (BUILDS / name / side / "tests.results").read_text().splitlines()
    return {case: verdict for case, verdict in (line.rsplit(" ", 1) for line in lines)}


def reasons(name: str) -> dict[str, str]:
    """The reasons for the known failures, by case."""
    known = HERE / name / "known"
    lines = known.read_text().splitlines() if known.exists() else []
    return {line.split()[0]: line.split(None, 1)[1] for line in lines if len(line.split()) > 1 and not line.startswith("#")}


def version(name: str) -> str:
    found = re.search(r"^(?:tarball=\S*?_(\S*?)(?:[+.]dfsg)?\.orig|version=(\S+)$)", (HERE / name / "recipe").read_text(), re.MULTILINE)
    return found[1] or found[2] if found else ""


def differences(linux: dict[str, str], cage: dict[str, str], known: dict[str, str]) -> str:
    """The cases that pass on Linux only, those of one reason together."""
    by_reason: dict[str, list[str]] = {}
    for case, verdict in linux.items():
        if verdict == "pass" and cage.get(case) != "pass":
            if cage.get(case) == "skip" and case not in known:
                why = "skipped"
            else:
                why = known.get(case, "not known")
            by_reason.setdefault(why, []).append(case)
    return "; ".join(f"{', '.join(cases)}: {why}" for why, cases in by_reason.items()).replace("|", "\\|")


def row(name: str) -> str:
    linux, cage = verdicts(name, "native"), verdicts(name, "cage")
    count = [sum(verdict == wanted for verdict in side.values()) for side, wanted in ((linux, "pass"), (cage, "pass"), (cage, "skip"))]
    cells = [name, version(name), str(len(linux)), *map(str, count), differences(linux, cage, reasons(name))]
    return "| " + " | ".join(cells) + " |"


def main(names: list[str]) -> None:
    rows = {}
    if TABLE.exists():
        rows = {line.split()[1]: line for line in TABLE.read_text().splitlines()[7:] if line.startswith("| ")}
    rows.update({name: row(name) for name in names})
    TABLE.write_text(HEAD + "".join(rows[name] + "\n" for name in sorted(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
