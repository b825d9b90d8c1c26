"""`lind mcp` by standard input and output: much output, and ends in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from .support import ERAS, LONG, SERVER, data, gone, started
from .test_mcp_http import grows, resident

pytestmark = LONG
LOOP = "while :; do echo x >>alive; sleep 0.02; done"


def begin(*options: str, **more: Any) -> subprocess.Popen[bytes]:
    """A server that has been told to run a command for ever, and another in the background."""
    server = subprocess.Popen([*SERVER, "-v", ".:rw", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
    initialize = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    say(server, {"id": 1, "method": "initialize", "params": initialize})
    assert server.stdout is not None and b'"id":1' in server.stdout.readline()
    say(server, {"method": "notifications/initialized"})
    say(server, {"id": 2, "method": "tools/call", "params": {"name": "run", "arguments": {"command": LOOP, "background": True}}})
    say(server, {"id": 3, "method": "tools/call", "params": {"name": "run", "arguments": {"command": LOOP.replace("alive", "front"), "timeout": 600}}})
    return server


def say(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    """Sends a message."""
    assert server.stdin is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()


def test_a_client_that_goes_away_ends_all(project: Path) -> None:
    with begin() as server:
        assert grows(project / "alive") and grows(project / "front")
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(timeout=30) == 0
        assert gone(str(project)) and not grows(project / "alive", 0.5) and not grows(project / "front", 0.5)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_server_leaves_nothing(number: int, project: Path) -> None:
    with begin() as server:
        assert grows(project / "alive") and grows(project / "front")
        server.send_signal(number)
        assert server.wait(timeout=30) == -number
        assert gone(str(project)) and not grows(project / "alive", 0.5) and not grows(project / "front", 0.5)


def test_a_client_that_does_not_read(project: Path) -> None:
    """Answers that nobody reads stop the server, but not its commands, and it does not grow."""
    with begin("--max-output", str(1 << 20)) as server:
        assert grows(project / "alive")
        (project / "large").write_bytes(b"x" * (1 << 20))
        for id in range(10, 40):
            say(server, {"id": id, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "large"}}})
        assert grows(project / "alive") and grows(project / "front")
        assert resident(server.pid) < 500 << 20
        server.kill()
    assert gone(str(project))


@pytest.mark.parametrize("era", ERAS)
async def test_a_gigabyte_of_output(era: str, project: Path) -> None:
    async with started(era) as client:
        ran = data(await client.call_tool("run", {"command": "head -c 1000000000 /dev/zero; echo end", "timeout": 300}))
        assert ran["next"] == 1_000_000_004 and ran["exit_code"] == 0 and ran["output"].endswith("end\n") and len(ran["output"]) < 500_000
        servers = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_child(pid)]
        assert servers and all(resident(pid) < 300 << 20 for pid in servers)


async def test_many_commands(project: Path) -> None:
    """Each call gives its own output, and the server does not grow with their number."""
    async with started("auto") as client:
        places = anyio.Semaphore(16)
        wrong: list[Any] = []

        async def run(number: int) -> None:
            async with places:
                ran = data(await client.call_tool("run", {"command": f"echo {number}"}))
                if (ran["exit_code"], ran["output"]) != (0, f"{number}\n"):
                    wrong.append(ran)

        few = 0
        for count in (300, 2000):
            async with anyio.create_task_group() as group:
                for number in range(count):
                    group.start_soon(run, number)
            (server,) = filter(is_child, map(int, filter(str.isdigit, os.listdir("/proc"))))
            few = few or resident(server)
        assert not wrong and resident(server) - few < 32 << 20


def is_child(pid: int) -> bool:
    """Whether it is a server that this process has started."""
    try:
        return f"PPid:\t{os.getpid()}\n" in Path(f"/proc/{pid}/status").read_text() and b"lind.mcp" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
