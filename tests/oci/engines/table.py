"""The table of `make oci-test`: a row for each case, and what is known to fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from bench.machine import machine

KNOWN = Path(__file__).with_name("known.toml")
# The most characters of a reason that the table shows.
WIDTH = 110


class Skipped(Exception):
    """Cannot be tested here: the reason."""


class Failed(Exception):
    """The reason of a failure."""


class Table:
    """Rows, which are printed as they come."""

    def __init__(self) -> None:
        text = KNOWN.read_text()
        self.known: dict[str, dict[str, str]] = tomllib.loads(text)
        self.rows: list[tuple[str, str, str, str]] = []
        # Of each runtime its raw times.
        self.speed: dict[str, dict[str, Any]] = {}

    def add(self, suite: str, case: str, failure: str | None) -> None:
        """Notes a case that ran; `failure` is None for a success."""
        reason = self.known.get(suite, {}).get(case)
        if failure is None:
            self.row(suite, case, "FAILED", "passes: take it out of known.toml") if reason else self.row(suite, case, "passed")
        elif reason:
            self.row(suite, case, "known", reason)
        else:
            self.row(suite, case, "FAILED", failure)

    def case(self, suite: str, name: str, test: Callable[..., None], *given: object, counts: bool = True) -> None:
        """Runs a case, and notes how it ends. Without `counts` a success is not noted."""
        try:
            test(*given)
        except Skipped as why:
            self.skip(suite, name, str(why))
        except (Failed, subprocess.SubprocessError, OSError, ValueError, LookupError) as why:
            self.add(suite, name, str(why) or repr(why))
        else:
            if counts:
                self.add(suite, name, None)

    def skip(self, suite: str, case: str, reason: str) -> None:
        self.row(suite, case, "skipped", self.known.get(suite, {}).get(case, reason))

    def note(self, suite: str, case: str, text: str) -> None:
        """A measurement."""
        self.row(suite, case, "measured", text)

    def row(self, suite: str, case: str, result: str, reason: str = "") -> None:
        self.rows.append((suite, case, result, reason))
        lines = [line for line in reason.strip().splitlines() if line.strip()] or [""]
        short = lines[0] if result == "known" else lines[0][:WIDTH]
        print(f"{suite:<14} {case:<64} {result:<8} {short}".rstrip(), flush=True)
        if result == "FAILED":
            for line in lines[1:60]:
                print(f"    {line[:300]}", flush=True)

    def count(self, result: str) -> int:
        return sum(row[2] == result for row in self.rows)

    def write(self, path: Path) -> None:
        """Writes all of it, for `scripts/performance_page.py`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"machine": machine(), "load": os.getloadavg(), "rows": self.rows, "speed": self.speed}, indent=1) + "\n")

    def end(self) -> int:
        """Prints what failed and the counts."""
        failed = [row for row in self.rows if row[2] == "FAILED"]
        for suite, case, _, reason in failed:
            print(f"FAILED {suite}: {case}: {reason.strip().splitlines()[0] if reason.strip() else ''}")
        print(f"{self.count('known')} known to fail (tests/oci/engines/known.toml has the reasons)")
        print(f"{self.count('passed')} passed, {len(failed)} failed, {self.count('skipped')} skipped")
        return 1 if failed else 0
