"""The calls of a sandbox that wait for an answer, by the verbs `questions` and `answer` of its session."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import lind
from lind._async.connection import AsyncConnection
from lind._async.session import AsyncSession
from lind._deadline import Deadline
from lind._messages import ProtocolError, text
from lind._options import Options, SandboxOptions

# The seconds that a request may take.
REQUEST = 60.0


@dataclass(frozen=True)
class WithQuestions(Options):
    """The options of a sandbox whose denied calls wait, for `ask`."""


def sandbox(options: SandboxOptions, ask: str | None) -> tuple[lind.AsyncSandbox, WithQuestions]:
    """A sandbox in which calls wait, if `ask` says how long, and its options."""
    all_options: SandboxOptions = {**options, "ask": ask}
    made, given = lind.AsyncSandbox(**all_options), WithQuestions(**all_options)
    made._session.options = given
    return made, given


@dataclass(frozen=True)
class HeldCall:
    """A call that waits. Names in it are of the guest's making."""

    number: int
    seconds: float
    about: str
    rule: str
    program: str
    pid: int
    arguments: str

    @classmethod
    def read(cls, keys: Any) -> HeldCall:
        """A question as the session describes it."""
        try:
            return cls(int(keys["number"]), float(keys["seconds"]), text(keys["about"]), text(keys["rule"]), text(keys["program"]), int(keys["cage"]), text(keys["arguments"]))
        except (KeyError, TypeError, ValueError) as why:
            raise ProtocolError(f"a question that is not one: {why}") from None


class Question:
    """A call that waits, and how that has ended: `settled` is "yes", "no" or "late"."""

    def __init__(self, session: AsyncSession, about: HeldCall) -> None:
        self._session = session
        self._end = time.monotonic() + about.seconds
        self.about = about
        self.settled: str | None = None

    @property
    def left(self) -> float:
        """How many seconds are left for an answer."""
        return max(self._end - time.monotonic(), 0.0)

    async def answer(self, answer: str) -> None:
        """Answers: "once", "program", "session" or "no". Raises RequestError if the call does not wait any more."""
        await self._session.ask(REQUEST, do="answer", number=self.about.number, answer=answer)


class Questions:
    """The questions of a sandbox, in the order in which they came. Those that were read learn their end while others are read."""

    def __init__(self, session: AsyncSession, connection: AsyncConnection, first: list[Any]) -> None:
        self._session = session
        self._connection = connection
        self._open: dict[int, Question] = {}
        self._unread: deque[Question] = deque()
        for one in first:
            self._add(one)

    @classmethod
    async def of(cls, sandbox: lind.AsyncSandbox) -> Questions:
        """Follows them from now on."""
        session = sandbox._session
        await session.open()
        connection = await session.connect(Deadline(REQUEST))
        try:
            first = await connection.ask(Deadline(REQUEST), do="questions", follow=True)
        except BaseException:
            connection.close()
            raise
        return cls(session, connection, first.keys["questions"])

    async def read(self, timeout: float | None = None) -> Question | None:
        """The next one, or None if none comes within so many seconds."""
        deadline = Deadline(timeout)
        try:
            while not self._unread:
                keys = (await self._session.await_message(self._connection, deadline)).keys
                if "question" in keys:
                    self._add(keys["question"])
                elif "settled" in keys and (known := self._open.pop(keys["settled"]["number"], None)) is not None:
                    known.settled = str(keys["settled"]["answer"])
        except TimeoutError:
            return None
        return self._unread.popleft()

    def _add(self, keys: Any) -> None:
        question = Question(self._session, HeldCall.read(keys))
        self._open[question.about.number] = question
        self._unread.append(question)

    def close(self) -> None:
        """Ends that. The calls go on waiting."""
        self._connection.close()
