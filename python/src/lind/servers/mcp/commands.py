"""The tools that run commands: run, poll and kill."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import Field

import lind

from .asking import Asking, has_user, take
from .display import name
from .following import Following
from .jobs import Job, Jobs
from .results import Ran

# Many clients give a call up after 60 seconds: the command has ended before, and its output is
# not lost.
TIMEOUT = 50.0
LONGEST = 86_400.0
SIGNALS = Literal["KILL", "TERM", "INT", "HUP", "QUIT", "USR1", "USR2"]


class Commands:
    """The tools."""

    def __init__(self, jobs: Jobs, asking: Asking) -> None:
        self._jobs = jobs
        self._asking = asking
        self._following = Following(jobs, asking)

    async def run(
        self,
        ctx: Context[Any, Any],
        command: Annotated[str, Field(min_length=1, description="The command, for bash")],
        timeout: Annotated[
            float, Field(ge=0, le=LONGEST, description=f"Seconds after which it is killed, without those in which it waits for the user. 0: {TIMEOUT:g}, or never in the background")
        ] = 0,
        background: Annotated[bool, Field(description="Return at once, and let it go on: poll shows its output")] = False,
        cwd: Annotated[str, Field(description="The directory in which it starts; if empty, the one of the sandbox")] = "",
        env: Annotated[dict[str, str] | None, Field(description="Variables beside those of the sandbox")] = None,
        input: Annotated[str, Field(description="Its standard input")] = "",
    ) -> Annotated[CallToolResult, Ran] | InputRequiredResult:
        """Runs a command by bash in the sandbox and returns its output and exit status. Files that it leaves are there for the next command; variables and
        the current directory are not. Of long output the middle is left out."""
        self._asking.can_ask |= has_user(ctx)
        known = await take(self._asking, ctx)
        job = self._known(known) if known is not None else await self._start(command, timeout or (None if background else TIMEOUT), cwd, env, input)
        if background:
            return self._following.ran(job)
        try:
            asked = await self._following.follow(ctx, job)
        except anyio.get_cancelled_exc_class():
            # The client has cancelled the call, or has gone.
            await job.end("killed")
            raise
        return self._following.ran(job) if asked is None else asked

    async def poll(
        self,
        ctx: Context[Any, Any],
        id: Annotated[int, Field(description="The number of the command, from run")],
        wait: Annotated[float, Field(ge=0, le=LONGEST, description="Seconds to wait for its end")] = 0,
        start: Annotated[int, Field(ge=0, description="Leave out so many bytes of output: next of the poll before")] = 0,
    ) -> Annotated[CallToolResult, Ran] | InputRequiredResult:
        """Returns what a command has written since, and whether it runs."""
        self._asking.can_ask |= has_user(ctx)
        await take(self._asking, ctx)
        job = self._known(id)
        asked = await self._following.follow(ctx, job, wait)
        return self._following.ran(job, start) if asked is None else asked

    async def kill(
        self,
        id: Annotated[int, Field(description="The number of the command, from run")],
        signal: Annotated[SIGNALS, Field(description="KILL ends it with all that it has started; others go to its process group")] = "KILL",
    ) -> Annotated[CallToolResult, Ran]:
        """Ends a command, or sends it a signal."""
        job = self._known(id)
        try:
            if signal == "KILL":
                await job.end("killed")
                await job.ended.wait()
            else:
                await job.process.signal(signal, group=True)
                with anyio.move_on_after(1):
                    await job.ended.wait()
        except lind.LindError as why:
            raise ToolError(name(str(why))) from why
        return self._following.ran(job)

    async def _start(self, command: str, timeout: float | None, cwd: str, env: dict[str, str] | None, stdin: str) -> Job:
        try:
            return await self._jobs.start(command, timeout=timeout, cwd=cwd or None, env=env or {}, stdin=stdin)
        except (lind.LindError, OSError, ValueError) as why:
            raise ToolError(name(str(why))) from why

    def _known(self, id: int) -> Job:
        job = self._jobs.get(id)
        if job is None:
            raise ToolError(f"there is not a command {id}, or it has ended long ago")
        return job
