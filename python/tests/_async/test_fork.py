"""Sandboxes that are made of others."""

from __future__ import annotations

import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from lind import AsyncSandbox, SandboxError, TimeoutExpired
from lind._kept import parent


def kept() -> list[str]:
    """The directories of copies."""
    return os.listdir(parent()) if parent().exists() else []


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize("word", ["overlay", "overlay=../state/:main"])
async def test_changes_go_their_own_ways(project: Path, word: str) -> None:
    (project / "old").write_text("old\n")
    async with AsyncSandbox(volumes={".": word}) as sandbox:
        await sandbox.run("head -c 300000 /dev/zero >large; rm old; echo 1 >file", check=True)
        label = await sandbox.snapshot()
        await sandbox.run("echo 2 >file", check=True)
        # Paths of the options mean what they meant at the start.
        os.chdir("/")
        async with await sandbox.fork() as other:
            assert (await other.run("pwd; cat file; ls", check=True)).stdout == f"{project}\n2\nfile\nlarge\n"
            assert await other.diff() == await sandbox.diff()
            await other.run("echo 3 >file; echo more >>large; echo other >other", check=True)
            await sandbox.run("echo 4 >file; rm large", check=True)
            assert (await other.run("cat file; wc -c <large", check=True)).stdout == "3\n300005\n"
            assert (await sandbox.run("cat file; ls", check=True)).stdout == "4\nfile\n"
            async with await other.fork() as third:
                assert (await third.run("cat file other", check=True)).stdout == "3\nother\n"
                await third.rollback(label)
                assert (await third.run("cat file; ls", check=True)).stdout == "1\nfile\nlarge\n"
                assert len(kept()) == 2
            assert (await other.run("cat file", check=True)).stdout == "3\n"
            await other.apply(["other"])
        assert (project / "other").read_text() == "other\n" and (project / "old").exists()
        # The other one sees what is in the directory now.
        assert (await sandbox.run("cat file other", check=True)).stdout == "4\nother\n"
    assert kept() == []


async def test_several_overlays(project: Path) -> None:
    for name in ("a", "b"):
        (project / name).mkdir()
    async with AsyncSandbox(volumes={"a": "/a:overlay=../a/", "b": "/b:overlay=../b/"}) as sandbox:
        await sandbox.run("head -c 300000 /dev/zero >/b/large; echo 1 >/a/file", check=True)
        async with await sandbox.fork() as other:
            assert (await other.run("cat /a/file; wc -c </b/large", check=True)).stdout == "1\n300000\n"
            assert [change.path for change in await other.diff(volume="a")] == ["file"]


@pytest.mark.parametrize("mounts", ["auto", "kernel"])
async def test_files_in_memory_and_volumes(project: Path, mounts: str) -> None:
    for name in ("shared", "inner"):
        (project / name).mkdir()
    volumes = {"shared": "/home/user/shared:rw", "inner": "/home/user/deep/inner:ro"}
    async with AsyncSandbox(volumes=volumes, tmpfs=["/scratch:10M"], workdir="/home/user", mounts=mounts) as sandbox:
        await sandbox.run("echo 1 >file; mkdir -m 750 d; echo 2 >d/file; ln -s d link; echo 3 >deep/file; echo 4 >/tmp/file; echo 5 >/scratch/file;"
                          "chmod 700 d/file; mkfifo /tmp/pipe; echo 6 >shared/file", check=True)
        (project / "inner" / "late").write_text("late\n")
        async with await sandbox.fork() as other:
            line = "cat file d/file link/file deep/file /tmp/file /scratch/file shared/file deep/inner/late; stat -c %a d d/file; ls /tmp; readlink link"
            assert (await other.run(line, check=True)).stdout == "1\n2\n2\n3\n4\n5\n6\nlate\n750\n700\nfile\nd\n"
            await other.run("echo 7 >file; rm -r d; echo 8 >/tmp/file; echo 9 >shared/file", check=True)
            await sandbox.run("echo 10 >/scratch/file", check=True)
            assert (await sandbox.run("cat file d/file /tmp/file shared/file", check=True)).stdout == "1\n2\n4\n9\n"
            assert (await other.run("cat /scratch/file", check=True)).stdout == "5\n"
    assert kept() == []


HOSTILE = r"""
ln -s /etc/passwd absolute; ln -s ../../../../etc/passwd upward; ln -s loop loop; mkdir d; ln -s /proc/self/root d/root; ln -s d again
printf x >$'line\nbreak'; printf x >$'\xff\xfe'; printf x >'overlay=:head'; printf x >-rf; mkdir ' -v'; printf x >' -v/x..'
ln -s $'\xff\n' bytes; long=$(printf %0250d 0); mkdir -p $long/$long; printf x >$long/$long/$long; printf x >$'\e[31m'
"""


@pytest.mark.parametrize("place", ["overlay", "memory"])
async def test_names_and_links_of_guests(project: Path, place: str) -> None:
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    volumes = {".": "overlay"} if place == "overlay" else {}
    async with AsyncSandbox(volumes=volumes, workdir=None if place == "overlay" else "/home/user") as sandbox:
        await sandbox.run(HOSTILE + f"ln -s {outside} outside; ln -s {outside}/secret secret; ln -s {outside}/new new", check=True)
        listed = "find . -printf '%P %y %m %l\\0' | sort -z"
        before = (await sandbox.run(listed, check=True)).stdout_bytes
        assert before.count(b"\0") > 15
        async with await sandbox.fork() as other:
            assert (await other.run(listed, check=True)).stdout_bytes == before
            tar = BytesIO()
            await other.files.tar(".", tar)
            tar.seek(0)
            with tarfile.open(fileobj=tar) as members:
                found = [(member.size, members.extractfile(member)) for member in members if member.isfile()]
                assert len(found) == 7 and all(size == 1 and file is not None and file.read() == b"x" for size, file in found)
    assert sorted(os.listdir(outside)) == ["secret"] and os.listdir(project) == []


async def test_the_rules_of_now(project: Path) -> None:
    async with AsyncSandbox(volumes={".": "rw"}, allow=["192.0.2.1:80", "192.0.2.2:80"]) as sandbox:
        await sandbox.revoke("192.0.2.1:80")
        await sandbox.deny("192.0.2.9:80")
        await sandbox.allow("192.0.2.9:80", seconds=1000)
        await sandbox.allow("192.0.2.3:80", once=True)
        await sandbox.allow("write=.envrc")
        await sandbox.allow("memory=512M")
        async with await sandbox.fork() as other:
            was, now = await sandbox.policy(), await other.policy()
            assert [(rule.allow, rule.rule, rule.once) for rule in now.rules] == [(rule.allow, rule.rule, rule.once) for rule in was.rules]
            assert [rule.seconds is None for rule in now.rules] == [rule.seconds is None for rule in was.rules]
            assert all(rule.seconds is None or 0 < rule.seconds <= 1000 for rule in now.rules)
            assert [option for option in now.start if "192.0.2" in option[1]] == [("net", "allow=out 192.0.2.2 80")]
            denied = await other.run(": </dev/tcp/192.0.2.1/80")
            assert [denial.arguments for denial in denied.denials] == ["connect tcp 192.0.2.1:80"]
            await other.run("echo x >.envrc", check=True)
            # Later rules are of one alone.
            await other.deny("192.0.2.2:80")
            assert len((await sandbox.policy()).rules) == len(was.rules)
            await sandbox.revoke("write=.envrc")
            await other.run("echo x >.envrc", check=True)
            assert not (await sandbox.run("echo x >.envrc")).ok


async def test_processes_are_not_forked() -> None:
    async with AsyncSandbox(env={"WORD": "kept"}) as sandbox, await sandbox.start("sleep 100") as sleeping:
        async with await sandbox.fork() as other:
            assert (await other.run("echo $WORD", check=True)).stdout == "kept\n"
            assert [command.line for command in await other.commands()] == ["bash -c echo $WORD"]
        assert [command.result for command in await sandbox.commands()] == [None]
        await sleeping.kill()


async def test_what_cannot_be_forked(project: Path) -> None:
    async with AsyncSandbox(volumes={".": "overlay"}) as sandbox:
        async with await AsyncSandbox.connect(sandbox.name) as same:
            with pytest.raises(SandboxError, match="was connected to"):
                await same.fork()
        await sandbox.run("truncate -s 2G /tmp/huge", check=True)
        with pytest.raises(SandboxError, match="cannot be forked"):
            await sandbox.fork()
        await sandbox.run("rm /tmp/huge; echo 1 >file", check=True)
        with pytest.raises(TimeoutExpired):
            await sandbox.fork(timeout=0)
        assert kept() == []
        # The state came back.
        assert (await sandbox.run("cat file", check=True)).stdout == "1\n"
    with pytest.raises(SandboxError, match="closed"):
        await sandbox.fork()
    async with AsyncSandbox(publish=["127.0.0.1:0:80"]) as sandbox, await sandbox.fork() as other:
        assert (await other.run("echo 1", check=True)).stdout == "1\n"
    here = project.parent / "gone"
    here.mkdir()
    os.chdir(here)
    async with AsyncSandbox() as sandbox:
        here.rmdir()
        with pytest.raises(SandboxError, match="is not there any more"):
            await sandbox.fork()
    os.chdir(project)
    assert kept() == []


async def test_an_overlay_that_volumes_do_not_name(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncSandbox(volumes={".": "overlay"}) as sandbox:
        monkeypatch.setattr(sandbox._session, "options", type(sandbox._session.options)())
        with pytest.raises(SandboxError, match="not one of `volumes`"):
            await sandbox.fork()
        assert kept() == []


async def test_no_place_for_copies(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncSandbox() as sandbox:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
        with pytest.raises(SandboxError, match="copies of sandboxes cannot be kept there"):
            await sandbox.fork()
