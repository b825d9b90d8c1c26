"""Calls that wait for an answer."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lind import AsyncQuestion, AsyncSandbox, RequestError, TimeoutExpired
from lind._async.questions import AT_ONCE, Answer

CONNECT = ": </dev/tcp/127.0.0.1/{}"
# Rules for the host, of which all but this port is denied.
ALLOW = ["127.0.0.1:1"]


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_call_goes_on_when_it_is_answered(port: int) -> None:
    async with AsyncSandbox(ask=60, allow=ALLOW) as sandbox, await sandbox.follow_questions() as questions:
        await sandbox.deny(f"127.0.0.1:{port}")
        async with await sandbox.start(CONNECT.format(port)) as process:
            question = await questions.read(timeout=60)
            assert [asked.about.number for asked in await sandbox.questions()] == [question.about.number]
            about = question.about
            assert (about.grate, about.program, about.arguments) == ("net", "bash", f"connect tcp 127.0.0.1:{port}")
            assert 0 < question.left <= about.seconds <= 60 
            settled = [question.settled]
            assert (await sandbox.run("echo others go on")).stdout == "others go on\n"
            with pytest.raises(RequestError, match="expected once, program, session or no"):
                await question.answer("yes")  # type: ignore[arg-type]
            assert await question.answer("once")
            assert (await process.wait(timeout=60)).ok
        assert not await question.answer("once"), "it has been answered"
        async with await sandbox.start(CONNECT.format(port)) as process:
            second = await questions.read(timeout=60)
            assert [*settled, question.settled, second.about.number] == [None, "yes", about.number + 1]
            await second.answer("no")
            result = await process.wait(timeout=60)
            assert not result.ok and [denial.arguments for denial in result.denials] == [about.arguments]
        assert await sandbox.questions() == []


async def test_how_far_an_answer_holds(port: int) -> None:
    twice = "; ".join([f"({CONNECT.format(port)}) && echo reached || echo denied"] * 2)
    async with AsyncSandbox(ask=60, allow=ALLOW) as sandbox, await sandbox.follow_questions() as questions:
        await sandbox.deny(f"127.0.0.1:{port}")
        answers: tuple[tuple[Answer, str, int], ...] = (("program", "reached", 2), ("no", "denied", 2), ("session", "reached", 1))
        for answer, said, asked in answers:
            async with await sandbox.start(twice) as process:
                for _ in range(asked):
                    assert await (await questions.read(timeout=60)).answer(answer)
                assert (await process.wait(timeout=60)).stdout.split() == [said] * 2
        assert (await sandbox.run(twice, timeout=60)).stdout.split() == ["reached"] * 2


async def test_a_function_that_answers(port: int, project: Path) -> None:
    heard: list[str] = []

    async def decide(question: AsyncQuestion) -> Answer:
        heard.append(question.about.about)
        return "once" if question.about.grate == "net" else "no"

    async with AsyncSandbox(ask=60, allow=ALLOW, volumes={".": "rw"}) as sandbox:
        await sandbox.deny(f"127.0.0.1:{port}")
        await sandbox.on_question(decide)
        assert (await sandbox.run(CONNECT.format(port), timeout=60)).ok
        result = await sandbox.run("echo x >.envrc", timeout=60)
        assert not result.ok and result.denials[0].grate == "write_filter"
    assert heard == [f"127.0.0.1:{port}", f"{project}/.envrc"] and not (project / ".envrc").exists()


async def test_questions_do_not_wait_for_one_another(port: int) -> None:
    """So many functions wait as there are questions, and all are answered when the last one has come."""
    waiting: list[AsyncQuestion] = []

    async def collect(question: AsyncQuestion) -> None:
        waiting.append(question)

    async with AsyncSandbox(ask=60, allow=ALLOW) as sandbox:
        await sandbox.deny(f"127.0.0.1:{port}")
        await sandbox.on_question(collect)
        processes = [await sandbox.start(CONNECT.format(port)) for _ in range(12)]
        limit = time.monotonic() + 60
        while len(waiting) < 12 and time.monotonic() < limit:
            await sandbox.run("sleep 0.05")
        for question in reversed(waiting):
            assert await question.answer("once")
        assert [(await process.wait(timeout=60)).ok for process in processes] == [True] * 12


async def test_questions_without_end_keep_only_so_many_functions_busy(port: int) -> None:
    """Commands end while the function thinks about their questions, and others ask."""
    busy: set[int] = set()
    most = 0

    async def think(question: AsyncQuestion) -> Answer:
        nonlocal most
        busy.add(question.about.number)
        most = max(most, len(busy))
        await sandbox.run("until [ -e /tmp/thought ]; do sleep 0.1; done", timeout=60)
        busy.remove(question.about.number)
        return "once"

    async with AsyncSandbox(ask=60, allow=ALLOW) as sandbox:
        await sandbox.deny(f"127.0.0.1:{port}")
        await sandbox.on_question(think)
        for count in range(1, AT_ONCE + 5):
            process = await sandbox.start(CONNECT.format(port))
            limit = time.monotonic() + 60
            while not (await sandbox.questions() and len(busy) == min(count, AT_ONCE)) and time.monotonic() < limit:
                await sandbox.run("sleep 0.01")
            await process.close()
            while await sandbox.questions() and time.monotonic() < limit:
                await sandbox.run("sleep 0.01")
        assert (len(busy), most) == (AT_ONCE, AT_ONCE)
        await sandbox.files.write("/tmp/thought", "")
        assert (await sandbox.run(CONNECT.format(port), timeout=60)).ok
    assert most == AT_ONCE


async def test_without_an_answer_the_call_is_denied(port: int) -> None:
    async with AsyncSandbox(ask=0.5, allow=ALLOW) as sandbox, await sandbox.follow_questions() as questions:
        await sandbox.deny(f"127.0.0.1:{port}")
        result = await sandbox.run(CONNECT.format(port), timeout=60)
        assert not result.ok and len(result.denials) == 1
        assert not await (await questions.read(timeout=60)).answer("once")
        with pytest.raises(TimeoutExpired):
            await questions.read(timeout=0.2)
        async with await sandbox.start(CONNECT.format(port)) as process:
            question = await questions.read(timeout=60)
            assert not (await process.wait(timeout=60)).ok
            assert question.left < 0.1 and not await question.answer("session")
            with pytest.raises(TimeoutExpired):
                await questions.read(timeout=0.2)
            assert question.settled == "late"


async def test_a_command_that_ends_takes_its_question_along(port: int) -> None:
    async with AsyncSandbox(ask=60, allow=ALLOW) as sandbox, await sandbox.follow_questions() as questions:
        await sandbox.deny(f"127.0.0.1:{port}")
        with pytest.raises(TimeoutExpired):
            await sandbox.run(CONNECT.format(port), timeout=0.5)
        process = await sandbox.start(CONNECT.format(port))
        question = await questions.read(timeout=60)
        await process.close()
        limit = time.monotonic() + 60
        while question.settled is None and time.monotonic() < limit:
            # The question of the first command may have been read; that of the second comes now.
            with contextlib.suppress(TimeoutExpired):
                await questions.read(timeout=0.1)
        assert question.settled == "late" and not await question.answer("once")


async def test_one_that_asks_goes_and_another_comes(port: int) -> None:
    async with AsyncSandbox(ask=60, allow=ALLOW) as sandbox:
        await sandbox.deny(f"127.0.0.1:{port}")
        async with await sandbox.follow_questions() as questions:
            process = await sandbox.start(CONNECT.format(port))
            first = await questions.read(timeout=60)
        async with await sandbox.follow_questions() as questions:
            second = await questions.read(timeout=60)
            assert second.about.number == first.about.number
            assert await second.answer("once") and (await process.wait(timeout=60)).ok


async def test_without_ask_nothing_waits() -> None:
    async with AsyncSandbox() as sandbox:
        for follows in (sandbox.questions, sandbox.follow_questions):
            with pytest.raises(RequestError, match="without --ask"):
                await follows()
