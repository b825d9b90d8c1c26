#!/usr/bin/env python3
"""Tests of scripts/benchrunner.py with a compiler and a runner that only pretend. Run: tests/benchmarks/test_benchrunner.py"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))

from bench.budgets import verdicts
from bench.building import Builder, launch_line, linked
from bench.model import Column, Failed, Row, Stack
from bench.report import changes, kernels_row, result_json
from bench.selection import available, plan, select
from bench.session import fill_own_rows, parse_output

# A "cage" is a native program here, and a grate makes it take no other way.
FAKE_COMPILE = '#!/bin/sh\nexec "${CC:-cc}" "$@"\n'
FAKE_BOOT = """#!/bin/sh
while [ $# -gt 1 ]; do
	case $1 in --root) shift; cd "$1";; esac
	shift
done
case $1 in *.cwasm) BEHIND=cage exec "./$1";; esac
"""
FAKE_MAKEFILE = "install:\n\tmkdir -p $(LINDFS)/grates && touch $(LINDFS)/grates/$(notdir $(CURDIR))_grate.cwasm\n"
BENCH_C = "void emit_result(const char *t, long p, long l, double a) { printf(\"%s\\t%ld\\t%ld\\t%.1f\\n\", t, p, l, a); }\n"
PROGRAMS = {
    "quick.c": 'int main(void) { emit_result("Quick", 1, 10, getenv("BEHIND") ? 150 : 100); return 0; }',
    "broken.c": 'int main(void) { if (!getenv("BEHIND")) { emit_result("Broken", 1, 1, 1); return 0; }'
                ' fputs("it broke\\n", stderr); return 3; }',
    "unable.c": 'int main(void) { puts("skip\\tno fork here"); return 0; }',
    "silent.c": "int main(void) { return 0; }",
    "wrong.c": "int main(void) { return syntax error; }",
}


class Pure(unittest.TestCase):
    def test_stack_names(self) -> None:
        self.assertEqual(Stack.parse("imfs-grate.fs_read.grate"), Stack(("imfs",), "fs_read"))
        self.assertEqual(Stack.parse("a-grate.b_grate.x.grate"), Stack(("a", "b"), "x"))
        variant = Stack.parse("a-grate.x.result.grate")
        self.assertEqual(variant, Stack(("a",), "x", "result"))
        self.assertEqual(variant.label, "a-grate: result")
        for bad in ("fs_read.grate", "imfs.fs_read.grate", "a-grate.grate", "a-grate.x.y.z.grate"):
            with self.assertRaises(Failed):
                Stack.parse(bad)

    def test_stacks_with_options(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "clamp-grate.imfs-grate.fs_read.grate"
            column = Column("grate", file, ("clamp", "imfs"))
            file.write_text("")
            self.assertEqual(launch_line(column), ["clamp_grate", "imfs_grate"])
            file.write_text("clamp_grate --prefix /a %{ imfs_grate %}\n")
            self.assertEqual(launch_line(column), ["clamp_grate", "--prefix", "/a", "%{", "imfs_grate", "%}"])
            file.write_text("imfs_grate")
            with self.assertRaises(Failed):
                launch_line(column)
        self.assertEqual(Stack(("a", "a", "b"), "x").label, "2 x a-grate, b-grate")

    def test_rows_of_stacks_have_the_plain_columns(self) -> None:
        rows = {("Read", "1"): Row(1, {"linux": [2.0], "lind": [3.0]}), ("Read (x-grate)", "1"): Row(1, {"grate": [4.0]}),
                ("Read (2 x x-grate: late)", "1"): Row(1, {"grate": [5.0]}), ("Read (cold)", "1"): Row(1, {"lind": [6.0]})}
        fill_own_rows(rows)
        self.assertEqual([row.median("linux") for row in rows.values()], [2.0, 2.0, 2.0, None])

    def test_selection_by_prefix(self) -> None:
        names = ["fs_read.c", "imfs-grate.fs_read.grate", "imfs_read.c", "startup"]
        self.assertEqual(select(names, []), names)
        self.assertEqual(select(names, ["fs_"]), ["fs_read.c"])
        self.assertEqual(select(names, ["imfs_grate.fs_read.grate"]), ["imfs-grate.fs_read.grate"])
        self.assertEqual(select(names, ["tests/benchmarks/imfs"]), names[1:3])
        with self.assertRaises(Failed):
            select(names, ["nothing"])

    def test_columns_of_one_benchmark_take_turns(self) -> None:
        names = ["forward-grate.fs_read.grate", "fs_read.c", "imfs-grate.fs_read.grate", "zip-grate.fs_read.grate"]
        columns = plan(Path("d"), names, names)["fs_read"]
        self.assertEqual([c.kind for c in columns], ["linux", "lind", "grate", "grate", "grate"])
        self.assertEqual([c.own_row for c in columns], ["", "", "forward-grate", "", "zip-grate"])

    def test_output(self) -> None:
        points, reason = parse_output("Read\t1\t1000\t24.5\nnoise\na\tb\tc\td\n")
        self.assertEqual((points, reason), ([("Read", "1", 1000, 24.5)], None))
        self.assertEqual(parse_output("skip\tno fork\n"), ([], "no fork"))

    def test_median_spread_and_ratio(self) -> None:
        row = Row(1, {"linux": [100, 110, 90], "lind": [50, 51, 400]})
        self.assertEqual(row.median("lind"), 51)
        self.assertAlmostEqual(row.spread("linux"), 0.2)
        self.assertAlmostEqual(row.ratio("lind"), 0.51)
        self.assertIsNone(row.ratio("grate"))
        # Below what the clock tells apart.
        self.assertEqual((Row(1, {"lind": [0.0, 0.0]}).spread("lind"), Row(1, {"linux": [0.0], "lind": [1.0]}).ratio("lind")), (0.0, None))

    def test_budgets(self) -> None:
        row = Row(1, {"linux": [100], "lind": [116], "grate": [29]})
        self.assertEqual(verdicts("Read", "1", row), ["lind 1.15x missed", "grate 0.25x missed"])
        self.assertEqual(verdicts("Read", "1024", row), ["lind 1.15x missed"])
        hop = Row(1, {"linux": [100], "lind": [110], "grate": [151]})
        self.assertEqual(verdicts("Read (forward-grate)", "1", hop), ["grate +30 ns missed"])
        self.assertEqual(verdicts("Nothing", "1", row), [])

    def test_linked_sources(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "x.c"
            file.write_text("/*\n * Text.\n * links: ../g/{a,b}.c\n */\n")
            self.assertEqual(linked(file), [f"{name}/../g/a.c", f"{name}/../g/b.c"])
            file.write_text("int links;\n")
            self.assertEqual(linked(file), [])

    def test_geometric_mean_of_kernels(self) -> None:
        rows = {("CPU a", "1"): Row(1, {"linux": [10], "lind": [20]}),
                ("CPU b", "1"): Row(1, {"linux": [1000], "lind": [500]}),
                ("CPU c", "1"): Row(1, {"linux": [1]})}
        self.assertAlmostEqual(kernels_row(rows).ratio("lind"), 1.0)
        self.assertIsNone(kernels_row({("Read", "1"): rows["CPU a", "1"]}))

    def test_changes_beyond_noise(self) -> None:
        old = {"Read": {"1": {"linux": "100", "lind": "200", "loops": "5"}}}
        raw = {"values": {"Read": {"1": {"linux": [95, 100, 120], "lind": [199, 200, 201]}}}}
        rows = {("Read", "1"): Row(5, {"linux": [118], "lind": [150, 151]})}
        self.assertEqual(changes(old, raw, rows), ["Read 1 lind: 200 -> 150 ns (-24.8%)"])
        self.assertEqual(len(changes(old, None, rows)), 2)
        self.assertEqual(changes(old, raw, {("New", "1"): rows["Read", "1"]}), [])

    def test_json_holds_strings(self) -> None:
        rows = {("Read", "10"): Row(7, {"linux": [240.4], "lind": [6.21]}), ("Read", "2"): Row(1, {})}
        self.assertEqual(result_json(rows)["Read"]["10"], {"linux": "240", "lind": "6.2", "loops": "7"})


class Sources(unittest.TestCase):
    def test_every_benchmark_can_be_built(self) -> None:
        place = REPOSITORY / "tests/benchmarks"
        options = Namespace(benchmarks=place, cc=os.environ.get("BENCH_CC", "clang-22"))
        with tempfile.TemporaryDirectory() as directory:
            builder = Builder(options, Path(directory))
            for name in available(place):
                if name.endswith(".c"):
                    with self.subTest(name):
                        self.assertTrue(builder.native(name.removesuffix(".c")).exists())


class WithFakes(unittest.TestCase):
    def setUp(self) -> None:
        self.place = tempfile.TemporaryDirectory(prefix="benchrunner.")
        self.addCleanup(self.place.cleanup)
        self.at = Path(self.place.name)
        for name, text in (("compile", FAKE_COMPILE), ("boot", FAKE_BOOT)):
            (self.at / name).write_text(text)
            (self.at / name).chmod(0o755)
        for directory in ("b/startup", "lindfs", "grates/imfs", "grates/forward"):
            (self.at / directory).mkdir(parents=True)
        for name in ("imfs", "forward"):
            (self.at / "grates" / name / "Makefile").write_text(FAKE_MAKEFILE)
        headers = "#include <stdio.h>\n#include <stdlib.h>\nvoid emit_result(const char *, long, long, double);\n"
        (self.at / "b/bench.c").write_text("#include <stdio.h>\n" + BENCH_C)
        (self.at / "b/startup/hello.c").write_text("int main(void) { return 0; }\n")
        for name, text in PROGRAMS.items():
            (self.at / "b" / name).write_text(headers + text)
        for stack in ("imfs-grate.quick.grate", "forward-grate.quick.grate", "lost-grate.quick.grate"):
            (self.at / "b" / stack).touch()

    def run_it(self, *arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        at = self.at
        command = [*before, sys.executable, str(REPOSITORY / "scripts/benchrunner.py"), "--cc", "cc", "--benchmarks", f"{at}/b",
                   "--grates", f"{at}/grates", "--lindfs", f"{at}/lindfs", "--lind-boot", f"{at}/boot",
                   "--lind-compile", f"{at}/compile", "--rounds", "3", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment())
        self.assertEqual([p.name for p in (at / "lindfs").iterdir() if p.name != "grates"], [], "left behind")
        return done

    def environment(self) -> dict[str, str]:
        return {**os.environ, "LINDFS": str(self.at / "lindfs")}

    def test_json_and_raw_values(self) -> None:
        done = self.run_it("-o", str(self.at / "r.json"), "quick", "imfs-grate", "forward-grate")
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads((self.at / "r.json").read_text())
        self.assertEqual(result["Quick"]["1"], {"linux": "100", "lind": "150", "grate": "150", "loops": "10"})
        self.assertEqual(result["Quick (forward-grate)"]["1"]["linux"], "100")
        raw = json.loads((self.at / "r.raw.json").read_text())
        self.assertEqual(raw["values"]["Quick"]["1"]["lind"], [150.0] * 3)
        self.assertIn("kernel", raw["machine"])
        self.assertNotIn("unknown", raw["filesystem"])

    def test_table(self) -> None:
        done = self.run_it("quick", "imfs-grate")
        self.assertRegex(done.stdout, r"TEST +PARAM +LINUX \(ns\) +LIND \(ns\) +GRATE \(ns\) +ITERATIONS")
        self.assertRegex(done.stdout, r"Quick +1 +100 +150 \(1\.500\) +150 \(1\.500\) +10")

    def test_a_failure_does_not_stop_the_rest(self) -> None:
        done = self.run_it("broken", "silent", "unable", "wrong", "lost-grate", "quick")
        self.assertEqual(done.returncode, 1)
        for said in ("broken.c (Lind): exit status 3: it broke", "silent.c (Linux): printed no result",
                     "skipped: unable.c (Linux): no fork here", "wrong.c (Linux): native compile", "grates/lost does not exist"):
            self.assertIn(said, done.stderr)
        self.assertRegex(done.stdout, r"Quick +1 +100 +150")
        self.assertRegex(done.stdout, r"Broken +1 +1\.0 +-")

    def test_interrupted(self) -> None:
        (self.at / "b" / "endless.c").write_text("int main(void) { for (;;); }\n")
        done = self.run_it("endless", before=("timeout", "--preserve-status", "-s", "INT", "2"))
        self.assertEqual((done.returncode, done.stdout), (130, ""))
        self.assertEqual(done.stderr.splitlines()[-1], "benchrunner: interrupted")
        self.assertNotIn("Traceback", done.stderr)

    def test_startup(self) -> None:
        done = self.run_it("startup")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"Startup +0 +\d+ +\d+ \([\d.]+\)")

    def test_compare_and_plot(self) -> None:
        (self.at / "old.json").write_text('{"Quick": {"1": {"linux": "100", "lind": "300", "loops": "10"}}}')
        done = self.run_it("quick.c", "--compare", str(self.at / "old.json"), "--plot", str(self.at / "p.svg"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Quick 1 lind: 300 -> 150 ns (-50.0%)", done.stdout)
        self.assertIn("<svg", (self.at / "p.svg").read_text())

    def test_called_wrongly(self) -> None:
        done = self.run_it("nosuch")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("no benchmark's name starts with 'nosuch'", done.stderr)
        (self.at / "text.json").write_text("text")
        (self.at / "other.json").write_text("[1]")
        for option, file in (("-o", "none/x.json"), ("-o", "."), ("--plot", "none/x.svg"), ("--plot", "x.txt"),
                             ("--compare", "none.json"), ("--compare", "text.json"), ("--compare", "other.json")):
            done = self.run_it("quick.c", option, str(self.at / file))
            self.assertEqual((done.returncode, done.stdout), (2, ""), file)
            self.assertIn(file, done.stderr)


if __name__ == "__main__":
    unittest.main()
