#!/usr/bin/env python3
"""Runs every test: conformance programs on Linux and then in a cage, and the `run` of every other folder in tests/.

    scripts/test.py [--native-only | --no-grates] [--jobs N] [PREFIX]...

A PREFIX selects: `fs`, `fs/open`, `hostile`, `grates/imfs`. A conformance program is tests/conformance/AREA/NAME.c or .cpp: it must
pass on Linux first, in an empty directory which it leaves empty; 0 is a pass, 77 a skip. Then it runs in a cage, in one behind
a grate that passes every call on, and in one whose files are in memory (imfs); those of fs/ also in a mount, made by the host and by
lind-boot. Failures that are known, in cages only, stand in tests/expected-failures.txt; one that passes after all is a failure. An
executable tests/FOLDER/run, and tests/grates/NAME/run and one below that, prints `N passed, N failed` itself; those outside of
tests/grates run beside the other tests. If few programs or folders fail, each of them runs once more, alone: one that passes then
is counted as passed and named as UNSTEADY, because a race or a machine under load has to be looked into all the same. With --once a
failure is final. The last lines name what failed, and say `N passed, N failed, N skipped`; exits with 1 if anything failed, 2 if
called wrongly.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = REPOSITORY / "tests"
sys.path.insert(0, str(TESTS))

from processes import family

GRATES = ("forward", "imfs")
MAKERS = ("bind", "kernel")
# The folders in this one share a directory of lindfs: they run one after the other, and after the
# conformance programs.
SHARING = "grates"
# These take longest, and begin first: none of them is to run alone at the end.
LONGEST = ("python", "sandbox", "users", "cxx")
CONFORMANCE = TESTS / "conformance"
# Without -fno-builtin the compiler answers many calls of the C library itself.
CFLAGS = ["-O1", "-g", "-fno-builtin", "-Wall", "-Wextra", "-Werror", f"-I{CONFORMANCE}"]
# Libraries' own templates use what they call deprecated.
STANDARDS = {".c": ["-std=c11"], ".cpp": ["-std=c++20", "-Wno-deprecated-declarations"]}
LIBRARIES = ["-lm", "-lpthread"]
PASSED, SKIPPED = 0, 77
RUN_SECONDS = 180
# The longest folder takes a quarter of this on two idle processors. A folder that hangs is ended
# and counts as a failure.
FOLDER_SECONDS = 1500
# A folder that was interrupted has so long to say where it was.
GRACE_SECONDS = 20
# A machine under load fails few tests; a fault of the runtime often fails many.
FEW = 4
FAILURE = re.compile(r"^\s*FAIL(ED)?\b")
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", re.MULTILINE)


class Wrong(Exception):
    """The command line or the checkout is not usable."""


@dataclasses.dataclass
class Totals:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    # Tests that failed, and passed when they ran again.
    unsteady: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        unsteady = f", {len(self.unsteady)} unsteady" if self.unsteady else ""
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped{unsteady}"

    def add(self, other: Totals) -> None:
        self.passed, self.failed, self.skipped = self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        self.failures += other.failures
        self.unsteady += other.unsteady


@dataclasses.dataclass
class Outcome:
    """How one program ended on one side."""

    name: str
    verdict: str
    detail: str = ""


class Native:
    """Linux: the host's compiler and nothing else."""

    title = "linux"

    def __init__(self, options: argparse.Namespace) -> None:
        self.compilers = {".c": options.cc, ".cpp": options.cxx}
        self.suffix = ""
        self.boot: Path | None = None
        self.build = options.build / Path(options.cc).name
        self.root = options.build

    def command(self, program: Path, directory: Path) -> list[str]:
        del directory
        return [str(program)]


class Cage(Native):
    """The same program, compiled by lind_compile and run by lind-boot with a directory of the root as its own."""

    title = "cage"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.compilers = {".c": str(options.lind_compile), ".cpp": str(options.lind_cxx)}
        self.suffix = ".cwasm"
        self.boot = options.lind_boot
        self.root = options.lindfs
        self.build = options.lindfs / "conformance"

    def command(self, program: Path, directory: Path) -> list[str]:
        inside = [f"/{path.relative_to(self.root)}" for path in (directory, program)]
        return [str(self.boot), "--root", str(self.root), "--cwd", *inside]


class Behind(Cage):
    """The cage's program, behind a grate."""

    def __init__(self, options: argparse.Namespace, grate: str) -> None:
        super().__init__(options)
        self.grate = grate
        self.title = f"cage behind {grate}"

    def command(self, program: Path, directory: Path) -> list[str]:
        *before, inside = super().command(program, directory)
        return [*before, f"{self.grate}_grate", inside]


class Mounted(Cage):
    """The cage's program in a sandbox, with its directory as a volume; the host or lind-boot makes the mounts."""

    def __init__(self, options: argparse.Namespace, maker: str) -> None:
        super().__init__(options)
        self.maker = maker
        self.title = f"cage in a mount by {maker}"
        self.policy = options.build / "no-rules.toml"
        self.policy.parent.mkdir(parents=True, exist_ok=True)
        self.policy.write_text('network = "host"\n')

    def command(self, program: Path, directory: Path) -> list[str]:
        run = [str(self.boot), "run", "--image", str(self.root), f"--mounts={self.maker}", "--policy", str(self.policy)]
        return [*run, "-v", f"{program}:/program.cwasm:ro", "-v", f"{directory}:/volume/place", "-w", "/volume/place", "--", "/program.cwasm"]

    def possible(self) -> bool:
        """Whether the host permits what that takes."""
        command = [str(self.boot), "run", "--image", str(self.root), f"--mounts={self.maker}", "--explain", "true"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def build_grate(name: str) -> None:
    done = subprocess.run(["make", "-C", str(REPOSITORY / "grates" / name), "install"], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise Wrong(f"make -C grates/{name} install failed:\n{done.stdout}{done.stderr}")


def newest(paths: list[Path]) -> float:
    return max((p.stat().st_mtime for p in paths if p.exists()), default=0)


def source_of(name: str) -> Path:
    """The program's source, in whichever language it is."""
    plus = CONFORMANCE / f"{name}.cpp"
    return plus if plus.exists() else CONFORMANCE / f"{name}.c"


def compile_program(side: Native, name: str) -> tuple[Path, str]:
    """The program and, if it does not compile, what the compiler said. Kept until an input is newer."""
    source = source_of(name)
    target = side.build / f"{name}{side.suffix}"
    target.parent.mkdir(parents=True, exist_ok=True)
    inputs = [source, CONFORMANCE / "check.h"]
    if side.boot:
        inputs += [side.boot, side.boot.with_name("lind-passes"), *(REPOSITORY / "build/sysroot/lib").glob("*.a")]
        inputs += (REPOSITORY / "scripts/driver").rglob("*.py")
    if target.exists() and target.stat().st_mtime > newest(inputs):
        return target, ""
    command = [side.compilers[source.suffix], *CFLAGS, *STANDARDS[source.suffix], "-o", str(target), str(source), *LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return target, f"{' '.join(command)}\n{done.stdout}{done.stderr}" if done.returncode else ""


def run_program(side: Native, name: str) -> Outcome:
    program, complaint = compile_program(side, name)
    if complaint:
        return Outcome(name, "failed", f"does not compile: {complaint}")
    side.root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=side.root, prefix="test.") as place:
        directory = Path(place)
        try:
            done = subprocess.run(side.command(program, directory), cwd=directory, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            said = (error.stdout or b"").decode(errors="replace")
            return Outcome(name, "failed", f"still running after {RUN_SECONDS} s\n{said}")
        left = sorted(p.name for p in directory.iterdir())
    said = done.stdout.decode(errors="replace")
    if done.returncode == SKIPPED:
        return Outcome(name, "skipped", said.strip())
    if done.returncode != PASSED:
        return Outcome(name, "failed", f"exit status {done.returncode}\n{said}")
    if left:
        return Outcome(name, "failed", f"left behind: {', '.join(left)}\n{said}")
    return Outcome(name, "passed")


def show(side: Native, outcome: Outcome, note: str = "") -> None:
    print(f"{outcome.verdict.upper()} {outcome.name} ({side.title}){note}", flush=True)
    for line in outcome.detail.rstrip().splitlines()[-40:]:
        print(f"    {line}")


def read_expected(file: Path) -> dict[str, str]:
    """`area/name  reason` or `area/name@grate  reason` a line; every line needs its reason."""
    expected: dict[str, str] = {}
    for line in file.read_text().splitlines() if file.exists() else []:
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(" ")
        if not reason.strip() or not source_of(name.split("@")[0]).exists():
            raise Wrong(f"{file.name}: {line!r}: no reason, or no such program")
        expected[name] = reason.strip()
    return expected


def judge(side: Native, outcome: Outcome, expected: dict[str, str], totals: Totals) -> None:
    """Counts an outcome. A known failure counts as skipped, a known failure that passes as failed."""
    reason = expected.get(outcome.name)
    if outcome.verdict == "passed" and reason is None:
        totals.passed += 1
    elif outcome.verdict == "passed":
        totals.failed += 1
        totals.failures.append(f"{outcome.name} ({side.title}): is known to fail, and passes")
        show(side, Outcome(outcome.name, "failed", "passes: remove it from tests/expected-failures.txt"))
    elif outcome.verdict == "failed" and reason is None:
        totals.failed += 1
        totals.failures.append(f"{outcome.name} ({side.title})")
        show(side, outcome)
    else:
        totals.skipped += 1
        show(side, Outcome(outcome.name, "skipped", outcome.detail if reason is None else f"known: {reason}"))


def run_again(side: Native, outcome: Outcome, totals: Totals) -> Outcome:
    """Runs a program that failed once more, with none beside it."""
    show(side, outcome, ", and runs again")
    second = run_program(side, outcome.name)
    if second.verdict == "passed":
        totals.unsteady.append(f"{outcome.name} ({side.title})")
    return second


def run_side(side: Native, names: list[str], expected: dict[str, str], options: argparse.Namespace, totals: Totals) -> list[str]:
    """Runs the programs on one side; returns those that passed."""
    passed, start = [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(lambda n: run_program(side, n), names))
    failed = [outcome for outcome in outcomes if outcome.verdict == "failed" and outcome.name not in expected]
    for outcome in outcomes:
        if outcome in failed and len(failed) <= FEW and not options.once:
            outcome = run_again(side, outcome, totals)
        judge(side, outcome, expected, totals)
        if outcome.verdict == "passed":
            passed.append(outcome.name)
    print(f"conformance ({side.title}): {len(passed)} of {len(names)} in {time.monotonic() - start:.0f} s", flush=True)
    return passed


def run_cages(options: argparse.Namespace, names: list[str], expected: dict[str, str], totals: Totals) -> None:
    """In a cage; what passes there also behind grates."""
    plain = {name: reason for name, reason in expected.items() if "@" not in name}
    agreed = run_side(Cage(options), names, plain, options, totals)
    if options.no_grates:
        return
    for grate in GRATES:
        build_grate(grate)
        known = {name.removesuffix(f"@{grate}"): reason for name, reason in expected.items() if name.endswith(f"@{grate}")}
        run_side(Behind(options, grate), agreed, known, options, totals)
    files = [name for name in agreed if name.startswith("fs/")]
    for maker in MAKERS if files else ():
        side = Mounted(options, maker)
        if side.possible():
            known = {name.removesuffix(f"@{maker}"): reason for name, reason in expected.items() if name.endswith(f"@{maker}")}
            run_side(side, files, known, options, totals)
        else:
            print(f"SKIPPED {side.title}: the host does not permit it", flush=True)


def end_of(process: subprocess.Popen[str]) -> float:
    """Waits for a process; returns the seconds of processor time that it and its children took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def interrupt(folder: subprocess.Popen[str], late: threading.Event) -> None:
    """Ends a folder that hangs: by SIGINT, which has it say where it is, and then with all its processes."""
    late.set()
    everyone = family(folder.pid)
    folder.send_signal(signal.SIGINT)
    end = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < end and Path(f"/proc/{folder.pid}/exe").exists():
        time.sleep(0.1)
    for pid in everyone:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def run_folder(folder: Path, say: Callable[[str], None]) -> Totals:
    """Runs tests/FOLDER/run, says what it prints, and returns the last counts that it prints."""
    name = folder.relative_to(TESTS) if folder.is_relative_to(TESTS) else folder
    say(f"tests/{name}:")
    said: list[str] = []
    start, late = time.monotonic(), threading.Event()
    with subprocess.Popen([str(folder / "run")], cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        limit = threading.Timer(FOLDER_SECONDS, interrupt, [process, late])
        limit.start()
        for line in process.stdout or []:
            said.append(line)
            if not COUNTS.match(line):
                say(f"    {line}".removesuffix("\n"))
        seconds = end_of(process)
        limit.cancel()
    status = process.returncode
    counts = COUNTS.findall("".join(said))
    passed, failed, skipped = (int(n or 0) for n in counts[-1]) if counts else (0, 0, 0)
    if late.is_set():
        say(f"FAILED tests/{name}/run: still running after {FOLDER_SECONDS} s, and ended")
        failed += 1
    elif not counts or (status and not failed):
        say(f"FAILED tests/{name}/run: exit status {status}, {'no counts' if not counts else 'no failure named'}")
        failed += 1
    failures: list[str] = []
    if failed:
        failures = [f"tests/{name}: {line.strip()}" for line in said if FAILURE.match(line)] or [f"tests/{name}: its last lines:\n{''.join(said[-25:])}"]
        failures += [f"tests/{name}: still running after {FOLDER_SECONDS} s"] if late.is_set() else []
    say(f"tests/{name}: {passed} passed, {failed} failed, {skipped} skipped in {time.monotonic() - start:.0f} s, {seconds:.0f} s of processor")
    return Totals(passed, failed, skipped, failures)


def run_folders(folders: Iterator[str], results: dict[str, Totals]) -> None:
    """Takes folders until none is left, as another thread may do; prints what each of them says in one piece."""
    for folder in folders:
        lines: list[str] = []
        print(f"tests/{folder}: begins", flush=True)
        results[folder] = run_folder(TESTS / folder, lines.append)
        print("\n".join(lines), flush=True)


def folders_again(results: dict[str, Totals], top: Path = TESTS) -> None:
    """Runs the folders that failed once more, one after the other, unless they are many."""
    failed = [folder for folder, totals in results.items() if totals.failed]
    for folder in failed if len(failed) <= FEW else []:
        print(f"tests/{folder}: failed, and runs again", flush=True)
        second = run_folder(top / folder, lambda line: print(line, flush=True))
        if not second.failed:
            second.unsteady = results[folder].failures
        results[folder] = second


def selected(names: list[str], prefixes: list[str]) -> list[str]:
    return [n for n in names if not prefixes or any(n.startswith(p) for p in prefixes)]


def parse_arguments() -> argparse.Namespace:
    def at(path: str) -> Path:
        return Path(path).resolve()

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefixes", nargs="*", metavar="PREFIX", help="fs, fs/open, libc, hostile, ...")
    parser.add_argument("--native-only", action="store_true", help="conformance on Linux only, and no other folder")
    parser.add_argument("--no-grates", action="store_true", help="conformance on Linux and in a cage, but not behind grates or in mounts")
    parser.add_argument("--once", action="store_true", help="run nothing that failed a second time")
    parser.add_argument("--list", action="store_true", help="print the names that can be selected")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="programs at once (default 2)")
    parser.add_argument("--cc", default=os.environ.get("TEST_CC", "clang-22"), help="native compiler")
    parser.add_argument("--cxx", default=os.environ.get("TEST_CXX", "clang++-22"), help="native compiler of C++")
    parser.add_argument("--build", type=at, default=REPOSITORY / "build/conformance", help=argparse.SUPPRESS)
    parser.add_argument("--lindfs", type=at, default=REPOSITORY / "lindfs", help=argparse.SUPPRESS)
    parser.add_argument("--lind-boot", type=at, default=REPOSITORY / "target/release/lind-boot", help=argparse.SUPPRESS)
    parser.add_argument("--lind-compile", type=at, default=REPOSITORY / "scripts/lind_compile", help=argparse.SUPPRESS)
    parser.add_argument("--lind-cxx", type=at, default=REPOSITORY / "scripts/bin/lind-c++", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.prefixes = [re.sub(r"\.c(pp)?$", "", p.removeprefix("tests/").removeprefix("conformance/")) for p in options.prefixes]
    return options


def run_all(options: argparse.Namespace) -> Totals:
    names = sorted(str(f.relative_to(CONFORMANCE).with_suffix("")) for f in CONFORMANCE.glob("*/*.c*") if f.suffix in STANDARDS)
    folders = sorted(str(f.parent.relative_to(TESTS)) for pattern in ("*/run", "grates/*/run", "grates/*/*/run") for f in TESTS.glob(pattern)
                     if os.access(f, os.X_OK))
    if options.list:
        print("\n".join(names + folders))
        return Totals()
    names, folders = selected(names, options.prefixes), selected(folders, options.prefixes)
    if not names and not folders:
        raise Wrong(f"nothing starts with {' or '.join(options.prefixes)}; see --list")
    expected = read_expected(TESTS / "expected-failures.txt")
    if not options.native_only and not options.lind_boot.exists():
        raise Wrong(f"{options.lind_boot} is not built: run make, or pass --native-only")
    totals = Totals()
    agreed = run_side(Native(options), names, {}, options, totals) if names else []
    if options.native_only:
        return totals
    sharing = [folder for folder in folders if folder.split("/")[0] == SHARING]
    apart = iter(sorted((folder for folder in folders if folder not in sharing), key=lambda folder: folder not in LONGEST))
    results: dict[str, Totals] = {}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_folders, apart, results)
        if agreed:
            run_cages(options, agreed, expected, totals)
        for folder in sharing:
            results[folder] = run_folder(TESTS / folder, lambda line: print(line, flush=True))
        run_folders(apart, results)
        beside.result()
    if not options.once:
        folders_again(results)
    for one in results.values():
        totals.add(one)
    return totals


def main() -> int:
    options = parse_arguments()
    # A shell that starts this in the background has it ignore these, and so would every program
    # that is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    try:
        totals = run_all(options)
    except Wrong as wrong:
        print(f"test.py: {wrong}", file=sys.stderr)
        return 2
    if not options.list:
        for failure in totals.unsteady:
            print(f"UNSTEADY {failure}")
        for failure in totals.failures:
            print(f"FAILED {failure}")
        print(totals)
    return 1 if totals.failed else 0


if __name__ == "__main__":
    sys.exit(main())
