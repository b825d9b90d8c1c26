"""Files of a sandbox."""

from __future__ import annotations

import errno
import io
import os
import tarfile
from pathlib import Path

import pytest

from lind import AsyncSandbox, Change, DeniedError, ExistsError, FileError, IsDirectoryError, LindError, NotDirectoryError, NotFoundError, TimeoutExpired


async def test_contents() -> None:
    async with AsyncSandbox() as sandbox:
        files = sandbox.files
        much = os.urandom(10 << 20)
        for data in (b"", b"some bytes", much):
            await files.write("/tmp/file", data)
            assert await files.read("/tmp/file") == data
        assert await files.read("/tmp/file", start=1000, count=5) == much[1000:1005]
        await files.write("/tmp/text", "\u00e4\n")
        await files.append("/tmp/text", "more")
        assert await files.read_text("/tmp/text") == "\u00e4\nmore"
        assert (await sandbox.run("cat /tmp/text")).stdout == "\u00e4\nmore"


async def test_paths_are_those_of_commands(project: Path) -> None:
    (project / "kept").write_text("x")
    async with AsyncSandbox(volumes={".": "rw"}) as sandbox:
        assert await sandbox.files.read("kept") == b"x"
        await sandbox.files.write(b"odd \xff name", b"1")
        assert (project / os.fsdecode(b"odd \xff name")).read_bytes() == b"1"
        assert sorted(file.name for file in await sandbox.files.list()) == ["kept", "odd \udcff name"]
        with pytest.raises(NotFoundError):
            await sandbox.files.read("/etc/shadow")
        with pytest.raises(DeniedError) as caught:
            await sandbox.files.write(".git/hooks/pre-commit", "x", parents=True)
        assert caught.value.errno == errno.EROFS


async def test_errors_are_those_of_the_system_too() -> None:
    async with AsyncSandbox() as sandbox:
        files = sandbox.files
        await files.write("/tmp/file", "x")
        with pytest.raises(FileNotFoundError) as missing:
            await files.read("/tmp/none")
        assert isinstance(missing.value, NotFoundError) and isinstance(missing.value, LindError)
        assert (missing.value.errno, missing.value.filename) == (errno.ENOENT, "/tmp/none")
        with pytest.raises(IsADirectoryError) as directory:
            await files.write("/tmp", "x")
        assert isinstance(directory.value, IsDirectoryError)
        with pytest.raises(NotADirectoryError) as no_directory:
            await files.list("/tmp/file")
        assert isinstance(no_directory.value, NotDirectoryError)
        with pytest.raises(FileExistsError) as there:
            await files.write("/tmp/file", "y", create=True)
        assert isinstance(there.value, ExistsError)
        with pytest.raises(PermissionError) as denied:
            await files.write("/bin/new", "y")
        assert isinstance(denied.value, DeniedError)
        with pytest.raises(FileError) as device:
            await files.read("/dev/null")
        assert device.value.errno == errno.ENXIO
        with pytest.raises(FileError, match="entries"):
            await files.list("/bin", count=1)
        assert await files.read("/tmp/file") == b"x"


async def test_an_upload_that_fails_early() -> None:
    async with AsyncSandbox() as sandbox:
        for _ in range(3):
            with pytest.raises(NotFoundError):
                await sandbox.files.write("/tmp/none/file", bytes(20 << 20))
            assert await sandbox.files.exists("/tmp")


async def test_tree() -> None:
    async with AsyncSandbox() as sandbox:
        files = sandbox.files
        await files.mkdir("/tmp/a/b", parents=True)
        await files.mkdir("/tmp/a/b", exist_ok=True)
        with pytest.raises(ExistsError):
            await files.mkdir("/tmp/a/b")
        await files.write("/tmp/a/b/c", "text", mode=0o640)
        await files.symlink("/tmp/a/link", "b/c")
        found = {file.name: (file.type, file.size, file.mode, file.target) for file in await files.list("/tmp/a", recursive=True)}
        assert found["b/c"] == ("file", 4, 0o640, None)
        assert (found["link"][0], found["link"][3], found["b"][0]) == ("link", "b/c", "directory")
        assert (await files.stat("/tmp/a/link")).is_file and (await files.stat("/tmp/a/link", follow=False)).is_link
        assert [file.name for file in await files.list("/tmp/a", recursive=True, depth=1)] == [
            file.name for file in await files.list("/tmp/a")]
        assert (await files.copy("/tmp/a", "/tmp/d", recursive=True)).count >= 2
        await files.rename("/tmp/d/b/c", "/tmp/d/e")
        with pytest.raises(ExistsError):
            await files.rename("/tmp/d/e", "/tmp/a/b/c", create=True)
        assert await files.read("/tmp/d/e") == b"text"
        with pytest.raises(FileError):
            await files.remove("/tmp/d")
        await files.remove("/tmp/d", recursive=True)
        assert not await files.exists("/tmp/d")
        with pytest.raises(NotFoundError):
            await files.remove("/tmp/d")
        await files.remove("/tmp/d", missing_ok=True)


async def test_upload_and_download(project: Path) -> None:
    (project / "tree" / "deep").mkdir(parents=True)
    (project / "tree" / "deep" / "file:1").write_text("x")
    (project / "one").write_text("y")
    async with AsyncSandbox() as sandbox:
        await sandbox.files.upload("tree", "/tmp/tree")
        await sandbox.files.upload(project / "one", "/tmp")
        assert await sandbox.files.read("/tmp/tree/deep/file:1") == b"x"
        assert (await sandbox.run("echo z >>/tmp/one; ln -s ../../../../etc/passwd /tmp/tree/out; ln -s deep /tmp/tree/in")).ok
        await sandbox.files.download("/tmp/one", "two")
        await sandbox.files.download("/tmp/tree", "copy")
        with pytest.raises(FileError, match="No such file"):
            await sandbox.files.download("/tmp/none", "none")
    assert (project / "two").read_text() == "yz\n"
    assert (project / "copy" / "deep" / "file:1").read_text() == "x"
    assert (project / "copy" / "in").is_symlink() and not (project / "copy" / "out").is_symlink()


async def test_tar() -> None:
    async with AsyncSandbox() as sandbox:
        await sandbox.files.write("/tmp/a/b", bytes(3_000_000), parents=True)
        packed = io.BytesIO()
        await sandbox.files.tar("/tmp/a", packed)
        packed.seek(0)
        with tarfile.open(fileobj=packed) as archive:
            assert [(member.name.removeprefix("./"), member.size) for member in archive if member.isfile()] == [("b", 3_000_000)]
        packed.seek(0)
        await sandbox.files.untar("/tmp/c", packed, parents=True)
        assert (await sandbox.files.stat("/tmp/c/b")).size == 3_000_000
        with pytest.raises(FileError):
            await sandbox.files.untar("/tmp/c", io.BytesIO(b"not a tar" * 1000))
        with pytest.raises(FileError):
            await sandbox.files.tar("/tmp/a", io.BytesIO(), count=1000)


async def test_watch() -> None:
    async with AsyncSandbox() as sandbox:
        async with await sandbox.files.watch("/tmp", recursive=True) as watch:
            await sandbox.files.mkdir("/tmp/new")
            assert await watch.read(timeout=20) == Change("created", "new", True)
            await sandbox.run("rmdir /tmp/new")
            changes = [await watch.read(timeout=20)]
            while changes[-1].kind != "removed":
                changes.append(await watch.read(timeout=20))
            assert changes[-1].name == "new"
            with pytest.raises(TimeoutExpired):
                await watch.read(timeout=0.2)
        with pytest.raises(NotFoundError):
            await sandbox.files.watch("/tmp/none")
