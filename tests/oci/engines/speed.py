"""Times beside crun and runc with a static program of the host, in one run. Rows are measurements and never fail."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import bundles
import rootfs
from bundles import Runtime
from table import Skipped, Table

SUITE = "speed"
TIMES = 30
HELLO = '#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\nint main(int argc, char **argv) { if (argc > 1) for (;;) pause(); puts("hello"); return 0; }\n'


def native(folder: Path) -> Path:
    """The program for the host, linked statically."""
    source, made = folder / "hello.c", folder / "hello"
    source.write_text(HELLO)
    subprocess.run(["gcc", "-O2", "-static", "-o", made, source], check=True, capture_output=True)
    return made


def cage(folder: Path) -> Path:
    source, made = folder / "hello.c", folder / "hello.cwasm"
    source.write_text(HELLO)
    done = subprocess.run([rootfs.TOP / "scripts/lind_compile", "-O2", "-o", made, source], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(done.stderr)
    return made


def memory(pid: int) -> float:
    """MiB that a process has for itself, with its share of what others use too."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


class Measured:
    """A runtime with its bundles. `nothing` starts as many processes of the host as the engine starts commands."""

    def __init__(self, name: str, runtime: Runtime | None, folder: Path, program: Path) -> None:
        self.name, self.runtime, self.nothing = name, runtime, program
        self.hello = bundles.bundle(folder / f"{name}-hello", ["/bin/program"], program)
        self.waits = bundles.bundle(folder / f"{name}-waits", ["/bin/program", "wait"], program)
        self.pid_file = folder / f"{name}-pid"

    def commands(self, *lines: tuple[str | Path, ...]) -> None:
        for words in lines:
            if self.runtime is None:
                subprocess.run([self.nothing], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            elif self.runtime.quiet(*words):
                raise Skipped(f"{self.name} {words[0]} fails here: {self.runtime.said(*words)}")

    def life(self) -> None:
        self.commands(("create", "--bundle", self.hello, "speed"), ("start", "speed"), ("delete", "--force", "speed"))

    def exec(self) -> None:
        self.commands(("exec", "waits", "/bin/program"))

    @contextmanager
    def idle(self) -> Iterator[None]:
        """While one container waits."""
        if self.runtime is None:
            yield
            return
        self.commands(("run", "-d", "--bundle", self.waits, "--pid-file", self.pid_file, "waits"))
        try:
            yield
        finally:
            self.runtime.quiet("delete", "--force", "waits")

    def idle_memory(self) -> float:
        pid = int(self.pid_file.read_text())
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return sum(map(memory, [pid, *map(int, children)]))


def milliseconds(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def measure(all_of_them: list[Measured]) -> dict[str, dict[str, Any]]:
    """They take turns, so that whatever else the machine does is the same for all."""
    found: dict[str, dict[str, Any]] = {one.name: {"life": [], "exec": []} for one in all_of_them}
    for turn in range(TIMES + 1):
        for one in all_of_them:
            taken = milliseconds(one.life)
            found[one.name]["life"] += [taken] if turn else []
    with ExitStack() as stack:
        for one in all_of_them:
            stack.enter_context(one.idle())
        for turn in range(TIMES + 1):
            for one in all_of_them:
                taken = milliseconds(one.exec)
                found[one.name]["exec"] += [taken] if turn else []
        for one in all_of_them:
            if one.runtime is not None:
                found[one.name]["memory"] = one.idle_memory()
    return found


def shown(times: list[float]) -> str:
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f}, {len(times)} times)"


def run(table: Table, only: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="lind-speed-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        ours, host = cage(folder), native(folder)
        there = [Measured("nothing", None, folder, host)]
        for name, program, path in (("lind-oci", ours, str(rootfs.OCI)), ("crun", host, shutil.which("crun")), ("runc", host, shutil.which("runc"))):
            if path is None:
                table.skip(SUITE, name, "not installed")
            elif only in name:
                one = Measured(name, Runtime(path, folder), folder, program)
                try:
                    one.life()
                    there.append(one)
                except Skipped as why:
                    table.skip(SUITE, name, str(why))
        table.speed = measure(there)
        for name, found in table.speed.items():
            table.note(SUITE, f"{name}: create, start, delete of hello", shown(found["life"]))
            table.note(SUITE, f"{name}: exec of hello", shown(found["exec"]))
            if "memory" in found:
                table.note(SUITE, f"{name}: memory of an idle container", f"{found['memory']:.1f} MiB")
