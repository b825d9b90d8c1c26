"""`lind mcp --http`: who may reach it, and what it does with clients that behave badly."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from lind.servers.core import Unusable
from lind.servers.mcp import arguments
from lind.servers.mcp.http import Front

from .support import ERAS, LONG, SERVER, connected_by_web, data, gone, web

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
KINDS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_command_by_http(era: str, project: Path) -> None:
    with web("--max-output", "1000") as (_, address, token):
        async with connected_by_web(era, address, token) as client:
            ran = data(await client.call_tool("run", {"command": "echo hello; exit 2"}))
            assert (ran["output"], ran["exit_code"]) == ("hello\n", 2)


@pytest.mark.parametrize("era", ERAS)
async def test_a_day_by_http(era: str, project: Path) -> None:
    """The tools that keep something between calls, progress and cancellation, as by standard input and output."""
    (project / "a.txt").write_text("one\n")
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    with web("--no-ask") as (_, address, token):
        async with connected_by_web(era, address, token) as client:

            async def call(tool: str, **arguments: object) -> dict[str, Any]:
                return data(await client.call_tool(tool, arguments))

            await call("write_file", path="a.txt", content="two\n")
            assert (await call("read_file", path="a.txt"))["content"] == "two\n"
            await call("snapshot", label="first")
            await call("run", command="echo three >a.txt; echo new >b.txt")
            await call("rollback", label="first")
            assert [(change["kind"], change["path"]) for change in (await call("diff"))["changes"]] == [("M", "a.txt")]
            await call("apply")
            assert (project / "a.txt").read_text() == "two\n" and [entry["path"] for entry in (await call("list_files"))["entries"]] == ["a.txt"]
            await call("run", command="rm a.txt")
            await call("discard")
            assert (await call("search_files", pattern="tw"))["matches"] == [{"path": "./a.txt", "line": 1, "text": "two"}]
            began = await call("run", command="echo ready; sleep 600", background=True)
            polled = await call("poll", id=began["id"])
            while not polled["output"]:
                polled = await call("poll", id=began["id"], wait=0.1)
            assert (polled["output"], polled["running"]) == ("ready\n", True), polled
            assert (await call("kill", id=began["id"]))["ended_by"] == "killed"
            assert (await call("run", command=": </dev/tcp/192.0.2.1/80"))["exit_code"] == 1
            assert [denial["to_allow"] for denial in (await call("explain"))["denials"]] == ["--allow 192.0.2.1:80"]
            data(await client.call_tool("run", {"command": "printf busy; sleep 2.5"}, progress_callback=hear))
            assert len(heard) >= 2 and heard[0] == "busy"
            with anyio.move_on_after(1) as scope:
                await call("run", command="echo $$ >pid; exec sleep 600")
            assert scope.cancelled_caught
            ended = "until ! kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done; echo gone"
            assert (await call("run", command=ended, timeout=30))["output"] == "gone\n"


async def test_strangers_are_refused(project: Path) -> None:
    with web() as (_, address, token), httpx2.Client(timeout=30) as http:

        def status(**headers: str) -> int:
            return int(http.post(address, json=INITIALIZE, headers={**KINDS, **headers}).status_code)

        good = f"Bearer {token}"
        assert status(Authorization=good) == 200
        assert [status(), status(Authorization="Bearer wrong"), status(Authorization=f"Basic {token}")] == [401] * 3
        assert http.get(address).status_code == http.delete(address).status_code == http.post(f"{address}/other", json={}).status_code == 401
        # A page of a stranger whose name leads here.
        assert status(Authorization=good, Host="evil.example:80") == 421
        assert status(Authorization=good, Origin="https://evil.example") == 403
        assert status(Authorization=good, Origin=address.removesuffix("/mcp")) == 200


def refused(*options: str) -> str:
    """The message about options that are refused."""
    with pytest.raises(Unusable) as why:
        Front.of(arguments.parse(options)).place.socket.close()
    return str(why.value)


def test_which_addresses_it_takes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = tmp_path / "token"
    token.write_text("x" * 43 + "\n")
    token.chmod(0o644)
    assert "others reach that address" in refused("--listen=0.0.0.0:0")
    assert "others reach that address" in refused("--listen=0.0.0.0:0", "--host=here.example")
    assert "others can read the token" in refused("--listen=127.0.0.1:0", f"--token-file={token}")
    token.chmod(0o600)
    assert "others reach that address" in refused("--listen=0.0.0.0:0", f"--token-file={token}")
    front = Front.of(arguments.parse(["--listen=0.0.0.0:0", "--host=here.example", f"--token-file={token}"]))
    front.place.socket.close()
    assert front.token == "x" * 43 and not front.is_made and front.place.hosts is not None and "here.example" in front.place.hosts
    one, other = (Front.of(arguments.parse(["--listen=127.0.0.1:0"])) for _ in range(2))
    assert one.is_made and len(one.token) >= 43 and one.token != other.token
    for made in (one, other):
        made.place.socket.close()
    for wrong in (["--token-file=token"], ["-e", "NAME"], ["--max-output=5"], ["--nothing"]):
        with pytest.raises(SystemExit):
            arguments.options(arguments.parse(wrong))
    assert "need --listen" in capsys.readouterr().err


def test_a_sandbox_that_cannot_start(project: Path) -> None:
    done = subprocess.run([*SERVER, "-v", "nowhere:rw"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert done.returncode == 1 and done.stdout == "" and "nowhere" in done.stderr and done.stderr.startswith("lind mcp: ")


def stream(address: str, token: str, command: str) -> socket.socket:
    """A connection on which a command has been asked for, in the newest revision; nobody reads its answer."""
    host, _, port = address.removeprefix("http://").removesuffix("/mcp").partition(":")
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}, "progressToken": 1}
    params = {"name": "run", "arguments": {"command": command, "timeout": 600}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {**KINDS, "Host": f"{host}:{port}", "Authorization": f"Bearer {token}", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "run",
               "Content-Length": str(len(body))}
    link = socket.create_connection((host, int(port)))
    link.sendall(("POST /mcp HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n" + body).encode())
    return link


def grows(path: Path, seconds: float = 20) -> bool:
    """Whether a file grows."""
    limit, size = time.monotonic() + seconds, path.stat().st_size if path.exists() else 0
    while time.monotonic() < limit:
        if path.exists() and path.stat().st_size > size:
            return True
        time.sleep(0.05)
    return False


def test_a_client_that_goes_away_takes_its_command_along(project: Path) -> None:
    with web("-v", ".:rw") as (_, address, token):
        link = stream(address, token, "while :; do echo x >>alive; sleep 0.02; done")
        assert grows(project / "alive")
        link.close()
        limit = time.monotonic() + 20
        while grows(project / "alive", 0.5):
            assert time.monotonic() < limit


def test_a_client_that_does_not_read(project: Path) -> None:
    """Its command is not held up, others are served, and what it leaves unread does not grow."""
    with web("-v", ".:rw") as (server, address, token):
        link = stream(address, token, "i=0; while :; do echo $((i += 1)); [ $((i % 1000)) -gt 0 ] || echo x >>alive; done")
        assert grows(project / "alive") and grows(project / "alive")
        with httpx2.Client(timeout=30, headers={**KINDS, "Authorization": f"Bearer {token}"}) as http:
            assert http.post(address, json=INITIALIZE).status_code == 200
        assert resident(server.pid) < 300 << 20
        link.close()


def resident(pid: int) -> int:
    """The bytes of memory that a process has."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) << 10


@LONG
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_server_leaves_nothing(number: int, project: Path) -> None:
    with web("-v", ".:rw") as (server, address, token):
        link = stream(address, token, "while :; do echo x >>alive; sleep 0.02; done")
        assert grows(project / "alive")
        server.send_signal(number)
        server.wait(timeout=30)
        assert gone(str(project)) and not grows(project / "alive", 0.5)
        link.close()
