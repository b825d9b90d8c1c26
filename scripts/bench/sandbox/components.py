"""The parts of a start: each is the difference between two starts, or a time that a program in a cage measures itself.

A part is small against the delays that a busy machine adds to a start, and these only ever add: so
the fastest runs are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import statistics
from pathlib import Path

from bench.building import Builder, how_it_ended, last_line, run_tool
from bench.model import REPOSITORY, STARTUP, Failed
from bench.sandbox.measure import FIRST_SECONDS, RUN_SECONDS, WARM_UP, settings
from bench.session import parse_output
from bench.timing import timed

FUNCTIONS = 5000
MOUNTS = (1, 10, 100)
LINKS = (1, 2, 4, 8)
RULES = (10, 1000)
MAKERS = ("bind", "kernel")


@dataclasses.dataclass(frozen=True)
class Component:
    """A part, and its commands: (later - earlier) / times, or the line of the later one's output that `prints` names."""

    name: str
    how: str
    later: str
    earlier: str = ""
    times: int = 1
    prints: str = ""


def list_of_all() -> list[Component]:
    return [
        Component("process", "`lind-boot --version`", "version"),
        Component("engine, cage and their end", "start of an empty program, less the process", "hello", "version"),
        Component("module map", f"start of a program with {FUNCTIONS:,} more functions, less that of an empty one", "large", "hello"),
        Component("policy parse", f"`run --explain` with {RULES[1]:,} rules, less that with {RULES[0]}", "policy-1000", "policy-10"),
        *(Component(f"mounts: {n}", f"`run` with {n} `-v`, less that with none", f"mounts-{n}", "mounts-0") for n in MOUNTS),
        Component("chain link", "start behind eight grates, less that behind one, by seven", "links-8", "links-1", 7),
        Component("cage created and ended", "a program spawned and waited for, in a cage", "spawn", prints="Spawn"),
        Component("first call", "the first getppid of a cage", "first", prints="First call"),
        Component("call", "geteuid", "links-0", prints="Geteuid"),
        Component("stat, on the host", "stat of a file six directories deep, without lind-boot", "stat", prints="Stat"),
        *(Component(f"stat in a mount, {how}", f"the same in a volume, `--mounts={how}`", f"stat-{how}", prints="Stat") for how in MAKERS),
        *(Component(f"call through {n} grates", f"geteuid behind {n} that let it pass", f"calls-{n}", prints="Geteuid") for n in LINKS),
    ]


class Bench:
    """A root with the programs, and the commands by name."""

    def __init__(self, boot: Path, place: Path) -> None:
        self.boot, self.root = boot, place / "root"
        (self.root / "bin").mkdir(parents=True)
        (self.root / "tmp").mkdir()
        options = argparse.Namespace(benchmarks=REPOSITORY / "tests/benchmarks", grates=REPOSITORY / "grates", lindfs=REPOSITORY / "lindfs",
                                     lind_boot=boot, lind_compile=REPOSITORY / "scripts/lind_compile", cc="cc")
        builder = Builder(options, self.root)
        for name in (STARTUP, "proc_spawn", "sys_geteuid", "sys_first", "fs_stat"):
            builder.cage(name)
        builder.native("fs_stat")
        for grate in ("forward", "write_filter", "net", "resource"):
            builder.grate(grate)
        self.make_large(options.lind_compile)
        self.commands = {**self.starts(), **self.runs(place)}

    def make_large(self, compiler: Path) -> None:
        """A program with functions that are never called."""
        source = self.root / "large.c"
        lines = [f"static int f{i}(int x) {{ return x * {i} + (x >> {i % 7}); }}" for i in range(FUNCTIONS)]
        table = ", ".join(f"f{i}" for i in range(FUNCTIONS))
        main = f"static int (*const all[])(int) = {{{table}}};\nint main(int n, char **v) {{ (void)v; return n > 1 ? all[n](n) : 0; }}\n"
        source.write_text("\n".join(lines) + "\n" + main)
        run_tool([str(compiler), "-O1", "-o", str(self.root / "large.cwasm"), str(source)], "large.c")

    def starts(self) -> dict[str, list[str]]:
        base = [str(self.boot), "--root", str(self.root)]
        passing = "forward_grate"
        return {
            "version": [str(self.boot), "--version"],
            "hello": [*base, "startup.cwasm"], "large": [*base, "large.cwasm"],
            "links-1": [*base, passing, "startup.cwasm"], "links-8": [*base, *[passing] * 8, "startup.cwasm"],
            "spawn": [*base, "proc_spawn.cwasm"], "first": [*base, "sys_first.cwasm"], "links-0": [*base, "sys_geteuid.cwasm"],
            **{f"calls-{n}": [*base, *[passing] * n, "sys_geteuid.cwasm"] for n in LINKS},
        }

    def runs(self, place: Path) -> dict[str, list[str]]:
        base, program = [str(self.boot), "run", "--image", str(self.root)], ["--", "/startup.cwasm"]
        commands = {}
        for count in RULES:
            policy = place / f"rules-{count}.toml"
            policy.write_text("protect = [" + ", ".join(f'"name{i}"' for i in range(count)) + "]\n")
            commands[f"policy-{count}"] = [*base, "--explain", "--policy", str(policy), *program]
        for count in (0, *MOUNTS):
            volumes = []
            for i in range(count):
                directory = place / f"mounted{i}"
                directory.mkdir(exist_ok=True)
                volumes += ["-v", f"{directory}:/m{i}:ro"]
            commands[f"mounts-{count}"] = [*base, *volumes, *program]
        return commands | self.stats(place, base)

    def stats(self, place: Path, base: list[str]) -> dict[str, list[str]]:
        deep, policy = place / "deep", place / "no-rules.toml"
        deep.mkdir(exist_ok=True)
        policy.write_text('network = "host"\n')
        cage = [*base, "--policy", str(policy), "-v", f"{deep}:/deep"]
        return {"stat": [str(self.root / "fs_stat"), str(deep)], **{f"stat-{how}": [*cage, f"--mounts={how}", "--", "/fs_stat.cwasm", "/deep"] for how in MAKERS}}


def run(command: list[str], place: Path, limit: float) -> tuple[float, str]:
    """The seconds, and the output."""
    out, err = place / "stdout", place / "stderr"
    result = timed(command, place, settings(), limit, out, err)
    if result.status:
        raise Failed(f"{how_it_ended(result.status)}: {last_line(err.read_text(errors='replace'))}")
    return result.seconds, out.read_text(errors="replace")


def measure_all(boot: Path, place: Path, runs: int, say) -> tuple[dict[str, object], dict[str, str]]:
    """Seconds of each component. The commands take turns; a program that times itself does its own rounds and runs less often."""
    step = say(["components"])
    place = place / "components"
    place.mkdir()
    try:
        bench = Bench(boot, place)
    except Failed as failure:
        return {}, {"all": str(failure)}
    seconds: dict[str, list[float]] = {}
    printed: dict[str, list[str]] = {}
    failed: dict[str, str] = {}
    prints = {component.later for component in list_of_all() if component.prints}
    for i in range(-WARM_UP, runs):
        for name, command in bench.commands.items():
            if name in failed or (name in prints and not 0 <= i < 3):
                continue
            try:
                taken, text = run(command, place, RUN_SECONDS if i > -WARM_UP else FIRST_SECONDS)
            except Failed as failure:
                failed[name] = str(failure)
                continue
            if i >= 0:
                seconds.setdefault(name, []).append(taken)
                printed.setdefault(name, []).append(text)
    step()
    found = {component.name: {"how": component.how, "seconds": value} for component in list_of_all()
             if (value := value_of(component, seconds, printed)) is not None}
    return found, failed


def value_of(component: Component, seconds: dict[str, list[float]], printed: dict[str, list[str]]) -> float | None:
    if component.prints:
        points = [p for text in printed.get(component.later, []) for p in parse_output(text)[0] if p[0] == component.prints]
        return statistics.median(p[3] for p in points) / 1e9 if points else None
    with contextlib.suppress(KeyError):
        earlier = min(seconds[component.earlier]) if component.earlier else 0.0
        return (min(seconds[component.later]) - earlier) / component.times
    return None
