"""The place of unpacked images."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from lind import AsyncSandbox, Sandbox, SandboxError, _images
from lind._deadline import Deadline

ANOTHER = 65534


def cache(monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return _images._cache()


def test_it_is_in_the_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that is a link."""
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    for home in (tmp_path, tmp_path / "new", link):
        assert cache(monkeypatch, home) == home / "lind-sandbox"
    assert (tmp_path / "lind-sandbox").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o722])
def test_no_directory_that_others_may_change_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int) -> None:
    """They could put another image in the place of that which was unpacked, and so other tools into a sandbox."""
    for open_to_others in (tmp_path / "parent", tmp_path / "own" / "lind-sandbox"):
        open_to_others.mkdir(parents=True)
        open_to_others.chmod(mode)
        home = open_to_others if open_to_others.name == "parent" else open_to_others.parent
        assert tmp_path not in cache(monkeypatch, home).parents


@pytest.mark.skipif(os.geteuid() != 0, reason="not root")
def test_no_directory_of_another_user_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has made the directory above can rename what is in it, and its link leads where that user says."""
    theirs, link = tmp_path / "theirs", tmp_path / "link"
    theirs.mkdir()
    os.chown(theirs, ANOTHER, ANOTHER)
    link.symlink_to(tmp_path)
    os.chown(link, ANOTHER, ANOTHER, follow_symlinks=False)
    for home in (theirs, link):
        assert tmp_path not in cache(monkeypatch, home).parents


def archive(path: Path, **files: str) -> Path:
    """An archive of an image, as scripts/wheel.py makes it."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    path.write_bytes(subprocess.run(["zstd", "-q", "-c"], input=made.getvalue(), capture_output=True, check=True).stdout)
    return path


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of images of a wheel; the cache is beside it."""
    images = tmp_path / "bundle" / "images"
    images.mkdir(parents=True)
    (images / "base.id").write_text("hash\n")
    monkeypatch.setattr(_images, "BUNDLE", tmp_path / "bundle")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return images


def test_an_image_is_unpacked_once(tmp_path: Path, bundle: Path) -> None:
    archive(bundle / "base.tar.zst", first="text", second="")
    found = Path(_images.find(None, Deadline(60)) or "")
    assert found == tmp_path / "lind-sandbox" / "base-hash"
    assert sorted(path.name for path in found.iterdir()) == ["first", "second"]
    (bundle / "base.tar.zst").unlink()
    assert _images.find(None, Deadline(60)) == str(found)


def test_an_image_that_cannot_be_unpacked_says_so(tmp_path: Path, bundle: Path) -> None:
    """It leaves nothing."""
    (bundle / "base.tar.zst").write_text("nothing")
    with pytest.raises(SandboxError, match="cannot unpack .*base.tar.zst into "):
        _images.find(None, Deadline(60))
    assert list((tmp_path / "lind-sandbox").iterdir()) == []


@pytest.fixture
def slow(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A runner that does not come to an end, with an image to unpack. The file of its last words."""
    runner, words = tmp_path / "runner", tmp_path / "words"
    runner.write_text(f'#!/bin/sh\necho "$@" >>{words}\nexec sleep 1000\n')
    runner.chmod(0o755)
    monkeypatch.setenv("LIND_BOOT", str(runner))
    return words


def test_an_image_has_as_long_as_its_user(tmp_path: Path, slow: Path) -> None:
    """It leaves nothing, and nothing is begun when the time is up already."""
    for seconds in (0.0, 2.0):
        with pytest.raises(TimeoutError):
            _images.find(None, Deadline(seconds))
        assert list((tmp_path / "lind-sandbox").iterdir()) == []
    assert slow.read_text().count("unpack-image") == 1


async def test_a_start_counts_the_time_of_its_image(slow: Path) -> None:
    """The loop goes on meanwhile."""
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    task = asyncio.ensure_future(turn())
    with pytest.raises(SandboxError, match="has not started within 2 seconds"):
        await AsyncSandbox(start_timeout=2).open()
    task.cancel()
    assert turns > 1
    with pytest.raises(SandboxError, match="has not started within 2 seconds"):
        Sandbox(start_timeout=2).open()
    assert slow.read_text().count("unpack-image") == 2
    assert "session start" not in slow.read_text()
