#!/usr/bin/env python3
"""Runs tests/benchmarks natively, in a cage and behind grates, and puts the times side by side.

    scripts/benchrunner.py [-o result.json] [--rounds N] [--compare OLD.json] [--plot FILE] [PREFIX]...

A PREFIX selects benchmarks by the start of their file name; none selects all. tests/benchmarks/README.md explains what a
benchmark is. Writes the table to stdout or JSON to -o (with every value in a sibling .raw.json); builds in a directory of
its own under lindfs/, which it removes. Exits with 1 if a benchmark failed, 2 if it was called wrongly.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CFLAGS = ["-O2", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]
RUN_SECONDS = 300
STARTUP = "startup"
STARTUP_PAIRS = 40
# Grates that answer nothing themselves: what is behind them shows the price of the way through, in rows of its own.
PASSING_ON = {"forward", "strace", "witness"}
KERNELS = "C kernels (geomean)"


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a row should show at most: a ratio to the Linux column, or nanoseconds more than the Lind column."""

    test: str
    column: str
    limit: float
    params: tuple[str, ...] = ()
    added: bool = False


BUDGETS = [
    Budget("Close", "lind", 0.25),
    Budget("Geteuid", "lind", 0.25),
    Budget("Getpid", "lind", 0.25),
    Budget("Read", "lind", 1.15),
    Budget("Write", "lind", 1.15),
    Budget("Read", "grate", 0.25, ("1",)),
    Budget("Read", "grate", 0.45, ("10240",)),
    Budget("Write", "grate", 0.3, ("1",)),
    Budget("Write", "grate", 0.45, ("10240",)),
    Budget("Geteuid", "grate", 0.4),
    Budget("Read (forward-grate)", "grate", 30, added=True),
    Budget("Read (namespace-grate, imfs-grate)", "grate", 0.4, ("1",)),
    Budget("Geteuid (forward-grate)", "grate", 30, added=True),
    Budget("Geteuid (8 x forward-grate)", "grate", 240, added=True),
    Budget("Getpid (witness-grate)", "grate", 300, added=True),
    Budget("Open+close", "grate", 0.5),
    Budget("Stat", "grate", 0.5),
    Budget("Readdir", "grate", 0.7),
    Budget("Startup", "lind", 2.0),
    Budget("Spawn", "lind", 0.6),
    Budget("Fork", "lind", 1.5, ("0",)),
    Budget("Fork", "lind", 8, ("100",)),
    Budget("Fork+exec", "lind", 1.0),
    Budget("Pipe", "lind", 1.1),
    Budget("UDS", "lind", 1.1),
    Budget("Thread", "lind", 2.0),
    Budget("Condvar", "lind", 1.2),
    Budget("Mutex", "lind", 1.2),
    Budget("Signal", "lind", 1.0),
    Budget(KERNELS, "lind", 1.35),
]


class Failed(Exception):
    """One benchmark cannot be built or run; the text says why. The others carry on."""


@dataclasses.dataclass(frozen=True)
class Stack:
    """A benchmark and the grates in front of it, as a `.grate` file's name spells them."""

    grates: tuple[str, ...]
    benchmark: str

    @classmethod
    def parse(cls, file_name: str) -> Stack:
        *grates, benchmark = file_name.removesuffix(".grate").split(".")
        names = tuple(g.replace("_", "-").removesuffix("-grate") for g in grates)
        if not names or not all(g.replace("_", "-").endswith("-grate") for g in grates):
            raise Failed(f"{file_name}: not of the form NAME-grate.BENCHMARK.grate")
        return cls(names, benchmark)

    @property
    def label(self) -> str:
        runs = [(grate, len(list(run))) for grate, run in itertools.groupby(self.grates)]
        return ", ".join(f"{g}-grate" if n == 1 else f"{n} x {g}-grate" for g, n in runs)


@dataclasses.dataclass
class Row:
    """One line of the table: the rounds' values by column (linux, lind, grate)."""

    loops: int = 0
    values: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    def median(self, column: str) -> float | None:
        values = self.values.get(column)
        return statistics.median(values) if values else None

    def spread(self, column: str) -> float | None:
        values = self.values.get(column)
        return (max(values) - min(values)) / statistics.median(values) if values else None

    def ratio(self, column: str) -> float | None:
        mine, linux = self.median(column), self.median("linux")
        return mine / linux if mine is not None and linux else None


Rows = dict[tuple[str, str], Row]


@dataclasses.dataclass
class Column:
    """One way to run one benchmark. `own_row` is the stack to name in the label when the row is not the plain one."""

    kind: str
    file: Path
    grates: tuple[str, ...] = ()
    own_row: str = ""
    command: list[str] = dataclasses.field(default_factory=list)
    links: dict[str, Path] = dataclasses.field(default_factory=dict)
    stopped: bool = False

    @property
    def title(self) -> str:
        return f"{self.file.name} ({'Linux' if self.kind == 'linux' else 'Lind'})" if not self.grates else self.file.name


# Selection


def spelled_alike(name: str) -> str:
    """`-` and `_` before `grate` name the same stack."""
    return name.replace("_grate", "-grate")


def available(directory: Path) -> list[str]:
    files = [f.name for f in directory.iterdir() if f.suffix in (".c", ".grate") and f.name != "bench.c"]
    return sorted(files) + [STARTUP]


def select(names: list[str], prefixes: list[str]) -> list[str]:
    wanted = [spelled_alike(Path(p).name) for p in prefixes]
    for prefix in wanted:
        if not any(spelled_alike(n).startswith(prefix) for n in names):
            raise Failed(f"no benchmark's name starts with {prefix!r}")
    return [n for n in names if not wanted or any(spelled_alike(n).startswith(p) for p in wanted)]


def own_rows(names: list[str]) -> set[str]:
    """The stacks that do not fill the plain row: those that only pass on, and every second one of a benchmark."""
    taken: set[str] = set()
    result = set()
    for name in (n for n in names if n.endswith(".grate")):
        stack = Stack.parse(name)
        if PASSING_ON & set(stack.grates) or stack.benchmark in taken:
            result.add(name)
        else:
            taken.add(stack.benchmark)
    return result


def plan(directory: Path, names: list[str], selected: list[str]) -> dict[str, list[Column]]:
    """The selected columns by benchmark, so that those of one benchmark can take turns."""
    groups: dict[str, list[Column]] = {}
    apart = own_rows(names)
    for name in selected:
        file = directory / name
        if name == STARTUP:
            groups[STARTUP] = []
        elif name.endswith(".c"):
            groups.setdefault(file.stem, [])[:0] = [Column("linux", file), Column("lind", file)]
        else:
            stack = Stack.parse(name)
            column = Column("grate", file, stack.grates, stack.label if name in apart else "")
            groups.setdefault(stack.benchmark, []).append(column)
    return groups


# Building


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def how_it_ended(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(-status).name}"
    return f"killed by signal {-status}"


def run_tool(command: list[str], what: str) -> None:
    """Runs a compiler or make; its output is shown only if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise Failed(f"{what}: {command[0]}: {error.strerror}") from error
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise Failed(f"{what}: {how_it_ended(done.returncode)} of: {' '.join(command)}")


def asks(file: Path, what: str) -> str:
    """What a benchmark asks for in its first lines: `WHAT: ...`."""
    for line in file.read_text().splitlines()[:10]:
        head, found, rest = line.partition(f"{what}: ")
        if found and not head.strip(" /*"):
            return rest.strip()
    return ""


def linked(file: Path) -> list[str]:
    """The other sources that a benchmark asks for: `links: ../DIR/{a,b}.c`."""
    wanted = asks(file, "links")
    if not wanted:
        return []
    before, _, names = wanted.partition("{")
    names, _, after = names.partition("}")
    return [str(file.parent / f"{before}{name}{after}") for name in names.split(",")]


class Builder:
    """Makes what the columns run, each thing once."""

    def __init__(self, options: argparse.Namespace, place: Path) -> None:
        self.options, self.place = options, place
        self.made: dict[tuple[str, str], Path | Failed] = {}

    def native(self, benchmark: str) -> Path:
        return self.once("native", benchmark)

    def cage(self, benchmark: str) -> Path:
        return self.once("cage", benchmark)

    def grate(self, name: str) -> Path:
        return self.once("grate", name)

    def once(self, kind: str, name: str) -> Path:
        if (kind, name) not in self.made:
            try:
                self.made[kind, name] = getattr(self, f"make_{kind}")(name)
            except Failed as failure:
                self.made[kind, name] = failure
        result = self.made[kind, name]
        if isinstance(result, Failed):
            raise result
        return result

    def sources(self, benchmark: str) -> list[str]:
        directory = self.options.benchmarks
        file = directory / ("startup/hello.c" if benchmark == STARTUP else f"{benchmark}.c")
        if not file.exists():
            raise Failed(f"{file} does not exist")
        return [str(file)] if benchmark == STARTUP else [str(file), str(directory / "bench.c"), *linked(file)]

    def make_native(self, benchmark: str) -> Path:
        target = self.place / benchmark
        sources = self.sources(benchmark)
        flags = asks(Path(sources[0]), "native").split()
        run_tool([self.options.cc, *CFLAGS, *flags, "-o", str(target), *sources], "native compile")
        return target

    def make_cage(self, benchmark: str) -> Path:
        target = self.place / f"{benchmark}.cwasm"
        if not self.options.lind_boot.exists():
            raise Failed(f"{self.options.lind_boot} is not built; run make")
        compiler = [str(self.options.lind_compile), *CFLAGS]
        run_tool([*compiler, "-o", str(target), *self.sources(benchmark)], "lind_compile")
        return target

    def make_grate(self, name: str) -> Path:
        folder = self.options.grates / name
        if not folder.is_dir():
            raise Failed(f"{folder} does not exist")
        run_tool(["make", "-C", str(folder), "install"], f"{name}-grate")
        built = self.options.lindfs / "grates" / f"{name}_grate.cwasm"
        if not built.exists():
            raise Failed(f"{name}-grate: make install made no {built}")
        return built


def prepare(column: Column, benchmark: str, builder: Builder) -> None:
    """Builds what the column needs; its command runs in a fresh directory that holds `links`."""
    if column.kind == "linux":
        column.command = [str(builder.native(benchmark))]
        return
    column.links = {f"{benchmark}.cwasm": builder.cage(benchmark)}
    line = launch_line(column)
    for name in column.grates + (("bracket",) if "%{" in line else ()):
        column.links[f"grates/{name}_grate.cwasm"] = builder.grate(name)
    column.command = [str(builder.options.lind_boot), "--root", ".", *line, f"{benchmark}.cwasm"]


def launch_line(column: Column) -> list[str]:
    """The words before the benchmark's name: the grates, or what the `.grate` file says where they take options."""
    words = column.file.read_text().split() if column.grates else []
    line = words or [f"{name}_grate" for name in column.grates]
    named = tuple(word.removesuffix("_grate") for word in line if word.endswith("_grate"))
    if named != column.grates:
        raise Failed(f"{column.file.name}: its line names other grates than its name")
    return line


# Running


@contextlib.contextmanager
def fresh_directory(place: Path, links: dict[str, Path]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=place, prefix="run.") as name:
        directory = Path(name)
        (directory / "tmp").mkdir()
        for link, target in links.items():
            (directory / link).parent.mkdir(exist_ok=True)
            try:
                os.link(target, directory / link)
            except OSError:
                shutil.copy2(target, directory / link)
        yield directory


def parse_output(text: str) -> tuple[list[tuple[str, str, int, float]], str | None]:
    """The data points of a benchmark's output, and the reason if it skipped itself."""
    points, reason = [], None
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[0] == "skip" and len(fields) == 2:
            reason = fields[1]
        elif len(fields) == 4:
            with contextlib.suppress(ValueError):
                points.append((fields[0], str(int(fields[1])), int(fields[2]), float(fields[3])))
    return points, reason


def run_once(column: Column, place: Path) -> str:
    """Runs a column's command once and returns what it printed."""
    with fresh_directory(place, column.links) as directory, tempfile.TemporaryFile(dir=place) as errors:
        try:
            done = subprocess.run(column.command, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=errors, timeout=RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"still running after {RUN_SECONDS} s") from error
        except OSError as error:
            raise Failed(f"{column.command[0]}: {error.strerror}") from error
        if done.returncode:
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
            said = last_line(errors.read().decode(errors="replace"))
            raise Failed(f"{how_it_ended(done.returncode)}: {said}")
    return done.stdout.decode(errors="replace")


def spawn_ns(command: list[str], directory: Path) -> int:
    """Nanoseconds from spawning a command to its end."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    here = os.open(".", os.O_RDONLY)
    os.chdir(directory)
    try:
        start = time.perf_counter_ns()
        child = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        taken = time.perf_counter_ns() - start
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    finally:
        os.fchdir(here)
        os.close(here)
    if status:
        raise Failed(f"{how_it_ended(status)} of: {' '.join(command)}")
    return taken


class Session:
    """One run of the runner: what was measured, skipped and failed."""

    def __init__(self, options: argparse.Namespace, place: Path) -> None:
        self.options, self.place = options, place
        self.builder = Builder(options, place)
        self.rows: Rows = {}
        self.skipped: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self.notes: list[str] = []

    def add(self, key: tuple[str, str], column: str, loops: int, ns: float) -> None:
        row = self.rows.setdefault(key, Row())
        row.loops = row.loops or loops
        row.values.setdefault(column, []).append(ns)

    def measure(self, column: Column) -> None:
        points, reason = parse_output(run_once(column, self.place))
        if reason is not None:
            self.skipped[column.title] = reason
            column.stopped = True
        elif not points:
            raise Failed("printed no result")
        for test, param, loops, ns in points:
            label = f"{test} ({column.own_row})" if column.own_row else test
            self.add((label, param), column.kind, loops, ns)

    def attempt(self, column: Column, action) -> None:
        if column.stopped:
            return
        try:
            action()
        except Failed as failure:
            self.failures[column.title] = str(failure)
            column.stopped = True

    def run_group(self, benchmark: str, columns: list[Column], step) -> None:
        """Builds first, then lets the columns take turns, so that a slow minute of the machine hits all alike."""
        for column in columns:
            self.attempt(column, lambda c=column: prepare(c, benchmark, self.builder))
        for _ in range(self.options.rounds):
            for column in columns:
                self.attempt(column, lambda c=column: self.measure(c))
                step()

    def run_startup(self, step) -> None:
        """lind-boot hello.cwasm against /bin/true; a round's value is the median of alternating pairs."""
        column = Column("lind", Path(STARTUP))

        def all_rounds() -> None:
            links = {"hello.cwasm": self.builder.cage(STARTUP)}
            with fresh_directory(self.place, links) as directory:
                command = [str(self.options.lind_boot), "--root", ".", "--require-confinement", "hello.cwasm"]
                try:
                    spawn_ns(command, directory)
                except Failed:
                    command.remove("--require-confinement")
                    self.notes.append("startup ran without --require-confinement: this host lacks one of the walls")
                for _ in range(self.options.rounds):
                    self.startup_round(command, directory)
                    step()

        self.attempt(column, all_rounds)

    def startup_round(self, command: list[str], directory: Path) -> None:
        pairs = [(spawn_ns(["/bin/true"], directory), spawn_ns(command, directory)) for _ in range(STARTUP_PAIRS)]
        loops = STARTUP_PAIRS * self.options.rounds
        self.add(("Startup", "0"), "linux", loops, statistics.median(p[0] for p in pairs))
        self.add(("Startup", "0"), "lind", loops, statistics.median(p[1] for p in pairs))

    def run(self, groups: dict[str, list[Column]]) -> None:
        with progress(sum(max(1, len(c)) for c in groups.values()) * self.options.rounds) as say:
            for benchmark, columns in groups.items():
                files = dict.fromkeys(str(c.file) for c in columns) or {STARTUP: None}
                step = say(list(files))
                if benchmark == STARTUP:
                    self.run_startup(step)
                else:
                    self.run_group(benchmark, columns, step)
        fill_own_rows(self.rows)


def fill_own_rows(rows: Rows) -> None:
    """`Read (forward-grate)` is compared with the Linux and Lind times of `Read`."""
    for (test, param), row in rows.items():
        plain = rows.get((test.rsplit(" (", 1)[0], param))
        if plain is not None and plain is not row and test.endswith("-grate)"):
            for column in ("linux", "lind"):
                if column in plain.values:
                    row.values.setdefault(column, plain.values[column])


@contextlib.contextmanager
def progress(steps: int):
    """Yields say(files) -> step: a bar on a terminal, otherwise a line for each file."""
    if not sys.stderr.isatty():
        def say_plainly(files: list[str]):
            for file in files:
                print(f"Running:  {file}", file=sys.stderr, flush=True)
            return lambda: None

        yield say_plainly
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=steps)

        def say(files: list[str]):
            bar.update(task, description=Path(files[0]).name)
            for file in files:
                bar.console.print(f"Running:  {file}", highlight=False)
            return lambda: bar.advance(task)

        yield say


# Reporting


def ns_text(ns: float) -> str:
    return f"{ns:.0f}" if ns >= 100 else f"{ns:.1f}"


def kernels_row(rows: Rows) -> Row | None:
    """The geometric mean over the C kernels that have both columns."""
    kernels = [r for (test, _), r in rows.items() if test.startswith("CPU ") and r.ratio("lind")]
    if not kernels:
        return None
    mean = {c: math.exp(statistics.fmean(math.log(r.median(c)) for r in kernels)) for c in ("linux", "lind")}
    return Row(0, {column: [value] for column, value in mean.items()})


def verdicts(test: str, param: str, row: Row) -> list[str]:
    """`grate 0.30x met`, `grate +40 ns missed`: the budgets that a row has values for."""
    result = []
    for budget in BUDGETS:
        if budget.test != test or (budget.params and param not in budget.params):
            continue
        mine, base = row.median(budget.column), row.median("lind" if budget.added else "linux")
        if mine is None or not base:
            continue
        value = mine - base if budget.added else mine / base
        goal = f"+{budget.limit:.0f} ns" if budget.added else f"{budget.limit:g}x"
        result.append(f"{budget.column} {goal} {'met' if value <= budget.limit else 'missed'}")
    return result


def all_rows(rows: Rows) -> list[tuple[str, str, Row]]:
    result = [(test, param, row) for (test, param), row in sorted(rows.items(), key=row_order)]
    mean = kernels_row(rows)
    return result + ([(KERNELS, "-", mean)] if mean else [])


def row_order(item: tuple[tuple[str, str], Row]) -> tuple[str, int]:
    (test, param), _ = item
    return test, int(param)


def cell(row: Row, column: str) -> str:
    median, ratio = row.median(column), row.ratio(column)
    if median is None:
        return "-"
    return ns_text(median) + (f" ({ratio:.3f})" if ratio is not None and column != "linux" else "")


def table(rows: Rows) -> str:
    from tabulate import tabulate

    lines = []
    for test, param, row in all_rows(rows):
        spreads = [row.spread(c) for c in ("linux", "lind", "grate") if c in row.values and row.loops]
        lines.append([test, param, *(cell(row, c) for c in ("linux", "lind", "grate")), row.loops or "-",
                      "/".join(f"{s:.0%}" for s in spreads) or "-", ", ".join(verdicts(test, param, row))])
    headers = ["TEST", "PARAM", "LINUX (ns)", "LIND (ns)", "GRATE (ns)", "ITERATIONS", "SPREAD", "BUDGET"]
    return tabulate(lines, headers, tablefmt="simple", disable_numparse=True)


def result_json(rows: Rows) -> dict[str, dict[str, dict[str, str]]]:
    result: dict[str, dict[str, dict[str, str]]] = {}
    for (test, param), row in sorted(rows.items(), key=row_order):
        entry = {column: ns_text(row.median(column)) for column in sorted(row.values)}
        result.setdefault(test, {})[param] = {**entry, "loops": str(row.loops)}
    return result


def first_line_of(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    except OSError as error:
        return f"unknown ({error.strerror})"
    return (done.stdout or done.stderr).split("\n", 1)[0].strip()


def filesystem_of(directory: Path) -> str:
    """`ext4 on /dev/vda1`, from the longest mount point above the directory."""
    best = ("", "unknown", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, point, kind = line.split()[:3]
        if directory.resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind, device)
    return f"{best[1]} on {best[2]}"


def machine() -> dict[str, str]:
    cpus = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")]
    memory = Path("/proc/meminfo").read_text().split("\n", 1)[0].split(":")[1].strip()
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {"cpu": cpus[0] if cpus else platform.processor(), "cpus": str(os.cpu_count()), "memory": memory,
            "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
            "governor": governor.read_text().strip() if governor.exists() else "unknown"}


def raw_json(session: Session) -> dict[str, object]:
    options = session.options
    values: dict[str, dict[str, dict[str, list[float]]]] = {}
    for (test, param), row in sorted(session.rows.items(), key=row_order):
        values.setdefault(test, {})[param] = row.values
    return {
        "rounds": options.rounds,
        "unit": "ns",
        "machine": machine(),
        "filesystem": filesystem_of(options.lindfs),
        "flags": {"linux": [options.cc, *CFLAGS], "lind": ["scripts/lind_compile", *CFLAGS]},
        "versions": {
            "compiler": first_line_of([options.cc, "--version"]),
            "lind-boot": first_line_of([str(options.lind_boot), "--version"]),
            "commit": first_line_of(["git", "describe", "--always", "--dirty"]),
            "libc": " ".join(platform.libc_ver()),
            "python": platform.python_version(),
        },
        "values": values,
        "budgets": {f"{t} {p}": v for t, p, r in all_rows(session.rows) if (v := verdicts(t, p, r))},
        "notes": session.notes,
        "skipped": session.skipped,
        "failed": session.failures,
    }


def raw_path(file: Path) -> Path:
    return file.with_name(f"{file.stem}.raw.json")


def changes(old: dict, old_raw: dict | None, rows: Rows) -> list[str]:
    """What moved: the rounds of then and now do not overlap and the medians differ by 2 %. Without raw values: by 10 %."""
    result = []
    for (test, param), row in sorted(rows.items(), key=row_order):
        for column in ("linux", "lind", "grate"):
            before, now = old.get(test, {}).get(param, {}).get(column), row.median(column)
            if before is None or now is None:
                continue
            change = now / float(before) - 1
            rounds = (old_raw or {}).get("values", {}).get(test, {}).get(param, {}).get(column)
            if rounds:
                new = row.values[column]
                beyond = abs(change) > 0.02 and (min(new) > max(rounds) or max(new) < min(rounds))
            else:
                beyond = abs(change) > 0.10
            if beyond:
                result.append(f"{test} {param} {column}: {before} -> {ns_text(now)} ns ({change:+.1%})")
    return result


def compare(old_file: Path, rows: Rows) -> str:
    old = json.loads(old_file.read_text())
    raw = raw_path(old_file)
    lines = changes(old, json.loads(raw.read_text()) if raw.exists() else None, rows)
    return "\n".join([f"Changes since {old_file}:", *(lines or ["none beyond noise"])])


def plot(file: Path, rows: Rows) -> None:
    """Bars of time relative to Linux, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [(f"{t} {p}", r) for t, p, r in all_rows(rows) if r.ratio("lind") or r.ratio("grate")][::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.4 * len(shown)))
    for offset, column, colour in ((0.2, "lind", "#4477aa"), (-0.2, "grate", "#ee6677")):
        bars = [(i + offset, r.ratio(column)) for i, (_, r) in enumerate(shown) if r.ratio(column)]
        if bars:
            drawn = axes.barh([b[0] for b in bars], [b[1] for b in bars], 0.38, label=column, color=colour)
            axes.bar_label(drawn, fmt="%.2f", padding=2, fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [name for name, _ in shown], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("time relative to native Linux (left of the line is faster)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)


def report(session: Session) -> None:
    options = session.options
    if options.out:
        options.out.write_text(json.dumps(result_json(session.rows), indent=2, sort_keys=True) + "\n")
        raw_path(options.out).write_text(json.dumps(raw_json(session), indent=1) + "\n")
    elif session.rows:
        print(table(session.rows))
    for note in session.notes:
        print(f"note: {note}", file=sys.stderr)
    for title, reason in session.skipped.items():
        print(f"skipped: {title}: {reason}", file=sys.stderr)
    for title, why in session.failures.items():
        print(f"FAILED: {title}: {why}", file=sys.stderr)
    if options.compare:
        print(compare(options.compare, session.rows))
    if options.plot:
        plot(options.plot, session.rows)


# The command line


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    def at(path: str) -> Path:
        return Path(path).resolve()

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefixes", nargs="*", metavar="PREFIX", help="start of a file name in tests/benchmarks")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="write JSON instead of the table")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="runs of each column (default 5)")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="print what changed beyond noise")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratios, as .svg or .png")
    parser.add_argument("--dir", type=Path, metavar="DIR", help="where all columns run (default: lindfs)")
    parser.add_argument("--list", action="store_true", help="print the names that can be selected")
    parser.add_argument("--cc", default=os.environ.get("BENCH_CC", "clang-22"), help="native compiler")
    parser.add_argument("--benchmarks", type=at, default=REPOSITORY / "tests/benchmarks", help=argparse.SUPPRESS)
    parser.add_argument("--grates", type=at, default=REPOSITORY / "grates", help=argparse.SUPPRESS)
    parser.add_argument("--lindfs", type=at, default=REPOSITORY / "lindfs", help=argparse.SUPPRESS)
    parser.add_argument("--lind-boot", type=at, default=REPOSITORY / "target/release/lind-boot", help=argparse.SUPPRESS)
    parser.add_argument("--lind-compile", type=at, default=REPOSITORY / "scripts/lind_compile", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.compare and not options.compare.exists():
        parser.error(f"--compare: {options.compare} does not exist")
    return options


def require_packages(options: argparse.Namespace) -> None:
    wanted = [] if options.out else ["tabulate"]
    wanted += ["rich"] if sys.stderr.isatty() else []
    wanted += ["matplotlib"] if options.plot else []
    for package in wanted:
        try:
            __import__(package)
        except ImportError as error:
            raise Failed(f"python package {package} is missing: pip install -r scripts/requirements.txt") from error


def main() -> int:
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        names = available(options.benchmarks)
        if options.list:
            print("\n".join(names))
            return 0
        require_packages(options)
        groups = plan(options.benchmarks, names, select(names, options.prefixes))
    except Failed as failure:
        print(f"benchrunner: {failure}", file=sys.stderr)
        return 2
    options.lindfs.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.dir or options.lindfs, prefix="bench.") as place:
        session = Session(options, Path(place))
        session.run(groups)
        report(session)
    return 1 if session.failures else 0


if __name__ == "__main__":
    sys.exit(main())
