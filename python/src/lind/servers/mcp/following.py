"""A call of a tool that follows a command: progress, questions, and the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, InputRequiredResult, TextContent

from .asking import SCHEMA, Asked, Asking, as_result, has_user, is_modern
from .display import lines, name
from .jobs import Job, Jobs
from .results import Denied, Ran, ended_by

# How often a client hears of progress, in seconds.
TELL = 1.0
DENIALS = 16


class Following:
    """The work of calls while their command runs."""

    def __init__(self, jobs: Jobs, asking: Asking) -> None:
        self._jobs = jobs
        self._asking = asking

    async def follow(self, ctx: Context[Any, Any], job: Job, seconds: float | None = None) -> InputRequiredResult | None:
        """Waits for the end of a command, so many seconds at most. Returns a question instead if the client has to come back with its answer."""
        asks = has_user(ctx)
        self._asking.can_ask |= asks
        until = None if seconds is None else time.monotonic() + seconds
        async with anyio.create_task_group() as group:
            group.start_soon(self._tell, ctx, job)
            while True:
                news = self._asking.news()
                asked = self._asking.claim() if asks else []
                if asked and is_modern(ctx):
                    group.cancel_scope.cancel()
                    return as_result(asked, job.id, self._command())
                if asked:
                    async with anyio.create_task_group() as questions:
                        for one in asked:
                            questions.start_soon(self._ask, ctx, one)
                elif not job.running or (until is not None and time.monotonic() >= until):
                    break
                else:
                    await first(None if until is None else until - time.monotonic(), job.ended.wait(), news.wait())
            group.cancel_scope.cancel()
        return None

    def ran(self, job: Job, start: int = 0) -> CallToolResult:
        """The result of a call, with the output behind `start`."""
        output, after, left_out = job.output.since(start, ended=not job.running)
        result = job.result
        code = None if job.running else result.exit_code if result is not None else 137
        ran = Ran(
            id=job.id,
            running=job.running,
            exit_code=code,
            output=output,
            next=after,
            left_out=left_out,
            seconds=round(self._jobs.seconds(job), 3),
            ended_by=job.ended_by or (ended_by(result) if result is not None else None),
            note=None if job.note is None and (result is None or result.note is None) else name(job.note or (result.note if result else None) or ""),
            denials=[Denied.of(denial) for denial in job.denials[:DENIALS]],
            waiting=self._asking.waiting() if job.running else [],
        )
        return CallToolResult(content=[TextContent(type="text", text=said(ran))], structured_content=ran.model_dump(mode="json"))

    def _command(self) -> str | None:
        """The command that a question is about, if only one runs."""
        running = self._jobs.running()
        return running[0].command if len(running) == 1 else None

    async def _tell(self, ctx: Context[Any, Any], job: Job) -> None:
        began = time.monotonic()
        while True:
            await anyio.sleep(TELL)
            waits = self._asking.waiting()
            said = f"waits for an answer: {waits[0].what}" if waits else job.output.last_line()
            await ctx.report_progress(round(time.monotonic() - began, 3), None, said or None)

    async def _ask(self, ctx: Context[Any, Any], asked: Asked) -> None:
        """Asks the user while the call goes on, as long as the answer has an effect."""
        answer = None
        async with anyio.create_task_group() as group:
            group.start_soon(_until_settled, asked, group.cancel_scope)
            try:
                answer = await ctx.session.elicit_form(asked.text(self._command()), SCHEMA, related_request_id=ctx.request_context.request_id)
            except (MCPError, ValueError):
                # A client that cannot be asked after all, or has gone, has not said yes.
                answer = None
            group.cancel_scope.cancel()
        await self._asking.answer(asked.question.about.number, answer)


async def _until_settled(asked: Asked, scope: anyio.CancelScope) -> None:
    while asked.waits:
        await anyio.sleep(0.1)
    scope.cancel()


async def first(seconds: float | None, *waits: Awaitable[object]) -> None:
    """Waits for one of them, so many seconds at most."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=None if seconds is None else max(seconds, 0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def said(ran: Ran) -> str:
    """The result as a text for the model."""
    parts = []
    if ran.running:
        parts.append(f"command {ran.id} runs, for {ran.seconds:.0f} s so far: poll it with start={ran.next}")
    elif ran.ended_by == "timeout":
        parts.append(f"the command was ended after {ran.seconds:.0f} s, its timeout")
    elif ran.ended_by is not None:
        parts.append(f"the command was ended: {ran.ended_by}")
    elif ran.exit_code:
        parts.append(f"exit status {ran.exit_code}")
    parts += [ran.note] if ran.note else []
    parts += [f"waits for an answer of the user: {call.what}" for call in ran.waiting]
    text = lines(ran.output)
    return text + ("\n" if text and not text.endswith("\n") and parts else "") + (f"[{'; '.join(parts)}]" if parts else "")
