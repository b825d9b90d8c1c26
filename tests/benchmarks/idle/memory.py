#!/usr/bin/env python3
"""Measures the memory of an idle cage: the host's difference between none and N children that wait in read(2).

    tests/benchmarks/idle/memory.py [--cages N] [--runner FILE]

Builds children.c for a cage and natively, runs it with children by fork and by posix_spawn, and prints KiB per child:
proportional set size, resident set size (natively the sum over the processes, in a cage one process), page tables. Exits with 1
if something fails, never because of a number.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
FIELDS = ("Pss", "Rss", "VmPTE")


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    children = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        children += [int(child) for child in (task / "children").read_text().split()]
    return [pid] + [each for child in children for each in family(child)]


def used(pid: int) -> dict[str, int]:
    """KiB of each field, over a process and its descendants."""
    total = dict.fromkeys(FIELDS, 0)
    for each in family(pid):
        for file in ("smaps_rollup", "status"):
            for line in Path(f"/proc/{each}/{file}").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in total:
                    total[name] += int(value.split()[0])
    return total


def measure(command: list[str], cages: int) -> dict[str, float]:
    """KiB of each field per child."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        seen = []
        for count in (0, cages):
            if process.stdout.readline() != f"{count}\n":
                process.kill()
                raise SystemExit(f"{' '.join(command)} failed")
            seen.append(used(process.pid))
            process.stdin.write("\n")
            process.stdin.flush()
        if process.wait(60):
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return {field: (seen[1][field] - seen[0][field]) / cages for field in FIELDS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cages", type=int, default=100)
    parser.add_argument("--runner", default=str(REPOSITORY / "target/release/lind-boot"))
    options = parser.parse_args()
    root = REPOSITORY / "lindfs"
    source = str(HERE / "children.c")
    with tempfile.TemporaryDirectory(dir=root) as folder:
        native, cage = f"{folder}/native", f"{folder}/children.cwasm"
        subprocess.run(["cc", "-O2", "-static", source, "-o", native], check=True)
        subprocess.run([str(REPOSITORY / "scripts/lind_compile"), source, "-o", cage], check=True, stdout=subprocess.DEVNULL)
        guest = "/" + os.path.relpath(cage, root)
        rows = {"native": [native], "cage": [options.runner, "--root", str(root), guest]}
        print(f"{'KiB per child':<16}" + "".join(f"{field:>8}" for field in FIELDS))
        for how in ("fork", "spawn"):
            for name, command in rows.items():
                found = measure([*command, how, str(options.cages)], options.cages)
                print(f"{name + ', ' + how:<16}" + "".join(f"{found[field]:8.0f}" for field in FIELDS))


if __name__ == "__main__":
    main()
