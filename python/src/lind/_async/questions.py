"""Calls that wait until somebody says whether they are denied."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from .._deadline import Deadline
from .._reading import read_question, read_questions, read_settled
from ..errors import LindError, RequestError, SandboxError, TimeoutExpired
from ..results import HeldCall
from ._io import AsyncLock, Returned, call, spawn
from .connection import AsyncConnection
from .session import AsyncSession

if TYPE_CHECKING:
    from typing_extensions import Self

Answer = Literal["once", "program", "session", "no"]
# How often the function of `tell` is called at once: as many calls can wait. Commands can end their
# questions and ask others, so calls of the function that hang would otherwise become ever more.
AT_ONCE = 32


class AsyncQuestion:
    """A call that waits for an answer. `about` says what it is, and who asks."""

    def __init__(self, session: AsyncSession, about: HeldCall) -> None:
        self._session = session
        self._deadline = Deadline(about.seconds)
        self.about = about
        self.settled: str | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.about.number}: {self.about}>"

    @property
    def left(self) -> float:
        """How many seconds are left for an answer."""
        return self._deadline.rest

    async def answer(self, answer: Answer, timeout: float | None = None) -> bool:
        """Answers: "once" allows the call, "program" also the same of the process that made it and of all that it starts, "session" the same of all
        commands. "no" denies it, and the same of that process later. False if the call does not wait any more: it has another answer, its time was up,
        or its program has gone on.
        """
        try:
            await self._session.ask(timeout, do="answer", number=self.about.number, answer=answer)
        except RequestError as why:
            if why.errno != "ESRCH":
                raise
            return False
        return True


class AsyncQuestions:
    """The calls that wait, one after the other, in the order in which they came. It is closed when it is left.

    Questions that were read learn their end, as `settled`, while others are read.
    """

    def __init__(self, session: AsyncSession, connection: AsyncConnection, first: tuple[HeldCall, ...]) -> None:
        self._session = session
        self._connection = connection
        self._unread: deque[AsyncQuestion] = deque()
        self._open: dict[int, AsyncQuestion] = {}
        self._last = 0
        self._add(first)

    async def read(self, timeout: float | None = None) -> AsyncQuestion:
        """The next call that waits. Raises TimeoutExpired if none comes within so many seconds."""
        deadline = Deadline(timeout)
        try:
            while True:
                while self._unread:
                    question = self._unread.popleft()
                    if question.settled is None:
                        return question
                self._hear((await self._session.await_message(self._connection, deadline)).keys)
        except TimeoutExpired:
            raise
        except TimeoutError:
            raise TimeoutExpired("questions", timeout or 0) from None

    async def tell(self, callback: Callable[[AsyncQuestion], Returned[Answer | None]]) -> None:
        """Hands all questions to a function, until the sandbox ends. No question waits until the function is done with another, unless it is busy
        with as many as can wait: some of these were settled then.
        """
        askers = _Askers(self._unread, callback)
        try:
            while True:
                await askers.begin()
                self._hear((await self._session.await_message(self._connection, Deadline(None))).keys)
        except (SandboxError, OSError):
            # It has ended.
            pass
        finally:
            self._unread.clear()
            await self.close()

    def _hear(self, keys: Mapping[str, Any]) -> None:
        if "question" in keys:
            self._add((read_question(keys["question"]),))
        elif "questions" in keys:
            # Events were lost meanwhile. Those that are not there any more were settled.
            questions = read_questions(keys["questions"])
            for number in self._open.keys() - {question.number for question in questions}:
                self._settle(number, "late")
            self._add(questions)
        elif "settled" in keys:
            self._settle(*read_settled(keys["settled"]))

    def _settle(self, number: int, how: str) -> None:
        question = self._open.pop(number, None)
        if question is not None:
            question.settled = how
            # Nobody need read it any more.
            with suppress(ValueError):
                self._unread.remove(question)

    def _add(self, questions: tuple[HeldCall, ...]) -> None:
        for about in questions:
            if about.number > self._last:
                self._last = about.number
                self._open[about.number] = AsyncQuestion(self._session, about)
                self._unread.append(self._open[about.number])

    def __aiter__(self) -> AsyncIterator[AsyncQuestion]:
        return self

    async def __anext__(self) -> AsyncQuestion:
        return await self.read()

    async def close(self) -> None:
        """Ends it. The calls go on waiting."""
        self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class _Askers:
    """Gives the answers that a function returns."""

    def __init__(self, unread: deque[AsyncQuestion], callback: Callable[[AsyncQuestion], Returned[Answer | None]]) -> None:
        self._unread = unread
        self._callback = callback
        self._busy = 0
        self._lock = AsyncLock()

    async def begin(self, done: int = 0) -> None:
        """Has the function called for questions that nobody has read, now that so many calls of it are done."""
        async with self._lock:
            self._busy -= done
            while self._unread and self._busy < AT_ONCE:
                # It may just have been settled.
                with suppress(IndexError):
                    spawn(self._ask, self._unread.popleft())
                    self._busy += 1

    async def _ask(self, question: AsyncQuestion) -> None:
        """Has one question answered. An error of the function denies the call, which would wait for nobody."""
        try:
            answer = await call(self._callback, question)
            if answer is not None:
                await question.answer(answer)
        except SandboxError:
            # It has ended.
            pass
        except Exception:
            with suppress(LindError, OSError):
                await question.answer("no")
            raise
        finally:
            await self.begin(done=1)
