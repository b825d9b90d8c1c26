#!/usr/bin/env python3
"""Tests of scripts/packagebench.py; no timings. Run: tests/benchmarks/test_packagebench.py"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))

from bench import results as shared
from bench.model import Missing
from bench.package import columns, measure, results


class LyingBox(columns.Box):
    """Says something else, and writes less."""

    def run(self, words: object) -> bytes:
        return b"lies\n"

    def write(self, name: str, data: bytes) -> None:
        super().write(name, data[1:])


class Lying(columns.Column):
    name = "lying"

    @contextlib.contextmanager
    def sandbox(self, workspace: Path) -> Iterator[columns.Box]:
        yield LyingBox(workspace)

    def first(self, home: Path) -> bytes:
        return b"lies\n"


class Absent(columns.Bubblewrap):
    """A column whose program is not installed."""

    name = "absent"

    def check(self) -> None:
        columns.found("no-such-program")


class Turns(unittest.TestCase):
    def run_all(self, every: list[columns.Column]) -> measure.Turns:
        with tempfile.TemporaryDirectory() as place:
            turns = measure.Turns(every, Path(place), 3)
            usable = turns.usable()
            for row in measure.every_row(3):
                turns.run(row, usable, lambda: None)
            self.data = results.raw(turns, "")
            self.assertEqual(list(Path(place).iterdir()), [])
        return turns

    def test_every_row_of_a_column_is_measured(self) -> None:
        turns = self.run_all([columns.Column()])
        self.assertEqual({row: {name: len(found) for name, found in of.items()} for row, of in turns.rows.items()},
                         {row.name: {"bare": 3} for row in measure.every_row(3)})
        self.assertEqual((turns.failed, turns.missing), ({}, {}))
        page = shared.markdown(results.REPORT, json.loads(json.dumps(self.data)))
        for row in turns.rows:
            self.assertIn(f"| {row} |", page)

    def test_another_answer_is_a_failure_of_its_row_and_column(self) -> None:
        turns = self.run_all([columns.Column(), Lying()])
        self.assertEqual(set(turns.failed), {f"{row.name}, lying" for row in measure.every_row(3)})
        self.assertTrue(all(set(of) == {"bare"} for of in turns.rows.values()))

    def test_a_missing_program_is_a_line(self) -> None:
        turns = self.run_all([columns.Column(), Absent()])
        self.assertEqual((turns.failed, turns.missing), ({}, {"absent": "no-such-program is not installed"}))

    def test_no_command_of_the_package_runs_in_another_image(self) -> None:
        with self.assertRaises(Missing):
            columns.Lind(REPOSITORY / "target/release/lind-boot", REPOSITORY / "tests").check()


@unittest.skipUnless((REPOSITORY / "target/release/lind-boot").exists() and (REPOSITORY / "lindfs/bin/echo").exists(), "lind-boot and the tools are not built")
class Whole(unittest.TestCase):
    def test_a_run(self) -> None:
        done = subprocess.run([REPOSITORY / "scripts/packagebench.py", "-n", "1", "--count", "2", "--columns", "bare,lind", "--json"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        data = json.loads(done.stdout)
        self.assertEqual(data["failed"], {})
        rows = {row: sorted(of) for row, of in data["rows"].items()}
        *every, first = (row.name for row in measure.every_row(2))
        # Only a wheel that is built can be installed.
        self.assertIn("bare", rows.pop(first))
        self.assertEqual(rows, {name: ["bare", "lind"] for name in every})

    def test_a_wrong_column_is_said(self) -> None:
        done = subprocess.run([REPOSITORY / "scripts/packagebench.py", "--columns", "nosuch"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no column's name starts with 'nosuch'", done.stderr)


if __name__ == "__main__":
    unittest.main()
