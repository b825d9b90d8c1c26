#!/usr/bin/env python3
"""Tests of scripts/test.py: what counts as passed, failed and skipped. Run: tests/conformance/test_runner.py"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("runner", REPOSITORY / "scripts/test.py")
runner = importlib.util.module_from_spec(SPEC)
sys.modules["runner"] = runner
SPEC.loader.exec_module(runner)

PROGRAMS = {
    "a/good": "int main(void) { return 0; }",
    "a/bad": 'int main(void) { puts("it is bad"); return 1; }',
    "a/unable": "int main(void) { return 77; }",
    "a/messy": 'int main(void) { fclose(fopen("left", "w")); return 0; }',
    "a/crashes": "int main(void) { abort(); }",
    "b/wrong": "int main(void) { syntax error; }",
}
# A program that fails the first time only.
UNSTEADY = 'int main(void) { FILE *been = fopen("%s", "r"); return been ? 0 : !!fclose(fopen("%s", "w")) + 1; }'


class Runner(unittest.TestCase):
    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.at = Path(place.name)
        for name, text in PROGRAMS.items():
            file = self.at / f"{name}.c"
            file.parent.mkdir(exist_ok=True)
            file.write_text("#include <stdio.h>\n#include <stdlib.h>\n" + text)
        self.saved, runner.CONFORMANCE = runner.CONFORMANCE, self.at
        self.addCleanup(lambda: setattr(runner, "CONFORMANCE", self.saved))
        self.side = runner.Native(Namespace(cc="cc", cxx="c++", build=self.at / "build"))

    def run_them(self, names: list[str], expected: dict[str, str], *, once: bool = True) -> tuple[str, str]:
        totals, said = runner.Totals(), io.StringIO()
        with contextlib.redirect_stdout(said):
            runner.run_side(self.side, names, expected, Namespace(jobs=2, once=once), totals)
        return str(totals), said.getvalue()

    def test_verdicts(self) -> None:
        counts, said = self.run_them(list(PROGRAMS), {})
        self.assertEqual(counts, "1 passed, 4 failed, 1 skipped")
        for text in ("FAILED a/bad (linux)", "it is bad", "left behind: left", "exit status -6", "does not compile",
                     "SKIPPED a/unable"):
            self.assertIn(text, said)

    def test_known_failures(self) -> None:
        counts, said = self.run_them(["a/bad", "a/good"], {"a/bad": "why", "a/good": "once"})
        self.assertEqual(counts, "0 passed, 1 failed, 1 skipped")
        self.assertIn("known: why", said)
        self.assertIn("passes: remove it", said)

    def test_list_of_known_failures(self) -> None:
        file = self.at / "known.txt"
        file.write_text("# comment\n\na/bad  no such call yet\n")
        self.assertEqual(runner.read_expected(file), {"a/bad": "no such call yet"})
        for line in ("a/bad\n", "a/gone  it went\n"):
            file.write_text(line)
            with self.assertRaises(runner.Wrong):
                runner.read_expected(file)

    def test_folders(self) -> None:
        cases = {"echo 3 passed, 0 failed": "3 passed, 0 failed, 0 skipped",
                 "echo 1 passed, 2 failed, 4 skipped; exit 1": "1 passed, 2 failed, 4 skipped",
                 "echo 3 passed, 0 failed; exit 1": "3 passed, 1 failed, 0 skipped",
                 "echo nothing to say": "0 passed, 1 failed, 0 skipped"}
        for script, want in cases.items():
            (self.at / "run").write_text(f"#!/bin/sh\n{script}\n")
            (self.at / "run").chmod(0o755)
            self.assertEqual(str(runner.run_folder(self.at, list[str]().append)), want)

    def test_programs_that_fail_run_again(self) -> None:
        (self.at / "a/unsteady.c").write_text(f"#include <stdio.h>\n{UNSTEADY % (self.at / 'been', self.at / 'been')}")
        counts, said = self.run_them(["a/unsteady", "a/bad"], {}, once=False)
        self.assertEqual(counts, "1 passed, 1 failed, 0 skipped, 1 unsteady")
        self.assertEqual(said.count("and runs again"), 2)
        (self.at / "been").unlink()
        self.assertEqual(self.run_them(["a/unsteady"], {})[0], "0 passed, 1 failed, 0 skipped")

    def test_folders_that_fail_run_again(self) -> None:
        scripts = {"unsteady": "[ -e been ] || { touch been; echo 'FAILED this time'; echo 1 passed, 1 failed; exit 1; }; echo 2 passed, 0 failed",
                   "bad": "echo FAILED always; echo 0 passed, 1 failed; exit 1"}
        results: dict[str, object] = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for name, script in scripts.items():
                (self.at / name).mkdir()
                (self.at / name / "run").write_text(f"#!/bin/sh\ncd {self.at / name}\n{script}\n")
                (self.at / name / "run").chmod(0o755)
                results[name] = runner.run_folder(self.at / name, print)
            runner.folders_again(results, self.at)
        self.assertEqual([str(totals) for totals in results.values()],
                         ["2 passed, 0 failed, 0 skipped, 1 unsteady", "0 passed, 1 failed, 0 skipped"])
        self.assertIn("FAILED this time", results["unsteady"].unsteady[0])

    def test_many_failures_are_final(self) -> None:
        for number in range(runner.FEW + 1):
            (self.at / f"a/bad{number}.c").write_text(PROGRAMS["a/bad"].join(["#include <stdio.h>\n", ""]))
        counts, said = self.run_them([f"a/bad{number}" for number in range(runner.FEW + 1)], {}, once=False)
        self.assertEqual(counts, f"0 passed, {runner.FEW + 1} failed, 0 skipped")
        self.assertNotIn("again", said)


if __name__ == "__main__":
    unittest.main()
