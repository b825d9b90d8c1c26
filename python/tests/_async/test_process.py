"""Commands that run while something is done with them."""

from __future__ import annotations

import pytest

from lind import AsyncProcess, AsyncSandbox, CommandNotStarted, LindError, Output, SandboxError, TimeoutExpired


async def read_until(process: AsyncProcess, part: bytes) -> bytes:
    data = b""
    while part not in data:
        output = await process.read(timeout=20)
        assert output is not None, data
        data += output.data
    return data


async def test_pieces_in_their_order() -> None:
    async with AsyncSandbox() as sandbox:
        process = await sandbox.start("echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three")
        found = [(output.stream, output.data) async for output in process]
        assert found == [("stdout", b"one\n"), ("stderr", b"two\n"), ("stdout", b"three\n")]
        assert process.result is not None and process.result.exit_code == 0
        assert await process.read() is None


async def test_a_conversation() -> None:
    async with AsyncSandbox() as sandbox, await sandbox.start("while read line; do echo got $line; done; exit 6") as process:
        assert process.id > 0 and process.pid is not None
        for word in ("one", "two"):
            await process.write(f"{word}\n")
            assert await process.read(timeout=20) == Output("stdout", f"got {word}\n".encode(), at=0 if word == "one" else 8)
        await process.close_stdin()
        assert (await process.wait()).exit_code == 6


async def test_much_input_waits_for_the_command() -> None:
    async with AsyncSandbox() as sandbox, await sandbox.start("sleep 0.3; cat >/dev/null; echo done") as process:
        await process.write(bytes(5_000_000))
        await process.close_stdin()
        assert (await process.wait()).stdout == "done\n"
    async with AsyncSandbox() as sandbox, await sandbox.start("sleep 100") as process:
        with pytest.raises(TimeoutExpired):
            await process.write(bytes(5_000_000), timeout=0.5)


async def test_terminal() -> None:
    async with AsyncSandbox() as sandbox, await sandbox.start(["bash", "--norc"], pty=(80, 24)) as process:
        # A shell at its prompt may write back the size that it has read a moment before.
        await process.write("stty size; [ -t 0 ] && echo is a terminal''; read; stty size; echo resized''\n")
        assert b"24 80" in await read_until(process, b"terminal\r\n")
        await process.resize(100, 30)
        await process.write("\n")
        assert b"30 100" in await read_until(process, b"resized\r\n")
        await process.write("exit 7\n")
        assert (await process.wait(timeout=20)).exit_code == 7


async def test_signals() -> None:
    async with AsyncSandbox() as sandbox:
        async with await sandbox.start("trap 'echo caught; exit 9' USR1; echo ready; while :; do sleep 0.1; done") as process:
            await read_until(process, b"ready")
            await process.signal("USR1")
            result = await process.wait(timeout=20)
            assert (result.exit_code, result.stdout) == (9, "caught\n")
            await process.kill()
        for end, number in ((AsyncProcess.terminate, 15), (AsyncProcess.kill, 9)):
            async with await sandbox.start("echo ready; sleep 100") as process:
                await read_until(process, b"ready")
                await end(process)
                assert (await process.wait(timeout=20)).signal == number
        async with await sandbox.start("sleep 100 & echo ready; wait") as process:
            await read_until(process, b"ready")
            await process.signal("KILL", group=True)
            assert (await process.wait(timeout=20)).signal == 9


async def test_signal_to_one_that_has_ended_unseen() -> None:
    async with AsyncSandbox() as sandbox, await sandbox.start("true") as process:
        while not (await sandbox.commands())[0].result:
            pass
        await process.terminate()


async def test_wait_for_a_while() -> None:
    async with AsyncSandbox() as sandbox, await sandbox.start("echo before; read line; echo after") as process:
        with pytest.raises(TimeoutExpired) as caught:
            await process.wait(timeout=0.5)
        assert (caught.value.stdout, caught.value.result) == ("before\n", None)
        await process.write("\n")
        assert (await process.wait(timeout=20)).stdout == "before\nafter\n"


async def test_detach_and_attach() -> None:
    async with AsyncSandbox() as sandbox:
        process = await sandbox.start("echo one; read line; echo got $line; exit 4")
        await read_until(process, b"one")
        number = await process.detach()
        await process.close()
        assert [(command.id, command.detached, command.result) for command in await sandbox.commands()] == [(number, True, None)]
        with pytest.raises(SandboxError, match="attach"):
            await process.wait()
        other = await sandbox.attach(number, start=process.at)
        await other.write("word\n")
        result = await other.wait(timeout=20)
        assert (result.exit_code, result.stdout) == (4, "got word\n")
        again = await sandbox.attach(number)
        assert (await again.wait(timeout=20)).stdout == "one\ngot word\n"
        with pytest.raises(LindError, match="no command has the number 99"):
            await sandbox.attach(99)


async def test_leaving_ends_the_command() -> None:
    async with AsyncSandbox() as sandbox:
        async with await sandbox.start("echo ready; sleep 100") as process:
            await read_until(process, b"ready")
        while (ended := (await sandbox.commands())[0].result) is None:
            pass
        assert ended.signal == 9


async def test_many_at_once() -> None:
    async with AsyncSandbox() as sandbox:
        processes = [await sandbox.start(f"read line; echo {number} $line") for number in range(30)]
        for process in processes:
            await process.write("go\n")
        assert [(await process.wait(timeout=60)).stdout for process in processes] == [f"{number} go\n" for number in range(30)]


async def test_a_missing_program() -> None:
    async with AsyncSandbox() as sandbox:
        with pytest.raises(CommandNotStarted, match="no-such-program"):
            await (await sandbox.start(["no-such-program"], pty=(80, 24))).wait(timeout=20)
