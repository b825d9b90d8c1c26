"""The server: its tools, and how clients learn of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.request_state import RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp_types import ToolAnnotations

import lind
from lind._options import Options

from . import stdio
from .asking import Asking
from .changes import Overlay
from .commands import Commands
from .explain import Explain
from .files import Files
from .jobs import Jobs

# How long the state of a question is good, in seconds. The call itself waits as long as --ask says.
ANSWERS = 86_400.0
INSTRUCTIONS = """\
Commands run in a sandbox. They see the directories that the user has given them, and reach the hosts that the user has allowed; explain lists both.
Where a directory is an overlay, changes stay beside it: diff shows them, and apply makes them in the directory itself when the user wants that.
A call that is denied fails with an error, and the result says what was denied and what to do instead. Do not try to get around it."""


@asynccontextmanager
async def serving(sandbox: lind.AsyncSandbox, options: Options, most: int) -> AsyncIterator[tuple[MCPServer[Any], Jobs]]:
    """A server for a sandbox that has been opened, and its commands. At the end the commands are killed. Results have at most so many bytes of output."""
    asking = Asking(sandbox)
    if options.ask is not None:
        await asking.open()
    jobs = Jobs(sandbox, most, asking.paused)
    try:
        yield make(sandbox, options, jobs, asking, most), jobs
    finally:
        await jobs.close()
        await asking.close()


class Server(MCPServer[Any]):
    """A server that needs no threads where pipes lead to its client."""

    async def run_stdio_async(self) -> None:
        """Serves by standard input and output."""
        # Another version of the SDK may have it elsewhere.
        inner = getattr(self, "_lowlevel_server", None)
        if inner is None or not stdio.can_wait():
            await super().run_stdio_async()
            return
        async with stdio.opened() as (given, said), stdio_server(given, said) as (read, write):
            await inner.run(read, write, inner.create_initialization_options())


def make(sandbox: lind.AsyncSandbox, options: Options, jobs: Jobs, asking: Asking, most: int) -> MCPServer[Any]:
    """The server with its tools."""
    server = Server("lind", title="Lind sandbox", version=lind.__version__, instructions=INSTRUCTIONS, log_level="WARNING", subscriptions=False,
                                       request_state_security=RequestStateSecurity.ephemeral(ttl=ANSWERS))
    commands, files, overlay = Commands(jobs, asking), Files(sandbox, most), Overlay(sandbox, most)
    reaches = bool(options.allow or options.network or options.ask)

    def add(work: Callable[..., Any], title: str, *, reads: bool = False, destroys: bool = False, again: bool = False, world: bool = False) -> None:
        """A tool. It reads alone, or may destroy; to call it again changes nothing more; it reaches others than the sandbox and the user's directory."""
        hints = ToolAnnotations(title=title, read_only_hint=reads, destructive_hint=destroys, idempotent_hint=again, open_world_hint=world)
        server.add_tool(work, title=title, description=" ".join((work.__doc__ or "").split()), annotations=hints)

    add(commands.run, "Run a command", destroys=True, world=reaches)
    add(commands.poll, "Follow a command", reads=True, again=True)
    add(commands.kill, "End a command", destroys=True)
    add(files.read_file, "Read a file", reads=True, again=True)
    add(files.write_file, "Write a file", destroys=True, again=True)
    add(files.list_files, "List a directory", reads=True, again=True)
    add(files.search_files, "Search in files", reads=True, again=True)
    add(overlay.diff, "Show the changes", reads=True, again=True)
    add(overlay.apply, "Apply changes", destroys=True, again=True)
    add(overlay.discard, "Discard changes", destroys=True, again=True)
    add(overlay.snapshot, "Keep a snapshot")
    add(overlay.rollback, "Roll back", destroys=True, again=True)
    add(Explain(sandbox, options, asking).explain, "Explain what is allowed", reads=True, again=True)
    return server
