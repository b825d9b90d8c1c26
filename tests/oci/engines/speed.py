"""Times beside crun and runc with a static program of the host, in one run. Rows are measurements and never fail."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

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


def taken(act: Callable[[], None]) -> str:
    """Milliseconds: the middle and the quarters of many times."""
    act()
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        act()
        times.append((time.perf_counter() - began) * 1000)
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f}, {TIMES} times)"


def memory(pid: int) -> float:
    """MiB that a process has for itself, with its share of what others use too."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def measure(table: Table, name: str, runtime: Runtime, folder: Path, program: Path) -> None:
    hello = bundles.bundle(folder / f"{name}-hello", ["/bin/program"], program)
    waits = bundles.bundle(folder / f"{name}-waits", ["/bin/program", "wait"], program)

    def life() -> None:
        for words in (["create", "--bundle", hello, "speed"], ["start", "speed"], ["delete", "--force", "speed"]):
            if runtime.quiet(*words):
                raise Skipped(f"{words[0]} fails here: {runtime.said(*words)}")

    table.note(SUITE, f"{name}: create, start, delete of hello", taken(life))
    runtime.quiet("run", "-d", "--bundle", waits, "--pid-file", folder / "pid", "waits")
    try:
        table.note(SUITE, f"{name}: exec of hello", taken(lambda: runtime.quiet("exec", "waits", "/bin/program") and None))
        pid = int((folder / "pid").read_text())
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        table.note(SUITE, f"{name}: memory of an idle container", f"{sum(map(memory, [pid, *map(int, children)])):.1f} MiB")
    finally:
        runtime.quiet("delete", "--force", "waits")


def run(table: Table, only: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="lind-speed-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        ours, host = cage(folder), native(folder)
        for name, program, path in (("lind-oci", ours, str(rootfs.OCI)), ("crun", host, shutil.which("crun")), ("runc", host, shutil.which("runc"))):
            if only not in name:
                continue
            if path is None:
                table.skip(SUITE, name, "not installed")
                continue
            try:
                measure(table, name, Runtime(path, folder), folder, program)
            except Skipped as why:
                table.skip(SUITE, name, str(why))
