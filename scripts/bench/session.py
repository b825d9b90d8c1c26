"""Runs the columns in turns and keeps their output."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.building import Builder, how_it_ended, last_line, prepare
from bench.model import STARTUP, Column, Failed, Row, Rows
from bench.progress import progress
from bench.timing import timed

RUN_SECONDS = 300
STARTUP_PAIRS = 40


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
    """Runs a column's command once and returns its output."""
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


def spawn_ns(command: list[str], directory: Path) -> float:
    """Nanoseconds from spawning a command to its exit. A runner's root is the directory."""
    result = timed(command, directory, {**os.environ, "LIND_ROOT": str(directory)}, RUN_SECONDS)
    if result.status:
        raise Failed(f"{how_it_ended(result.status)} of: {' '.join(command)}")
    return result.seconds * 1e9


class Session:
    """One run of the runner: the measured, skipped and failed benchmarks."""

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
        """Builds first, then lets the columns take turns, so that a slow minute of the machine affects all alike."""
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
                command = [str(self.options.lind_boot), "hello.cwasm"]
                try:
                    spawn_ns([command[0], "--require-confinement", *command[1:]], directory)
                except Failed:
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
        if plain is not None and plain is not row and re.search(r"-grate(: \w+)?\)$", test):
            for column in ("linux", "lind"):
                if column in plain.values:
                    row.values.setdefault(column, plain.values[column])
