"""The servers and clients that the tests of `lind mcp` share. The clients are those of the official package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from lind import AsyncSandbox
from lind._options import Options
from lind.servers.mcp import arguments
from lind.servers.mcp.server import serving

SERVER = [sys.executable, "-m", "lind.mcp"]
# A client that shakes hands, as of 2025-11-25, and one that finds out that the server speaks
# 2026-07-28.
ERAS = ("legacy", "auto")
LONG = pytest.mark.skipif("LIND_NODE" not in os.environ, reason="it takes long: make sdk-test")
TOKEN = re.compile(r"the token is (\S+)")
ADDRESS = re.compile(r"(http://\S+)")


class User:
    """A user who answers each question in the same way, and remembers them."""

    def __init__(self, action: str = "accept", decision: object = "once") -> None:
        self.asked: list[str] = []
        self._action, self._decision = action, decision

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        content = {"decision": self._decision} if self._action == "accept" else None
        return ElicitResult.model_validate({"action": self._action, "content": content})


@asynccontextmanager
async def connected(era: str, *options: str, user: User | None = None) -> AsyncIterator[Client]:
    """A client of a server in this process, which is made as the command makes it."""
    given = arguments.parse(options)
    async with AsyncExitStack() as stack:
        chosen = arguments.options(given)
        sandbox = await stack.enter_async_context(AsyncSandbox(**chosen))
        server, _ = await stack.enter_async_context(serving(sandbox, Options(**chosen), given.max_output))
        yield await stack.enter_async_context(Client(server, mode=era, elicitation_callback=user, read_timeout_seconds=120))


@asynccontextmanager
async def started(era: str, *options: str, user: User | None = None) -> AsyncIterator[Client]:
    """A client of a server that is a process of its own, by standard input and output."""
    command = StdioServerParameters(command=SERVER[0], args=[*SERVER[1:], *options], env=dict(os.environ), cwd=os.getcwd())
    with tempfile.TemporaryFile("w+") as errors:
        async with Client(stdio_client(command, errlog=errors), mode=era, elicitation_callback=user, read_timeout_seconds=120) as client:
            yield client
        errors.seek(0)
        assert errors.read() == ""


@contextmanager
def web(*options: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server by HTTP: its process, its address, and its token."""
    with subprocess.Popen([*SERVER, "--listen=127.0.0.1:0", *options], stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            address = ADDRESS.search(server.stderr.readline())
            token = TOKEN.search(server.stderr.readline())
            assert address is not None and token is not None
            yield server, address[1], token[1]
        finally:
            server.terminate()
            server.wait(timeout=30)


@asynccontextmanager
async def connected_by_web(era: str, address: str, token: str, user: User | None = None) -> AsyncIterator[Client]:
    """A client of such a server."""
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120)
    async with http, Client(streamable_http_client(address, http_client=http), mode=era, elicitation_callback=user, read_timeout_seconds=120) as client:
        yield client


def data(result: CallToolResult) -> dict[str, Any]:
    """The structured content of a result that is not an error."""
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def text(result: CallToolResult) -> str:
    """The text of a result."""
    return "".join(getattr(block, "text", "") for block in result.content)


def processes(mark: str) -> list[int]:
    """The processes with a word in their command lines, but this one."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def gone(mark: str, seconds: float = 20) -> bool:
    """Whether they end soon."""
    limit = time.monotonic() + seconds
    while processes(mark):
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True
