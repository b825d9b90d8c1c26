"""Calls that wait for an answer, and the user of a client, who gives it.

A client of the older revisions is asked while its call of a tool goes on. One of 2026-07-28 gets the question as the result of the call, and makes the
call again with the answer; the command waits meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args

from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import lind
from lind._async.questions import Answer

from .display import name
from .results import Waiting

ANSWERS: tuple[Answer, ...] = get_args(Answer)
# The seconds after which it is seen that a call does not wait any more.
TICK = 0.25
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Allow it?",
            "description": "once: this call; program: the same of this program from now on; session: the same of all commands; no: deny it",
            "enum": list(ANSWERS),
        }
    },
    "required": ["decision"],
}


@dataclass(eq=False)
class Asked:
    """A call that waits. It is `claimed` once somebody asks about it."""

    question: lind.AsyncQuestion
    claimed: bool = False

    @property
    def waits(self) -> bool:
        """Whether an answer would still have an effect."""
        return self.question.settled is None and self.question.left > 0

    def text(self, command: str | None) -> str:
        """The question for people. Names in it are of the guest's making."""
        about = self.question.about
        running = f" of `{name(command, 200)}`" if command else ""
        rule = name(about.rule, 300)
        return (f"{name(about.program, 100)} ({about.pid}){running} wants: {name(about.arguments, 400)} [{name(about.about, 400)}]. The sandbox denies it: {rule}. "
                f"It waits for {self.question.left:.0f} s. Allow it?")


class Asking:
    """All calls that wait, in a sandbox with `ask`. Where no client has a user to ask, they are denied at once."""

    def __init__(self, sandbox: lind.AsyncSandbox) -> None:
        self._sandbox = sandbox
        self._asked: dict[int, Asked] = {}
        self._paused = 0.0
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self.can_ask = False

    async def open(self) -> None:
        """Follows the questions of the sandbox from now on."""
        questions = await self._sandbox.follow_questions()
        self._task = asyncio.get_running_loop().create_task(self._follow(questions))

    async def close(self) -> None:
        """Ends that."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def is_on(self) -> bool:
        """Whether calls wait at all."""
        return self._task is not None

    def paused(self) -> float:
        """For how many seconds some call has waited so far."""
        return self._paused

    def news(self) -> asyncio.Event:
        """Set when the next call begins to wait."""
        return self._news

    def waiting(self) -> list[Waiting]:
        """The calls that wait."""
        return [Waiting.of(asked.question.about, asked.question.left) for asked in self._asked.values() if asked.waits]

    def claim(self) -> list[Asked]:
        """Those that nobody asks about. The caller has to."""
        free = [asked for asked in self._asked.values() if asked.waits and not asked.claimed]
        for asked in free:
            asked.claimed = True
        return free

    async def answer(self, number: int, result: ElicitResult | None) -> None:
        """Gives the user's answer to a call that may wait."""
        asked = self._asked.get(number)
        if asked is not None:
            with suppress(lind.LindError):
                await asked.question.answer(decision(result))

    async def _follow(self, questions: lind.AsyncQuestions) -> None:
        try:
            while True:
                question = await self._read(questions)
                if question is not None:
                    self._asked[question.about.number] = Asked(question)
                    if self.can_ask:
                        self._news.set()
                        self._news = asyncio.Event()
                    else:
                        with suppress(lind.LindError):
                            await question.answer("no")
                self._asked = {number: asked for number, asked in self._asked.items() if asked.waits}
        finally:
            await questions.close()

    async def _read(self, questions: lind.AsyncQuestions) -> lind.AsyncQuestion | None:
        """The next question. What is settled shows after a while only."""
        if not self._asked:
            return await questions.read()
        began = time.monotonic()
        try:
            return await questions.read(timeout=TICK)
        except lind.TimeoutExpired:
            return None
        finally:
            self._paused += time.monotonic() - began


def decision(result: ElicitResult | None) -> Answer:
    """The decision of the user. All but a clear yes is a no."""
    said = (result.content or {}).get("decision") if result is not None and result.action == "accept" else None
    return next((answer for answer in ANSWERS if answer == said), "no")


def is_modern(ctx: Context[Any, Any]) -> bool:
    """Whether the server cannot send requests, and a question is a result."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def has_user(ctx: Context[Any, Any]) -> bool:
    """Whether the client shows its user a form. Before 2025-11-25 that had no name of its own."""
    can = ctx.client_capabilities.elicitation if ctx.client_capabilities is not None else None
    return can is not None and (can.form is not None or can.url is None)


def form(asked: Asked, command: str | None) -> ElicitRequest:
    """The form for a question."""
    return ElicitRequest(params=ElicitRequestFormParams(message=asked.text(command), requested_schema=SCHEMA))


def as_result(all_asked: list[Asked], job: int, command: str | None) -> InputRequiredResult:
    """The questions as the result of a call. The state, which the client sends back, says for which command and which questions answers count."""
    numbers = [asked.question.about.number for asked in all_asked]
    state = json.dumps({"job": job, "questions": numbers})
    return InputRequiredResult(input_requests={key(number): form(asked, command) for number, asked in zip(numbers, all_asked, strict=True)}, request_state=state)


def key(number: int) -> str:
    """The name of a question among those of a result."""
    return f"question-{number}"


async def take(asking: Asking, ctx: Context[Any, Any]) -> int | None:
    """Gives the answers that a call brings, and returns the number of the command that it goes on with. None for a call that brings none."""
    if ctx.request_state is None:
        return None
    state = json.loads(ctx.request_state)
    for number in state["questions"]:
        response = (ctx.input_responses or {}).get(key(number))
        await asking.answer(number, response if isinstance(response, ElicitResult) else None)
    return int(state["job"])
