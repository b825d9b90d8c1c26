#!/usr/bin/env python3
"""Tests of scripts/overlaybench.py; no timings. Run: tests/benchmarks/test_overlaybench.py"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))

import overlaybench
from bench import cli
from bench import results as shared
from bench.building import CFLAGS
from bench.model import Failed
from bench.overlay import columns, results
from bench.overlay.measure import Turns
from bench.overlay.workloads import CASES, Git, LargeEdit, ReadPath

CHILDREN = REPOSITORY / "tests/benchmarks/overlay"
# A stand-in for lind-boot with overlays: it runs the command in the directory itself.
FAKE_BOOT = """#!/bin/sh
[ "$2" != --help ] || { echo overlay; exit 0; }
while [ "$1" != -- ]; do
	case $1 in *:overlay=*) state=${1#*:overlay=}; state=${state%/}; echo x >>"$state"; [ -d "$state.seen" ] || cp -a "${1%:overlay=*}" "$state.seen"; cd "$state.seen";; esac
	shift
done
shift
exec "$@"
"""
SMALL = ["--file-size-mib", "1", "--read-files", "8", "-n", "1"]


BUILT = tempfile.TemporaryDirectory()


@functools.cache
def built() -> Path:
    """The child in C, for the host."""
    sources = sorted(str(file) for file in CHILDREN.glob("*.c"))
    subprocess.run([os.environ.get("BENCH_CC", "cc"), *CFLAGS, "-Werror", "-o", f"{BUILT.name}/child", *sources], check=True)
    return Path(BUILT.name) / "child"


class Place(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.place = Path(self.folder.name)
        self.options = overlaybench.parse(SMALL)

    def children(self, kind: str) -> columns.Children:
        return columns.Children(kind, built(), built(), CHILDREN / "child.py")

    def boot(self) -> Path:
        file = self.place / "boot"
        file.write_text(FAKE_BOOT)
        file.chmod(0o755)
        return file


class Runs(Place):
    def counts(self, kind: str) -> dict[str, dict]:
        """The counts of each workload, natively."""
        found = {}
        for workload in [ReadPath(self.options, "warm"), *(LargeEdit(self.options, case) for case in CASES), Git(self.options)]:
            lower = self.place / f"{kind}-{workload.name}"
            lower.mkdir()
            workload.make(lower)
            column = columns.Column(self.children(kind))
            done = subprocess.run(column.command(workload.words(column)), cwd=lower, env=columns.settings(), capture_output=True, text=True, check=True)
            found[workload.name] = json.loads(done.stdout)
            found[workload.name]["tree"] = sorted((str(path.relative_to(lower)), path.read_bytes()) for path in lower.glob("large*"))
        return found

    def test_both_children_do_the_same(self) -> None:
        c, python = self.counts("c"), self.counts("python")
        for name in c:
            self.assertEqual((c[name]["counts"], list(c[name]["phases"]), c[name]["tree"]),
                             (python[name]["counts"], list(python[name]["phases"]), python[name]["tree"]), name)

    def suite(self, *words: str) -> dict:
        options = overlaybench.parse([*SMALL, *words])
        children, boot = self.children("c"), self.boot()
        ours = [columns.Overlay(children, boot, self.place), columns.OverlayDirectory(children, boot, self.place)]
        suite = Turns([columns.Column(children), *ours], self.place, 2, 60)
        for workload in overlaybench.workloads.chosen(options):
            suite.run(workload, lambda: None)
        return results.raw(suite, {"child": "c"}, "")

    def test_a_run_has_all_phases_and_the_growth(self) -> None:
        data = self.suite("--workloads", "read path,large edit", "--cases", "middle", "--modes", "warm")
        self.assertEqual(data["failed"], {})
        self.assertEqual(len([row for row in data["rows"] if row.startswith("read path, warm: ")]), 9)
        self.assertEqual({len(columns) for columns in data["rows"].values()}, {3})
        self.assertEqual({len(values) for row in data["rows"].values() for values in row.values()}, {2, 6})
        self.assertEqual(set(data["growth"]["large edit, middle"]), {"cage with overlay", "cage with overlay-dir"})
        self.assertIn("| edit |", shared.markdown(results.REPORT, data))

    def test_a_state_is_a_file_or_a_directory(self) -> None:
        children, lower = self.children("c"), self.place / "project"
        for kind, words in (columns.Overlay, "state.db"), (columns.OverlayDirectory, "state/"):
            column = kind(children, self.place / "boot", self.place)
            column.open(lower, self.place / "round")
            self.assertIn(f"{lower}:overlay={self.place}/round/{words}", column.command([]))
            self.assertEqual(column.database.name, "state.db")

    def test_another_answer_and_a_changed_directory_are_failures(self) -> None:
        boot = FAKE_BOOT.replace('cd "$state.seen"', 'cd "${1%:overlay=*}"')
        self.boot()
        (self.place / "boot").write_text(boot)
        children = self.children("c")
        suite = Turns([columns.Column(children), columns.Overlay(children, self.place / "boot", self.place)], self.place, 1, 60)
        suite.run(LargeEdit(self.options, "middle"), lambda: None)
        self.assertIn("below the overlays has changed", suite.failed["large edit, middle"])
        self.assertIn("has seen", suite.failed["large edit, middle, cage with overlay"])


def result(**rows: list[float]) -> dict:
    return {"format": results.REPORT.form, "failed": {}, "machine": {}, "options": {}, "rows": {row: {"bare": values} for row, values in rows.items()}}


class Compare(Place):
    def test_slower_needs_five_percent_and_ten_milliseconds(self) -> None:
        old = result(a=[0.1] * 5, b=[1.0] * 5, c=[0.010] * 5, d=[1.0] * 5)
        new = result(a=[0.112] * 5, b=[1.04] * 5, c=[0.019] * 5, d=[0.5] * 5)
        verdicts = [change.verdict for change in shared.changes(results.REPORT, old, new)]
        self.assertEqual(verdicts, ["slower", "same", "same", "faster"])

    def test_what_does_not_go_together_is_refused(self) -> None:
        with self.assertRaisesRegex(Failed, "not in both: b"):
            shared.changes(results.REPORT, result(a=[1.0]), result(a=[1.0], b=[1.0]))
        with self.assertRaisesRegex(Failed, "other options"):
            shared.changes(results.REPORT, result(a=[1.0]), result(a=[1.0]) | {"options": {"n": 1}})

    def test_the_status_says_it(self) -> None:
        files = []
        for name, data in ("old", result(a=[0.1])), ("slow", result(a=[0.2])), ("bad", result(a=[0.1]) | {"failed": {"a": "b"}}):
            files.append(self.place / f"{name}.json")
            files[-1].write_text(json.dumps(data))
        old, slow, bad = map(str, files)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual((cli.compare(results.REPORT, [old, old]), cli.compare(results.REPORT, [old, slow])), (0, 1))
        self.assertIn("| slower |", out.getvalue())
        with self.assertRaises(Failed):
            cli.compare(results.REPORT, [old, bad])


if __name__ == "__main__":
    unittest.main()
