"""The table itself: a suite that breaks down, or tests nothing, is a failure, and loses no rows."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import containerd
import cri
from table import Failed, Skipped, Table

SUITE = "harness"


def results(act: Callable[[Table], None]) -> list[str]:
    """The results of the rows of a table of its own, which is not printed."""
    table = Table()
    with contextlib.redirect_stdout(io.StringIO()):
        act(table)
    return [row[2] for row in table.rows]


def equals(found: object, expected: object, what: object) -> None:
    if found != expected:
        raise Failed(f"{what}: {found!r}, expected {expected!r}")


def breakdowns_are_rows() -> None:
    def raising(why: Exception) -> Callable[..., None]:
        def suite(_: Table) -> None:
            raise why

        return suite

    ends = {
        Failed("why"): "FAILED", OSError("why"): "FAILED", ValueError("why"): "FAILED", subprocess.TimeoutExpired("x", 1): "FAILED",
        subprocess.CalledProcessError(1, "x"): "FAILED", Skipped("why"): "skipped",
    }
    for why, result in ends.items():
        equals(results(lambda table, why=why: table.case("x", "all", raising(why), table, counts=False)), [result], repr(why))
    equals(results(lambda table: table.case("x", "all", lambda _: None, table, counts=False)), [], "a suite without rows of its own")


def reports_of_critest() -> None:
    def spec(kind: str, state: str) -> dict[str, Any]:
        return {"LeafNodeType": kind, "LeafNodeText": state, "State": state}

    before, fine, skipped, wrong = spec("BeforeSuite", "passed"), spec("It", "passed"), spec("It", "skipped"), spec("It", "failed")
    with tempfile.TemporaryDirectory() as made:
        report = Path(made) / "report.json"
        for specs, status, selected, expected in (
            ([before, fine, skipped], 0, False, ["passed", "skipped"]),
            ([before, fine, wrong], 1, False, ["passed", "FAILED"]),
            ([spec("BeforeSuite", "failed"), skipped], 1, False, ["FAILED", "skipped", "FAILED"]),
            ([before, skipped], 0, False, ["skipped", "FAILED"]),
            ([before, skipped], 0, True, ["FAILED"]),
            ([before, wrong], 1, True, ["FAILED"]),
            ([before, fine], 2, False, ["passed", "FAILED"]),
            ([], 0, False, ["FAILED"]),
        ):
            report.write_text(json.dumps([{"SpecReports": specs}]))
            equals(results(lambda table, status=status, selected=selected: cri.note(table, report, status, selected)), expected, specs)
        report.unlink()
        equals(results(lambda table: cri.note(table, report, 1, False)), ["FAILED"], "no report")


def a_dead_daemon_is_cleared_up() -> None:
    """The end of a daemon that does not answer: its process is gone, and nothing is raised."""
    with tempfile.TemporaryDirectory() as made, subprocess.Popen(["sleep", "1000"]) as running:
        containerd.end(containerd.Daemon(Path(made)), running)
        equals(running.poll() is None, False, "the process runs")


CASES = [breakdowns_are_rows, reports_of_critest, a_dead_daemon_is_cleared_up]


def run(table: Table, only: str = "") -> None:
    for case in CASES:
        if only in case.__name__:
            table.case(SUITE, case.__name__, case)
