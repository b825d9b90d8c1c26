#!/usr/bin/env python3
"""Tests of scripts/sandbench.py and scripts/performance_page.py; no timings. Run: tests/benchmarks/test_sandbench.py"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path
from unittest import mock

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))

import sandbench
from bench import cli, document, model, stats, tables
from bench import results as shared
from bench.model import Failed, Missing, NotOffered
from bench.sandbox import columns, components, memory, probes, profile, results, rows
from bench.sandbox.measure import Suite, local_server
from bench.sandbox.model import Row, Wish
from bench.timing import timed

# A "sandbox" that runs the command as it is, or says something else where LIES is set.
FAKE_BOOT = """#!/bin/sh
case $1 in
--version) echo "lind-boot 9"; exit 0;;
run) ;;
*) exit 2;;
esac
while [ "$1" != -- ]; do shift; done
shift
[ ! -e "$(dirname "$0")/lies" ] || { echo lies; exit 0; }
exec "$@"
"""
FAKE_SANDBOX = '#!/bin/sh\n[ "$1" != --version ] || { echo fake 1; exit 0; }\nwhile [ "$1" != run-it ]; do shift; done\nshift\nexec "$@"\n'
FAKE_TRACER = '#!/bin/sh\nwhile [ "$1" != -- ]; do [ "$1" != -o ] || echo seen >"$2"; shift; done\nshift\nexec "$@"\n'


def say(_: list[str]):
    return lambda: None


def result(**times: list[float]) -> dict:
    """A result with one row, `r`."""
    data = [{"column": name, "times": values, "processor": values} for name, values in times.items()]
    return {"format": results.REPORT.form, "machine": {"cpu": "c", "cpus": "1", "memory": "m", "kernel": "k"}, "columns": dict.fromkeys(times, ""),
            "benchmarks": {"r": {"results": data}}, "runs": 3, "load": [0.0], "filesystem": "x on y", "user": "root",
            "date": "2026-01-02T03:04:05Z", "platform": "linux", "arch": "x", "missing": {}, "failed": {}}


class Statistics(unittest.TestCase):
    def test_against_the_library(self) -> None:
        dice = random.Random(7)
        for _ in range(300):
            values = [dice.choice([dice.random(), dice.lognormvariate(0, 2), 1.0]) for _ in range(dice.randint(2, 40))]
            model = statistics.quantiles(values, n=100, method="inclusive")
            for percent in (1, 25, 50, 75, 95, 99):
                self.assertAlmostEqual(stats.quantile(values, percent / 100), model[percent - 1])
            self.assertAlmostEqual(stats.noise(values), model[74] - model[24])
            self.assertAlmostEqual(stats.quantile(values, 0.5), statistics.median(values))
            self.assertEqual((stats.quantile(values, 0), stats.quantile(values, 1)), (min(values), max(values)))

    def test_one_value(self) -> None:
        self.assertEqual((stats.quantile([3.0], 0.95), stats.noise([3.0]), stats.spread([3.0])), (3.0, 0.0, 0.0))
        self.assertEqual(stats.spread([0.0, 0.0]), 0.0)
        self.assertEqual(stats.spread([1.0, 2.0, 4.0]), 1.5)

    def test_only_what_is_beyond_five_percent_and_beyond_both_noises_differs(self) -> None:
        quiet, noisy = [100.0, 100.0, 100.0, 100.0], [80.0, 90.0, 110.0, 120.0]
        self.assertEqual(stats.verdict(quiet, [104.0] * 4), "same")
        self.assertEqual(stats.verdict(quiet, [106.0] * 4), "slower")
        self.assertEqual(stats.verdict(quiet, [94.0] * 4), "faster")
        for before, after in ((noisy, [110.0] * 4), ([110.0] * 4, noisy)):
            self.assertEqual(stats.verdict(before, after), "same")
        self.assertEqual(stats.verdict(noisy, [150.0] * 4), "slower")
        # One slow run is not the noise.
        self.assertEqual(stats.verdict([100.0] * 9 + [900.0], [107.0] * 10), "slower")
        self.assertEqual([stats.verdict(quiet, [after] * 4, 10.0) for after in (109.0, 111.0)], ["same", "slower"])


class Timing(unittest.TestCase):
    def test_status_output_and_no_shell(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            place, out, err = Path(name), Path(name) / "out", Path(name) / "err"
            done = timed(["/bin/sh", "-c", "pwd; echo bad >&2; exit 3"], place, {}, 10, out, err)
            self.assertEqual((done.status, out.read_text(), err.read_text()), (3, f"{place.resolve()}\n", "bad\n"))
            self.assertEqual(timed(["/bin/sh", "-c", "kill -9 $$"], place, {}, 10).status, -signal.SIGKILL)
            self.assertEqual(timed(["/bin/echo", "$HOME; *"], place, {}, 10, out).status, 0)
            self.assertEqual(out.read_text(), "$HOME; *\n")
            with self.assertRaisesRegex(Failed, "No such file"):
                timed(["/nonexistent"], place, {}, 10)

    def test_what_takes_too_long_is_killed_with_its_children(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "out"
            with self.assertRaisesRegex(Failed, "still running after 0.3 s"):
                timed(["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], Path(name), os.environ, 0.3, out)
            child = Path(f"/proc/{int(out.read_text())}/stat")
            self.assertTrue(not child.exists() or child.read_text().rsplit(")", 1)[1].split()[0] == "Z")

    def test_processor_time_of_what_is_left_behind(self) -> None:
        """Some sandboxes end before what is in them has been waited for."""
        work = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"
        with tempfile.TemporaryDirectory() as name:
            out = Path(name) / "out"
            done = timed(["/bin/sh", "-c", f"({work}; echo end) & "], Path(name), os.environ, 30, out)
            self.assertEqual(out.read_text(), "end\n", "it was not waited for")
            alone = timed(["/bin/sh", "-c", ":"], Path(name), os.environ, 30)
        self.assertGreater(done.user + done.system, alone.user + alone.system)

    def test_what_was_there_before_is_not_waited_for(self) -> None:
        with subprocess.Popen(["sleep", "1000"]) as other, tempfile.TemporaryDirectory() as name:
            timed(["/bin/sh", "-c", ":"], Path(name), os.environ, 30)
            self.assertIsNone(other.poll())
            other.kill()


class WithPlace(unittest.TestCase):
    """A directory with a fake lind-boot, a fake image and fake sandboxes."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="sandbench.")
        self.addCleanup(place.cleanup)
        self.at = Path(place.name)
        self.boot, self.image = self.at / "lind-boot", self.at / "image"
        self.script("lind-boot", FAKE_BOOT)
        (self.image / "bin").mkdir(parents=True)
        for tool in ("true", "echo"):
            (self.image / "bin" / tool).touch()

    def script(self, name: str, text: str) -> None:
        (self.at / name).parent.mkdir(exist_ok=True)
        (self.at / name).write_text(text)
        (self.at / name).chmod(0o755)

    def only_tools(self, *names: str) -> None:
        """The host's tools are these and what the test puts into tools/."""
        (self.at / "tools").mkdir(exist_ok=True)
        for name in names:
            (self.at / "tools" / name).symlink_to(shutil.which(name) or "/nonexistent")
        patch = mock.patch.object(model, "NATIVE_PATH", str(self.at / "tools"))
        patch.start()
        self.addCleanup(patch.stop)

    def workspace(self) -> Path:
        workspace = self.at / "row" / "workspace"
        workspace.mkdir(parents=True, exist_ok=True)
        return workspace

    def command(self, name: str, wish: Wish) -> list[str]:
        return next(c for c in columns.every_column(self.boot, self.image, "img") if c.name == name).command(wish)


class Columns(WithPlace):
    def test_the_variants_of_bubblewrap_as_published(self) -> None:
        self.only_tools("true")
        for tool in ("bwrap", "unshare"):
            self.script(f"tools/{tool}", FAKE_SANDBOX)
        true = str(self.at / "tools/true")
        base = ("--ro-bind /usr /usr --ro-bind /lib /lib --ro-bind /lib64 /lib64 --ro-bind /bin /bin --ro-bind /sbin /sbin "
                "--proc /proc --dev /dev").split()
        wish = Wish(("true",), Path("/w"), here=False)
        expected = {
            "bwrap ro-bind": "", "bwrap +unshare-pid": "--unshare-pid --die-with-parent", "bwrap +unshare-all": "--unshare-all --die-with-parent",
            "bwrap full": "--tmpfs /tmp --tmpfs /home --unshare-all --die-with-parent --new-session",
            "bwrap +workspace": "--tmpfs /tmp --unshare-all --die-with-parent --bind /w /workspace --chdir /workspace",
        }
        for name, options in expected.items():
            self.assertEqual(self.command(name, wish)[1:], [*base, *options.split(), true], name)
        self.assertEqual(self.command("unshare", wish)[1:], ["--user", "--pid", "--fork", true])
        self.assertEqual(self.command("bare", wish), [true])

    def test_what_a_row_asks_for(self) -> None:
        self.only_tools("true")
        self.script("tools/bwrap", FAKE_SANDBOX)
        wish = Wish(("true",), self.workspace(), port=81, protect=("a",))
        words = " ".join(self.command("bwrap full", wish))
        at = self.workspace()
        self.assertIn(f"--share-net --bind {at} {at} --ro-bind {at}/a {at}/a --chdir {at}", words)
        self.assertNotIn("--share-net", self.command("bwrap ro-bind", wish))
        words = " ".join(self.command("lind", wish))
        self.assertIn(f"-v {at} --allow 127.0.0.1:81 --policy {at.parent}/protect-1.toml -- true", words)
        self.assertIn('protect = ["a"]', (at.parent / "protect-1.toml").read_text())
        for name in ("bare", "unshare"):
            with self.assertRaises(NotOffered):
                self.command(name, wish)
        with self.assertRaises(NotOffered):
            self.command("bwrap full", Wish(("true",), at, policy="agent"))

    def test_what_is_not_there(self) -> None:
        self.only_tools()
        for column in columns.every_column(self.at / "none", self.image, "img")[1:]:
            with self.assertRaises(Missing):
                column.check()
        with self.assertRaisesRegex(Missing, "python3 is not in"):
            self.command("lind", Wish(("python3",), self.at))
        with self.assertRaisesRegex(Missing, "true is not installed"):
            self.command("bare", Wish(("true",), self.at))

    def test_selection(self) -> None:
        every = columns.every_column(self.boot, self.image, "img")
        names = [column.name for column in columns.choose(every, ["unshare", "bwrap +unshare"])]
        self.assertEqual(names, ["bare", "lind", "lind session", "bwrap +unshare-pid", "bwrap +unshare-all", "unshare"])
        with self.assertRaisesRegex(Failed, "no sandbox's name starts with 'nosuch'"):
            columns.choose(every, ["nosuch"])


class Rows(WithPlace):
    def test_selection(self) -> None:
        def names(*arguments) -> list[str]:
            return [row.name for row in rows.choose(rows.every_row(), *arguments)]

        self.assertNotIn("curl", names([], False, False))
        self.assertIn("curl", names([], True, False))
        self.assertNotIn("amortized-true-100", names([], False, True))
        self.assertEqual(names(["amortized-true-100"], False, True), ["amortized-true-100"])
        with self.assertRaises(Failed):
            names(["nosuch"], False, False)

    def test_each_row_gets_its_answer_from_the_bare_command(self) -> None:
        """Those whose tools this machine has; the denials are for sandboxes."""
        suite = Suite([columns.Column()], self.at, 1, 1)
        chosen = [row for row in rows.choose(rows.every_row(), [], True, False) if not row.protect and not row.policy]
        with local_server() as port:
            suite.run(chosen, suite.usable(), port, say)
        self.assertEqual(suite.failures, {})
        for name in ("true", "echo", "grep", "sed", "file-write", "file-read", "small-files", "pipe", "configure", "amortized-true-10"):
            self.assertEqual(len(suite.cells[name]["bare"].runs), 1, name)

    def test_the_server(self) -> None:
        with local_server() as port, urllib.request.urlopen(f"http://127.0.0.1:{port}/x") as answer:
            self.assertEqual(json.load(answer), {"status": "ok"})

    def test_a_wrong_answer_is_a_failure(self) -> None:
        (self.at / "lies").touch()
        every = [columns.Column(), columns.Lind(self.boot, self.image)]
        for row in (Row("echo", ("echo", "hello"), here=False), Row("true", ("true",), expected=b"", here=False)):
            suite = Suite(every, self.at, 2, 1)
            suite.run([row], suite.usable(), None, say)
            self.assertEqual(list(suite.cells[row.name]), ["bare"])
            self.assertIn("another answer", suite.failures[f"{row.name}, lind"])

    def test_a_write_that_is_not_refused_is_a_failure(self) -> None:
        if shutil.which("bash") is None:
            self.skipTest("no bash")
        (self.image / "bin" / "bash").touch()
        row = next(row for row in rows.every_row() if row.name == "deny-10")
        suite = Suite([columns.Column(), columns.Lind(self.boot, self.image)], self.at, 1, 1)
        suite.run([row], suite.usable(), None, say)
        self.assertEqual((list(suite.cells["deny-10"]), list(suite.failures)), ([], ["deny-10, lind"]))


class Isolation(WithPlace):
    def test_the_bare_command_gets_everything(self) -> None:
        found = probes.probe(columns.Column(), self.at, "cc")
        self.assertEqual({name: found[name]["allowed"] for name in probes.PROBES}, dict.fromkeys(probes.PROBES, True))

    def test_what_the_guest_claims_counts_for_nothing(self) -> None:
        claims = "processes: 3, none\nread: got 1234\nwrite: ok\nconnect: ok\nsignal: ok\n"
        self.script("liar", f"#!/bin/sh\nprintf '{claims}'\n")
        column = columns.Column()
        with mock.patch.object(column, "command", lambda wish: [str(self.at / "liar")]):
            found = probes.probe(column, self.at, "cc")
        self.assertEqual({name: found[name]["allowed"] for name in probes.PROBES}, dict.fromkeys(probes.PROBES, False))

    def test_a_probe_that_does_not_run_is_no_refusal(self) -> None:
        column = columns.Column()
        with mock.patch.object(column, "command", lambda wish: ["/bin/false"]), self.assertRaisesRegex(Failed, "the probe ended with 1"):
            probes.probe(column, self.at, "cc")


class Memory(WithPlace):
    def test_many_at_once_and_nothing_left(self) -> None:
        if shutil.which("bash") is None:
            self.skipTest("no bash")
        column = columns.Column()
        with memory.waiting(column, self.workspace(), 3) as running:
            self.assertEqual([process.poll() for process in running], [None] * 3)
            self.assertTrue(all(memory.proportional(process.pid) > 0 for process in running))
        self.assertTrue(all(process.poll() is not None for process in running))
        self.assertEqual(memory.measure(column, self.at, 2)["count"], 2)

    def test_a_tool_that_is_missing(self) -> None:
        suite = Suite([], self.at, 1)
        found = sandbench.of_each(suite, [columns.Lind(self.boot, self.image)], "memory", say, lambda column: memory.measure(column, self.at, 2))
        self.assertEqual((found, suite.missing), ({}, {"memory, lind": "bash is not in the image"}))


class Results(unittest.TestCase):
    def test_tables_come_from_the_json_alone(self) -> None:
        data = result(bare=[0.001, 0.001, 0.002], lind=[0.002, 0.0025, 0.003])
        data["isolation"] = {"lind": {probe: {"allowed": probe == "read", "said": ""} for probe in probes.PROBES}}
        data["memory"] = {"lind": {"count": 4, "bytes": 2**20}}
        text = shared.markdown(results.REPORT, json.loads(json.dumps(data)))
        self.assertIn("|  | bare | lind |\n| --- | --: | --: |\n| r | 1.00 | 2.50 (2.50x) |", text)
        self.assertIn("| r | 1.90 (100%) | 2.95 (40%) |", text)
        self.assertIn("| lind | refused | allowed | refused | refused | refused |", text)
        self.assertIn("| lind | 4 | 1.00 |", text)

    def test_commands_are_kept_without_the_places_of_this_run(self) -> None:
        place = Path("/tmp/sandbench.x")
        words = [str(REPOSITORY / "target/release/lind-boot"), "run", "-v", f"{place}/true.y/workspace", "--policy", f"{place}/true.y/p.toml"]
        self.assertEqual(results.shown(words, place), "target/release/lind-boot run -v WORKSPACE --policy PLACE/true.y/p.toml")
        self.assertLess(len(results.shown(["--ro-bind"] * 1000, place)), 400)

    def test_raw_values_are_lines(self) -> None:
        data = {"a": [1.5, 2, 3], "b": [{"c": []}, "[1,  2]"], "d": ["x", "y"]}
        text = tables.lines_of_json(data)
        self.assertIn('"a": [ 1.5, 2, 3 ]', text)
        self.assertEqual(json.loads(text), data)

    def test_components(self) -> None:
        difference = components.Component("link", "", "eight", "one", 7)
        self.assertEqual(components.value_of(difference, {"eight": [9.0, 8.0], "one": [1.0, 50.0]}, {}), 1.0)
        self.assertIsNone(components.value_of(difference, {"eight": [9.0]}, {}))
        printing = components.Component("call", "", "call", prints="Call")
        texts = {"call": [f"Call\t0\t9\t{ns}\nOther\t0\t9\t1\n" for ns in (5, 7, 600)]}
        self.assertAlmostEqual(components.value_of(printing, {}, texts), 7e-9)
        known = {component.later for component in components.list_of_all()} | {c.earlier for c in components.list_of_all() if c.earlier}
        with mock.patch.object(components.Bench, "__init__", lambda bench: None):
            bench = components.Bench()
        bench.boot, bench.root = Path("b"), Path("r")
        with tempfile.TemporaryDirectory() as place:
            self.assertLessEqual(known, set(bench.starts()) | set(bench.runs(Path(place))))

    def test_what_is_not_there_is_a_line_for_each_reason(self) -> None:
        data = result(bare=[1.0])
        data["missing"] = {"rg, bare": "no rg", "rg, unshare": "no rg", "podman": "no podman"}
        self.assertIn("- rg, bare and 1 more: no rg\n- podman: no podman\n", shared.markdown(results.REPORT, data))

    def test_one_more_command(self) -> None:
        data = result(bare=[1.0])
        for count, seconds in ((10, 0.1), (100, 1.0)):
            data["benchmarks"][f"amortized-true-{count}"] = {"results": [{"column": "bare", "times": [seconds]},
                                                                          {"column": "lind", "times": [seconds / 2]}]}
        self.assertIn("| one more command | 10.0 | 5.00 (0.50x) |", results.per_command(data))

    def test_what_changed(self) -> None:
        old = result(bare=[1.0] * 5, lind=[2.0] * 5, gone=[1.0])
        new = result(bare=[1.03] * 5, lind=[3.0] * 5)
        self.assertEqual([(c.column, c.verdict) for c in shared.changes(results.REPORT, old, new)], [("bare", "same"), ("lind", "slower")])
        self.assertEqual([c.verdict for c in shared.changes(results.REPORT, new, old)], ["same", "faster"])
        self.assertIn("| r | lind | 2000 | 3000 | +50.0% | slower |", shared.compare_text(results.REPORT, old, new))
        new["machine"] = {}
        self.assertIn("machines differ", shared.compare_text(results.REPORT, old, new))


class CommandLine(WithPlace):
    def run_it(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(REPOSITORY / "scripts/sandbench.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def measure(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run_it("-b", str(self.boot), "--image", str(self.image), "--dir", str(self.at), "--only-rows", *arguments)

    def test_two_rows(self) -> None:
        done = self.measure("-q", "-n", "3", "--rows", "true,echo", "--against", "unshare", "-o", str(self.at / "out"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = json.loads(done.stdout)
        self.assertEqual(list(data["benchmarks"]), ["true", "echo"])
        exported = {"command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "exit_codes"}
        found = {entry["column"]: entry for entry in data["benchmarks"]["echo"]["results"]}
        self.assertLessEqual(exported, set(found["bare"]))
        self.assertEqual((len(found["lind"]["times"]), found["lind"]["exit_codes"]), (3, [0, 0, 0]))
        self.assertTrue(found["bare"]["command"].endswith("/bin/echo hello"), found["bare"]["command"])
        self.assertEqual(data["missing"]["lind session"], "this lind-boot has no sessions")
        self.assertNotIn("bwrap full", {**data["columns"], **data["missing"]})
        kinds = sorted(file.suffix for file in (self.at / "out").iterdir())
        self.assertEqual(kinds, [".json", ".md"])
        self.assertEqual([file.name for file in self.at.iterdir() if file.name.startswith("sandbench.")], [], "left behind")

    def test_a_tool_that_is_missing_is_a_line(self) -> None:
        done = self.measure("-n", "1", "--rows", "python", "--against", "unshare")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("- python, lind: python3 is not in the image", done.stdout)

    def test_a_failure_is_a_status(self) -> None:
        self.script("lind-boot", FAKE_BOOT.replace('exec "$@"', "echo it broke >&2; exit 3"))
        done = self.measure("-n", "1", "--rows", "true", "--against", "unshare")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: true, lind: exit status 3, expected 0: it broke", done.stderr)
        self.assertRegex(done.stdout, r"\| true \| [\d.]+ \|")

    def test_compare(self) -> None:
        for name, times in (("a", [1.0] * 5), ("b", [2.0] * 5)):
            (self.at / name).write_text(json.dumps(result(bare=times)))
        a, b = str(self.at / "a"), str(self.at / "b")
        for pair, status in (((a, b), 1), ((b, a), 0), ((a, a), 0)):
            self.assertEqual(self.run_it("compare", *pair).returncode, status, pair)
        (self.at / "b").write_text("[]")
        done = self.run_it("compare", a, b)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("not a result of sandbench", done.stderr)

    def test_called_wrongly(self) -> None:
        for words in (["--rows", "nosuch"], ["--against", "nosuch"], ["-n", "0"], ["--nosuch"], ["profile", "nosuch"], ["compare", "a"]):
            done = self.run_it(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertTrue(done.stderr)


class Workflow(unittest.TestCase):
    def test_its_line_is_one_that_the_suite_takes(self) -> None:
        text = (REPOSITORY / ".github/workflows/sandboxes.yml").read_text()
        line = next(line.strip() for line in text.splitlines() if "scripts/sandbench.py" in line)
        values = {"MIN_RUNS": "5", "QUICK": "--quick", "NETWORK": "--network", "ROWS": "", "AGAINST": "bwrap"}
        words = [value for word in shlex.split(line)[2:] if (value := values.get(word.lstrip("$"), word)) or word.startswith("$")]
        options = sandbench.parser_of_run().parse_args(words)
        self.assertEqual((cli.rounds_of(options), options.quick, options.network, options.rows, options.against), (5, True, True, [], ["bwrap"]))
        self.assertEqual(options.out, Path("results"))


class Profile(WithPlace):
    def test_what_is_there_is_used(self) -> None:
        self.only_tools("true")
        self.script("tools/strace", FAKE_TRACER)
        row = next(row for row in rows.every_row() if row.name == "true")
        files, lines = profile.profile(row, columns.Column(), self.workspace(), self.at / "true-bare")
        self.assertEqual([(file.name, file.read_text()) for file in files], [("true-bare.strace", "seen\n")])
        self.assertEqual(lines, ["perf is not installed"] * 2)


class Pages(unittest.TestCase):
    def test_the_pages_are_as_generated(self) -> None:
        self.assertEqual([str(path.relative_to(REPOSITORY)) for path in document.outdated()], [], "run scripts/performance_page.py")

    def test_a_page_that_was_edited_by_hand(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            top = Path(name)
            for page, _, file, _ in document.PARTS:
                for path in (Path(page), document.RESULTS / file):
                    (top / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(REPOSITORY / path, top / path)
            page = top / "README.md"
            page.write_text(page.read_text().replace("| geteuid | ", "| geteuid | 1", 1))
            self.assertEqual(list(document.outdated(top)), [page])
            page.write_text("no marks")
            with self.assertRaisesRegex(Failed, "README.md: no part 'numbers'"):
                document.outdated(top)


if __name__ == "__main__":
    unittest.main()
