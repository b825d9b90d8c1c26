#!/usr/bin/env python3
"""Measures `lind e2b` with the stock client: many sandboxes, and short commands in all of them.

    python/tests/servers/bench_e2b.py [SANDBOXES [COMMANDS [AT_ONCE]]]      200, 10000 and 64 unless given

Prints how long the sandboxes take, how many commands a second there are, that each gave its own output, and the memory of the server.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP), str(TOP / "src")]
os.environ["PYTHONPATH"] = f"{TOP / 'src'}:{os.environ.get('PYTHONPATH', '')}"
os.environ.setdefault("LIND_BOOT", str(TOP.parent / "target" / "release" / "lind-boot"))

from e2b import AsyncSandbox

from tests.servers.e2b_server import pointed, server


def resident(pid: int) -> float:
    """The memory of a process, in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def measure(pid: int, count: int, commands: int, at_once: int) -> None:
    began = time.perf_counter()
    places = asyncio.Semaphore(32)

    async def make() -> AsyncSandbox:
        async with places:
            made: AsyncSandbox = await AsyncSandbox.create(timeout=3600, request_timeout=600)
            return made

    sandboxes = await asyncio.gather(*(make() for _ in range(count)))
    took = time.perf_counter() - began
    print(f"{count} sandboxes in {took:.1f} s, {1000 * took / count:.1f} ms each; server {resident(pid):.0f} MiB", flush=True)
    numbers, wrong, most = iter(range(commands)), 0, 0.0
    began = time.perf_counter()

    async def work() -> None:
        nonlocal wrong, most
        for number in numbers:
            result = await sandboxes[number % count].commands.run(f"echo {number}", timeout=300)
            wrong += result.stdout != f"{number}\n" or result.exit_code != 0
            most = max(most, resident(pid))

    await asyncio.gather(*(work() for _ in range(at_once)))
    took = time.perf_counter() - began
    print(f"{commands} commands, {at_once} at once, in {took:.1f} s: {commands / took:.0f} a second, {wrong} wrong; server {most:.0f} MiB at most", flush=True)


def main() -> None:
    count, commands, at_once = (int(word) for word in (*sys.argv[1:], *("200", "10000", "64")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder, server(Path(folder), f"--sandboxes={count}") as (process, variables), pointed(variables):
        asyncio.run(measure(process.pid, count, commands, at_once))


if __name__ == "__main__":
    main()
