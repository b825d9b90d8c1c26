"""Rules that change while commands run."""

from __future__ import annotations

import socket

import pytest

from lind import AsyncSandbox, RequestError


async def test_rules_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"127.0.0.1:{server.getsockname()[1]}"
        connect = ": </dev/tcp/" + host.replace(":", "/")
        async with AsyncSandbox(allow=["127.0.0.1:1"]) as sandbox:
            assert not (await sandbox.run(connect)).ok
            number = await sandbox.allow(host)
            assert (await sandbox.run(connect)).ok
            assert [(rule.number, rule.allow, rule.rule) for rule in (await sandbox.policy()).rules] == [(number, True, host)]
            await sandbox.deny(host, seconds=60)
            assert not (await sandbox.run(connect)).ok
            await sandbox.revoke((await sandbox.policy()).rules[0].number)
            assert (await sandbox.run(connect)).ok
            await sandbox.revoke(host)
            assert not (await sandbox.run(connect)).ok
            await sandbox.allow(host, once=True)
            assert [(await sandbox.run(connect)).ok for _ in range(2)] == [True, False]
            assert "net" in {grate for grate, _ in (await sandbox.policy()).start}


async def test_a_rule_with_a_mistake() -> None:
    async with AsyncSandbox() as sandbox:
        for wrong in ("", "out nonsense 1 2 3", "example.org:x"):
            with pytest.raises(RequestError):
                await sandbox.allow(wrong)
        with pytest.raises(RequestError):
            await sandbox.revoke(99)
        assert (await sandbox.policy()).rules == ()
