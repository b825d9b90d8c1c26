"""Denials and amounts."""

from __future__ import annotations

import pytest

from lind import AsyncSandbox, Denial, TimeoutExpired

CONNECT = ": </dev/tcp/192.0.2.1/{}"


async def test_a_result_has_its_denials() -> None:
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run(CONNECT.format(80))
        assert (result.denied, len(result.denials), result.limit) == (1, 1, None)
        denial = result.denials[0]
        assert (denial.grate, denial.call, denial.program, denial.times, denial.limit) == ("net", "connect", "bash", 1, None)
        assert str(denial) in result.stderr and denial.hint == "--allow 192.0.2.1:80"
        other = await sandbox.run(CONNECT.format(81))
        assert [denial.arguments for denial in await sandbox.denials()] == ["connect tcp 192.0.2.1:80", "connect tcp 192.0.2.1:81"]
        assert await sandbox.denials(since=denial.id) == list(other.denials)
        assert await sandbox.denials(command=denial.command) == [denial]
        assert (await sandbox.stats()).denials == 2


async def test_denials_as_they_come() -> None:
    async with AsyncSandbox() as sandbox:
        await sandbox.run(CONNECT.format(1))
        async with await sandbox.follow_denials() as denials:
            await sandbox.run(CONNECT.format(2))
            assert (await denials.read(timeout=20)).arguments == "connect tcp 192.0.2.1:2"
            with pytest.raises(TimeoutExpired):
                await denials.read(timeout=0.2)


async def test_a_function_for_denials() -> None:
    heard: list[Denial] = []
    async with AsyncSandbox() as sandbox:
        await sandbox.on_denial(heard.append)
        for port in (1, 2):
            await sandbox.run(CONNECT.format(port))
        while len(heard) < 2:
            await sandbox.run("true")
    assert [denial.arguments for denial in heard] == ["connect tcp 192.0.2.1:1", "connect tcp 192.0.2.1:2"]


async def test_the_limit_that_ended_a_command() -> None:
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run("while :; do :; done", cpu=0.2, timeout=60)
        assert (result.limit, result.ok) == ("cpu", False)
        with pytest.raises(TimeoutExpired) as caught:
            await sandbox.run("sleep 100", timeout=0.2)
        assert caught.value.result is not None and caught.value.result.limit == "timeout"


async def test_stats() -> None:
    async with AsyncSandbox(memory="256M", cpu=60, disk="1M") as sandbox:
        await sandbox.run("head -c 100000 /dev/zero >/tmp/file")
        stats = await sandbox.stats()
        assert stats.memory.limit == 256 << 20 and stats.memory.peak is not None and 0 < stats.memory.peak < 256 << 20
        assert stats.disk.used is not None and 100_000 <= stats.disk.used <= 1 << 20
        assert (stats.cpu.limit, stats.commands, stats.seconds > 0, stats.cpu.used is not None) == (60, 0, True, True)
        assert stats.processes.used is not None and stats.resident is not None and stats.resident > 0
