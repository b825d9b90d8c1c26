"""Many sandboxes at once, from coroutines, threads and forked processes."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lind import AsyncSandbox, Sandbox, TimeoutExpired

MANY = 100


async def test_a_hundred_sandboxes_of_one_loop() -> None:
    async def one(number: int) -> str:
        async with AsyncSandbox(memory="64M", processes=8, disk="1M") as sandbox:
            await sandbox.files.write("/tmp/number", str(number))
            return (await sandbox.run("read n </tmp/number; echo $n", timeout=100)).stdout

    assert await asyncio.gather(*(one(number) for number in range(MANY))) == [f"{number}\n" for number in range(MANY)]


async def test_a_hundred_commands_and_files_of_one_sandbox() -> None:
    async with AsyncSandbox() as sandbox:
        results = await asyncio.gather(*(sandbox.run(f"echo {number}") for number in range(MANY)))
        assert [result.stdout for result in results] == [f"{number}\n" for number in range(MANY)]
        await asyncio.gather(*(sandbox.files.write(f"/tmp/{number}", bytes(10_000)) for number in range(MANY)))
        assert sum(file.size for file in await sandbox.files.list("/tmp")) == 10_000 * MANY


async def test_a_cancelled_command_ends() -> None:
    async with AsyncSandbox() as sandbox:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(sandbox.run("sleep 100"), 0.5)
        while (ended := (await sandbox.commands())[0].result) is None:
            await asyncio.sleep(0.01)
        assert ended.signal == 9
        assert (await sandbox.run("echo fine")).stdout == "fine\n"


async def test_a_cancelled_start_leaves_nothing() -> None:
    for delay in (0.0, 0.002, 0.005, 0.01, 0.015, 0.02):
        task = asyncio.create_task(AsyncSandbox().open())
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_callbacks_may_be_coroutines() -> None:
    heard: list[bytes] = []

    async def hear(data: bytes) -> None:
        await asyncio.sleep(0)
        heard.append(data)

    async with AsyncSandbox() as sandbox:
        await sandbox.run("echo hello", on_stdout=hear)
    assert heard == [b"hello\n"]


def test_threads() -> None:
    def one(number: int) -> str:
        with Sandbox(processes=8) as sandbox:
            return sandbox.run(f"echo {number}").stdout

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, range(40))) == [f"{number}\n" for number in range(40)]


def test_threads_share_a_sandbox() -> None:
    with Sandbox() as sandbox, ThreadPoolExecutor(16) as pool:
        def one(number: int) -> str:
            sandbox.files.write(f"/tmp/{number}", str(number))
            return sandbox.run(f"cat /tmp/{number}").stdout

        assert list(pool.map(one, range(MANY))) == [str(number) for number in range(MANY)]


def test_another_thread_writes_and_kills() -> None:
    with Sandbox() as sandbox, sandbox.start("while read line; do echo got $line; done") as process:
        def drive() -> None:
            process.write("one\n")
            time.sleep(0.2)
            process.kill()

        thread = threading.Thread(target=drive)
        thread.start()
        result = process.wait(timeout=20)
        thread.join()
    assert (result.stdout, result.signal) == ("got one\n", 9)


def in_child(work: Callable[[], None]) -> None:
    """Runs something in a forked child, which must succeed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            if status:
                traceback.print_exc()
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_its_own_connections() -> None:
    with Sandbox() as sandbox:
        process = sandbox.start("read line; echo got $line")
        assert sandbox.run("echo parent").ok

        def work() -> None:
            for number in range(5):
                assert sandbox.run(f"echo {number}").stdout == f"{number}\n"
            with Sandbox() as own:
                assert own.run("echo own").stdout == "own\n"
            sandbox.close()

        in_child(work)
        assert sandbox.run("echo still").stdout == "still\n"
        process.write("line\n")
        assert process.wait(timeout=20).stdout == "got line\n"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_command_ends_with_its_process_though_a_child_lives_on() -> None:
    with Sandbox() as sandbox:
        process = sandbox.start("sleep 100")
        pid = os.fork()
        if pid == 0:
            time.sleep(100)
            os._exit(0)
        try:
            process.close()
            limit = time.monotonic() + 20
            while (ended := sandbox.commands()[0].result) is None:
                assert time.monotonic() < limit
                time.sleep(0.01)
            assert ended.signal == 9
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def test_a_session_that_stands_still_is_noticed(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    monkeypatch.setattr("lind._sync.session.SILENCE", 0.5)
    monkeypatch.setattr("lind._sync.session.ANSWER", 0.5)
    with Sandbox(request_timeout=2) as sandbox:
        process = sandbox.start("sleep 100")
        pid = int(sandbox._session.ask(None, do="hello").keys["pid"])
        os.kill(pid, 19)
        try:
            with pytest.raises(TimeoutExpired):
                sandbox.files.exists("/tmp")
            with pytest.raises(Exception, match="does not answer"):
                process.wait()
        finally:
            os.kill(pid, 18)
        assert sandbox.run("echo back").stdout == "back\n"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="its asyncio loses cancellations")
async def test_an_operation_that_is_cancelled_ends() -> None:
    async with AsyncSandbox() as sandbox:
        ends = set()
        for steps in range(40):
            task = asyncio.create_task(sandbox.stats())
            for _ in range(steps):
                await asyncio.sleep(0)
            had_ended = task.done()
            task.cancel()
            (_,) = await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled() is not had_ended
            ends.add(had_ended)
        assert False in ends
        assert (await sandbox.run("echo 1", check=True)).stdout == "1\n"
