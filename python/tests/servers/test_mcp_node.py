"""`lind mcp` with programs from npm: the inspector, and the conformance tests of the protocol. They run where LIND_NODE names what `node.py` gets."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from .node import known
from .support import SERVER, web

pytestmark = pytest.mark.skipif("LIND_NODE" not in os.environ, reason="LIND_NODE does not name programs from npm: make sdk-test")
# The scenarios of the two revisions that any server can pass. All others call tools, prompts and
# resources of a server that was written for them, and so do two checks of server-stateless, about
# a tool named test_missing_capability.
SCENARIOS = ("server-initialize", "server-session-lifecycle", "server-stateless", "ping", "tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list",
             "sep-2164-resource-not-found", "dns-rebinding-protection", "caching", "http-header-validation", "input-required-result-unsupported-methods")
OTHERS = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "date", "server"}


def run(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs one of the programs."""
    programs = Path(os.environ["LIND_NODE"])
    return subprocess.run([programs / ".bin" / name, *words], env=known(programs), capture_output=True, text=True, timeout=300, check=False)


def inspect(*words: str) -> dict[str, object]:
    """The answer of a server by standard input and output, as the inspector prints it."""
    passed = [word for name, value in os.environ.items() if name in ("PYTHONPATH", "LIND_BOOT", "LIND_ROOT", "HOME", "XDG_RUNTIME_DIR") for word in ("-e", f"{name}={value}")]
    done = run("mcp-inspector", "--cli", *passed, *SERVER, *words)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def test_the_inspector_finds_no_fault_in_the_schemas(project: Path) -> None:
    tools = inspect("--method", "tools/list", "--strict")["tools"]
    assert isinstance(tools, list) and len(tools) == 13


def test_the_inspector_runs_a_command(project: Path) -> None:
    called = inspect("--method", "tools/call", "--tool-name", "run", "--tool-arg", "command=echo hello; exit 3")
    assert called["content"] == [{"type": "text", "text": "hello\n[exit status 3]"}]
    assert isinstance(called["structuredContent"], dict) and called["structuredContent"]["exit_code"] == 3


@contextmanager
def with_token(address: str, token: str) -> Iterator[str]:
    """The address of a server that adds the token to requests: the conformance tests have none."""
    upstream = httpx2.AsyncClient(timeout=60)

    async def forward(request: Request) -> StreamingResponse:
        headers = {**request.headers, "authorization": f"Bearer {token}"}
        outgoing = upstream.build_request(request.method, address, headers=headers, content=await request.body())
        answer = await upstream.send(outgoing, stream=True)
        return StreamingResponse(answer.aiter_raw(), answer.status_code, {name: value for name, value in answer.headers.items() if name not in HOP})

    app = Starlette(routes=[Route("/mcp", forward, methods=["GET", "POST", "DELETE"])])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server for all scenarios."""
    with web("-v", f"{tmp_path_factory.mktemp('volume')}:overlay") as (_, address, token), with_token(address, token) as forwarded:
        yield forwarded


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance(scenario: str, address: str, tmp_path: Path) -> None:
    done = run("conformance", "server", "--url", address, "--scenario", scenario, "--output-dir", str(tmp_path / "results"))
    (results,) = (tmp_path / "results").rglob("checks.json")
    checks = json.loads(results.read_text())
    failed = {check["id"] for check in checks if check["status"] == "FAILURE"} - OTHERS
    assert any(check["status"] == "SUCCESS" for check in checks) and not failed, done.stdout
