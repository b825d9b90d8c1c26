"""Runs workloads in columns, in turns, and compares their results."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.building import how_it_ended, last_line
from bench.model import Failed, Missing
from bench.overlay.columns import Column, Overlay, Overlayfs, settings
from bench.overlay.workloads import State, Workload
from bench.timing import timed

# The first start of a program in a cage compiles it.
FIRST_SECONDS = 600
WHOLE = "whole process"
STEADY = "all phases"


def below(directory: Path) -> list[tuple[object, ...]]:
    """The state of all files below a directory that must not change under an overlay: also times that nobody can set back."""
    found = []
    for path in [directory, *sorted(directory.rglob("*"))]:
        st = path.lstat()
        content = hash(path.read_bytes()) if path.is_file() and not path.is_symlink() else 0
        found.append((str(path), st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns, st.st_ctime_ns, content))
    return found


class Turns:
    """One run: seconds of each row in each column, and the bytes by which the state has grown in each round."""

    def __init__(self, columns: list[Column], place: Path, rounds: int, seconds: float) -> None:
        self.place, self.rounds, self.seconds = place, rounds, seconds
        self.rows: dict[str, dict[str, list[float]]] = {}
        self.growth: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self.missing: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.columns = [column for column in columns if self.usable(column)]

    def add(self, row: str, column: Column, seconds: float) -> None:
        self.rows.setdefault(row, {}).setdefault(column.name, []).append(seconds)

    def usable(self, column: Column) -> bool:
        try:
            column.check()
            if isinstance(column, Overlayfs):
                with tempfile.TemporaryDirectory(dir=self.place) as name:
                    column.tried(Path(name))
        except Missing as missing:
            self.missing[column.name] = str(missing)
            return False
        return True

    def run(self, workload: Workload, step: Callable[[], None]) -> None:
        if isinstance(workload, State):
            self.run_state(workload, step)
        else:
            self.run_rounds(workload, step)

    def run_state(self, workload: State, step: Callable[[], None]) -> None:
        """Only our overlay has these commands. All rounds share one state: the cost must not depend on the number of snapshots."""
        for column in (column for column in self.columns if isinstance(column, Overlay)):
            with tempfile.TemporaryDirectory(dir=self.place) as name:
                lower = Path(name) / "project"
                lower.mkdir()
                column.open(lower, Path(name))
                try:
                    self.child(column, workload.before or [])
                    for i in range(self.rounds + 1):
                        for verb in "snapshot", "rollback":
                            seconds = self.verb(column, verb, str(column.state), f"s{i}")
                            if i:
                                self.add(f"{workload.name}: {verb}", column, seconds)
                        step()
                    self.layers(workload, column)
                except Failed as failure:
                    self.failed[f"{workload.name}, {column.name}"] = str(failure)

    def layers(self, workload: State, column: Overlay) -> None:
        """The same commands without the start of a process, in a cage that can write a copy of the state."""
        program = column.children.layers
        if not program:
            return
        place = column.place / "layers"
        place.mkdir()
        shutil.copy(column.database, place / "state.db")
        volumes = ["-v", str(place), "-v", f"{program.parent}:/overlay-bench:ro"]
        self.verb(column, "run", *volumes, "--", f"/overlay-bench/{program.name}", str(place / "state.db"), str(self.rounds + 1))
        for i, line in enumerate((self.place / "out").read_text().splitlines()):
            verb, nanoseconds = line.split()
            if i > 1:
                self.add(f"{workload.name}: {verb} alone", column, int(nanoseconds) / 1e9)

    def verb(self, column: Overlay, *words: str) -> float:
        return self.timed(f"{' '.join(words)}: ", [str(column.boot), *words], self.place, self.seconds)

    def timed(self, what: str, command: list[str], directory: Path, limit: float) -> float:
        out, err = self.place / "out", self.place / "err"
        ended = timed(command, directory, settings(), limit, out, err)
        if ended.status:
            raise Failed(f"{what}{how_it_ended(ended.status)}: {last_line(err.read_text(errors='replace'))}")
        return ended.seconds

    def run_rounds(self, workload: Workload, step: Callable[[], None]) -> None:
        lower = self.place / "project"
        lower.mkdir()
        workload.make(lower)
        os.sync()
        before = below(lower)
        wanted: dict[str, object] = {}
        left = list(self.columns)
        for i in range(self.rounds * workload.rounds_times + 1):
            for column in list(left):
                try:
                    self.round(workload, column, lower, wanted, counted=i > 0)
                except (Missing, Failed) as reason:
                    (self.missing if isinstance(reason, Missing) else self.failed)[f"{workload.name}, {column.name}"] = str(reason)
                    left.remove(column)
            step()
        if below(lower) != before:
            self.failed[workload.name] = "the directory below the overlays has changed"
        shutil.rmtree(lower)

    def round(self, workload: Workload, column: Column, lower: Path, wanted: dict[str, object], counted: bool) -> None:
        words = workload.words(column)
        with tempfile.TemporaryDirectory(dir=self.place) as name:
            column.open(lower, Path(name))
            if workload.before:
                self.child(column, workload.before)
            had = column.growth()
            outer, told = self.child(column, words)
            has = column.growth()
        seen = {"digest": told["digest"], "counts": told["counts"]}
        if wanted.setdefault("seen", seen) != seen:
            raise Failed(f"has seen {seen}, not {wanted['seen']}")
        if counted:
            for phase, seconds in {**told["phases"], STEADY: told["total"], WHOLE: outer}.items():
                self.add(f"{workload.name}: {phase}", column, seconds)
            if had and has:
                grown = has[0] - had[0], has[1] - had[1]
                self.growth.setdefault(workload.name, {}).setdefault(column.name, []).append(grown)

    def child(self, column: Column, words: list[str]) -> tuple[float, dict]:
        out = self.place / "out"
        seconds = self.timed("", column.command(words), column.directory, max(self.seconds, FIRST_SECONDS))
        try:
            return seconds, json.loads(out.read_text())
        except ValueError as error:
            raise Failed(f"printed {out.read_text()[:200]!r}") from error
