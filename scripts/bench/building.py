"""Builds the programs that the columns run."""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
from pathlib import Path

from bench.model import STARTUP, Column, Failed

CFLAGS = ["-O2", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra"]


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
    """The values of lines `WHAT: ...` among a benchmark's first lines."""
    lines = (line.partition(f"{what}: ") for line in file.read_text().splitlines()[:10])
    return " ".join(rest.strip() for head, found, rest in lines if found and not head.strip(" /*"))


def linked(file: Path) -> list[str]:
    """The other sources that a benchmark asks for: `links: ../DIR/{a,b}.c`."""
    found = []
    for wanted in asks(file, "links").split():
        before, _, rest = wanted.partition("{")
        names, _, after = rest.partition("}")
        found += [str(file.parent / f"{before}{name}{after}") for name in names.split(",")]
    return found


class Builder:
    """Builds the programs that the columns run, each once."""

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
    """The words before the benchmark's name: the grates, or the line of the `.grate` file for grates with options."""
    words = column.file.read_text().split() if column.grates else []
    line = words or [f"{name}_grate" for name in column.grates]
    named = tuple(word.removesuffix("_grate") for word in line if word.endswith("_grate"))
    if named != column.grates:
        raise Failed(f"{column.file.name}: its line names other grates than its name")
    return line
