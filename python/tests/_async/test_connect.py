"""Sessions that run already."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lind import AsyncSandbox, SandboxError, _images, async_sessions, program

NAME = "of-the-tests"


def boot(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(), "session", *words], check=False, capture_output=True, text=True)


@pytest.fixture
def running(project: Path) -> Iterator[str]:
    """The name of a session that the command line has started."""
    name = f"{NAME}-{project.parent.name}"[:48]
    assert (done := boot("start", name, "-v", f"{project}:overlay")).returncode == 0, done.stderr
    yield name
    boot("stop", name)


async def test_to_close_it_leaves_it_running(running: str) -> None:
    async with await AsyncSandbox.connect(running, env={"COLOUR": "blue"}) as sandbox:
        assert sandbox.name == running
        assert (await sandbox.run("echo $COLOUR >file; cat file", check=True)).stdout == "blue\n"
        process = await sandbox.start("sleep 1000")
        number = await process.detach()
    with pytest.raises(SandboxError, match="closed"):
        await sandbox.run("true")
    async with await AsyncSandbox.connect(running) as other:
        assert await other.files.read_text("file") == "blue\n"
        assert [(change.kind, change.path) for change in await other.diff()] == [("A", "file")]
        assert [command.id for command in await other.commands() if command.result is None] == [number]
        await other.close()
    assert boot("exec", running, "--", "cat", "file").stdout == "blue\n"


async def test_its_changes_need_no_image(running: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that looks at a session may have no place to unpack one."""
    images = tmp_path / "bundle" / "images"
    images.mkdir(parents=True)
    (images / "base.id").write_text("hash\n")
    (images / "base.tar.zst").write_text("nothing")
    monkeypatch.setattr(_images, "BUNDLE", tmp_path / "bundle")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LIND_ROOT", str(tmp_path / "none"))
    async with await AsyncSandbox.connect(running) as sandbox:
        await sandbox.run("echo text >file", check=True)
        assert [change.path for change in await sandbox.diff()] == ["file"]
        assert "+text" in await sandbox.patch()
        assert [change.path for change in (await sandbox.apply()).changes] == ["file"]
    assert not (tmp_path / "lind-sandbox").exists()


async def test_a_session_is_listed_until_it_is_stopped(running: str) -> None:
    sandbox = await AsyncSandbox.connect(running)
    process = await sandbox.start("sleep 1000")
    found = [session for session in await async_sessions() if session.name == running]
    assert [(session.commands, session.seconds > 0) for session in found] == [(1, True)]
    await process.close()
    await sandbox.stop()
    assert running not in {session.name for session in await async_sessions()}
    with pytest.raises(SandboxError, match="closed"):
        await sandbox.run("true")
    with pytest.raises(SandboxError, match=f"no session {running} runs"):
        await AsyncSandbox.connect(running)


async def test_a_sandbox_of_ones_own_can_be_stopped() -> None:
    sandbox = AsyncSandbox()
    await sandbox.open()
    name = sandbox.name
    await sandbox.stop()
    assert name not in {session.name for session in await async_sessions()}


async def test_names_that_are_none() -> None:
    for name in ("nobody-has-this-name", "", "../x", "a\x1b[31mb"):
        with pytest.raises(SandboxError) as caught:
            await AsyncSandbox.connect(name)
        assert "\x1b" not in str(caught.value)


async def test_the_end_of_its_starter_is_the_end_for_others() -> None:
    async with AsyncSandbox() as sandbox:
        other = await AsyncSandbox.connect(sandbox.name)
        assert (await other.run("true")).ok
    with pytest.raises(SandboxError):
        await other.run("true")
    await other.close()
