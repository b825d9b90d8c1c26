#!/usr/bin/env python3
"""Tests of scripts/programbench.py; no timings. Run: tests/benchmarks/test_programbench.py"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))

import programbench
from bench import cli
from bench import results as shared
from bench.model import Failed, Missing
from bench.programs import columns, results, rows
from bench.sandbox.measure import Suite
from bench.sandbox.model import Row

# Runs the command of the image on Linux, in the directory that it is given.
FAKE_BOOT = """#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--root) root=$2; shift 2 ;;
	--cwd) cd "$root$2"; shift 2 ;;
	-e) shift 2 ;;
	*) break ;;
	esac
done
exec "$@"
"""


class Runs(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.image = Path(folder.name)
        for name in ("bin", "tmp"):
            (self.image / name).mkdir()
        (self.image / "bin/bash").touch()

    def run_suite(self, boot: str) -> dict:
        file = self.image / "boot"
        file.write_text(boot)
        file.chmod(0o755)
        suite = Suite([columns.Debian(), columns.Native(), columns.Cage(file, self.image)], self.image / "tmp", 2, warm_up=1)
        suite.run([Row("bash loop", ("bash", "work.sh"), lambda at: (at / "work.sh").write_text("echo $((6 * 7))\n") and None)], suite.usable(), None, lambda _: lambda: None)
        return results.raw(suite, "a note")

    def test_what_agrees_is_measured(self) -> None:
        data = json.loads(json.dumps(self.run_suite(FAKE_BOOT)))
        self.assertEqual(data["failed"], {})
        for name in (columns.DEBIAN, columns.CAGE):
            self.assertEqual([len(values) for values in data["rows"]["bash loop"][name].values()], [2, 2])
        self.assertIn("a note", shared.markdown(results.REPORT, data))

    def test_what_prints_something_else_is_a_failure(self) -> None:
        data = self.run_suite(FAKE_BOOT.replace('exec "$@"', '"$@"; echo more'))
        self.assertIn("another answer", data["failed"][f"bash loop, {columns.CAGE}"])

    def test_what_is_not_in_the_image_is_a_line(self) -> None:
        (self.image / "bin/bash").unlink()
        data = self.run_suite(FAKE_BOOT)
        self.assertEqual(data["missing"][f"bash loop, {columns.CAGE}"], "not in the image: make ports PORT=bash")
        self.assertNotIn(columns.CAGE, data["rows"]["bash loop"])


class Columns(unittest.TestCase):
    def test_a_link_to_the_machines_own_program_is_not_the_same_source(self) -> None:
        with tempfile.TemporaryDirectory() as name, unittest.mock.patch.object(columns, "REPOSITORY", Path(name)):
            source = Path(name) / "build/ports/lua/native/source/src"
            source.mkdir(parents=True)
            (source / "lua").touch()
            self.assertEqual(columns.Native().tool("lua"), str(source / "lua"))
            (source / "lua").unlink()
            (source / "lua").symlink_to("/bin/sh")
            with self.assertRaisesRegex(Missing, "the machine's own"):
                columns.Native().tool("lua")


class Tables(unittest.TestCase):
    def test_ratios_are_of_medians_and_means_are_geometric(self) -> None:
        def row(cage: float, native: float) -> dict:
            return {name: {"seconds": [value] * 3, "processor": [value, value, 9.0]}
                    for name, value in ((columns.CAGE, cage), (columns.NATIVE, native), (columns.DEBIAN, 1.0))}

        data = {"rows": {"lua a": row(4.0, 2.0), "lua b": row(1.0, 2.0)}}
        self.assertIn("| lua | 2 | 2.00x | 1.00x | 2.00x | 1.00x |", results.means(data))
        self.assertIn("| lua a | 1000 | 2000 | 4000 | 4.00x | 2.00x | 2.00x |", results.of_kind(data, "times"))


class Rows(unittest.TestCase):
    def test_each_row_has_a_name_of_its_own_and_a_program(self) -> None:
        every = rows.every_row()
        self.assertEqual(len({row.name for row in every}), len(every))
        for row in every:
            self.assertIn(row.words[0], columns.PROGRAMS)
            self.assertTrue(row.name.startswith(f"{row.words[0]} "))
        with self.assertRaisesRegex(Failed, "no row's name starts with 'perl'"):
            cli.chosen("--rows", every, ["perl"], "row")

    def test_no_rounds_are_refused(self) -> None:
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit):
            programbench.parse(["-n", "0"])


if __name__ == "__main__":
    unittest.main()
