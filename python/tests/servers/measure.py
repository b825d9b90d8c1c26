#!/usr/bin/env python3
"""Measures the servers: many sandboxes, and short commands in all of them, with the client that is named. Each command must give its own output.

    python/tests/servers/measure.py [--json] [--sandboxes N] [--commands N] [--at-once N] [SERVER]...

Unless given there are 200 sandboxes, 10000 commands, 64 at once, and the servers sandboxd, e2b and mcp; mcp has one sandbox. Prints for each how many
commands there are a second, how many gave something else, the processor time of each command in the client, the server and the sessions, and the most
memory that the server had.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP), str(TOP / "src"), str(TOP.parent / "scripts")]
os.environ["PYTHONPATH"] = f"{TOP / 'src'}:{os.environ.get('PYTHONPATH', '')}"
os.environ.setdefault("LIND_BOOT", str(TOP.parent / "target" / "release" / "lind-boot"))

from bench.machine import machine  # type: ignore[import-not-found]

from tests.servers.loads import resident, sessions

# Runs "echo N" in a sandbox, by its number, and returns the output.
Run = Callable[[int, int], Awaitable[str]]


@asynccontextmanager
async def sandboxd(folder: Path, count: int) -> AsyncIterator[tuple[int, Run]]:
    """The client is gRPC without more."""
    from grpc import aio  # type: ignore[import-untyped]

    from lind.servers.sandboxd import process_v1_pb as pb
    from tests.servers.sandboxd_server import SERVICE, server

    with server(folder, f"--sandboxes={count}") as (process, client):
        async with aio.insecure_channel(client.target) as channel:
            method = channel.unary_unary(SERVICE + "Execute")

            async def run(sandbox: int, number: int) -> str:
                given = [*client.headers.items(), ("x-sandbox-id", f"box{sandbox}")]
                message = pb.ExecuteRequest(config=pb.ProcessConfig(command=["sh", "-c", f"echo {number}"]))
                return pb.ExecuteResponse.from_binary(await method(message.to_binary(), metadata=given)).stdout.decode()

            yield process.pid, run


@asynccontextmanager
async def e2b(folder: Path, count: int) -> AsyncIterator[tuple[int, Run]]:
    """The client is E2B's own."""
    from e2b import AsyncSandbox

    from tests.servers.e2b_server import pointed, server

    with server(folder, f"--sandboxes={count}") as (process, variables), pointed(variables):
        made: dict[int, asyncio.Future[Any]] = {}

        async def run(sandbox: int, number: int) -> str:
            if sandbox not in made:
                made[sandbox] = asyncio.ensure_future(AsyncSandbox.create(timeout=3600, request_timeout=600))
            return str((await (await made[sandbox]).commands.run(f"echo {number}", timeout=300)).stdout)

        yield process.pid, run


@asynccontextmanager
async def mcp(folder: Path, count: int) -> AsyncIterator[tuple[int, Run]]:
    """The client is the official one, by standard input and output."""
    from tests.servers.support import data, started

    async with started("auto") as client:
        (pid,) = (int(path.name) for path in Path("/proc").glob("[0-9]*") if is_server(path))

        async def run(sandbox: int, number: int) -> str:
            return str(data(await client.call_tool("run", {"command": f"echo {number}"}))["output"])

        yield pid, run


def is_server(path: Path) -> bool:
    """Whether a process is the server that this one has started."""
    try:
        return b"lind.mcp" in (path / "cmdline").read_bytes() and f"PPid:\t{os.getpid()}\n" in (path / "status").read_text()
    except OSError:
        return False


def spent(pids: set[int]) -> float:
    """The seconds of processor time of processes, and of those that they have waited for."""
    ticks = 0
    for pid in pids:
        ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


async def measure(server: Any, count: int, commands: int, at_once: int) -> dict[str, Any]:
    """The row of a server."""
    with tempfile.TemporaryDirectory() as folder:
        async with server(Path(folder), count) as (pid, run):
            wrong, most = 0, 0

            async def all_of(total: int) -> float:
                numbers, began = iter(range(total)), time.perf_counter()

                async def work() -> None:
                    nonlocal wrong, most
                    for number in numbers:
                        wrong += await run(number % count, number) != f"{number}\n"
                        most = max(most, resident(pid))

                await asyncio.gather(*(work() for _ in range(at_once)))
                return time.perf_counter() - began

            starts = await all_of(count)
            others = sessions(pid)
            before = time.process_time(), spent({pid}), spent(others)
            seconds = await all_of(commands)
            after = time.process_time(), spent({pid}), spent(others)
            each = [1000 * (late - early) / commands for early, late in zip(before, after, strict=True)]
    return {"sandboxes": count, "starts": starts, "commands": commands, "at_once": at_once, "seconds": seconds, "wrong": wrong, "memory": most,
            "client": each[0], "server": each[1], "sessions": each[2]}


async def main() -> None:
    servers = {"sandboxd": sandboxd, "e2b": e2b, "mcp": mcp}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", metavar="SERVER", choices=[*servers, []])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sandboxes", type=int, default=200)
    parser.add_argument("--commands", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=64)
    given = parser.parse_args()
    rows = {}
    load = os.getloadavg()
    for name in given.servers or servers:
        row = rows[name] = await measure(servers[name], 1 if name == "mcp" else given.sandboxes, given.commands, 16 if name == "mcp" else given.at_once)
        if not given.json:
            print(f"{name}: {row['sandboxes']} sandboxes in {row['starts']:.1f} s; {row['commands'] / row['seconds']:.0f} commands a second, {row['wrong']} wrong; "
                  f"processor time of each: client {row['client']:.2f} ms, server {row['server']:.2f} ms, sessions {row['sessions']:.2f} ms; "
                  f"server {row['memory'] >> 20} MiB at most", flush=True)
    if given.json:
        print(json.dumps({"machine": machine(), "load": load, "rows": rows}, indent=1))


if __name__ == "__main__":
    asyncio.run(main())
