"""The images that wheels bring: the directories with the tools of sandboxes.

A wheel cannot hold links, and an image has hundreds. So it is an archive, which the runner unpacks into the user's cache when it is first used:
`images/NAME.tar.zst` beside the runner. `images/NAME.id` is its hash; other wheels add their own.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from ._deadline import Deadline
from ._runtime import BUNDLE, program
from .errors import SandboxError

# The image of the wheel itself.
BASE = "base"
# The seconds after which an image that nobody has used is removed, when another is unpacked.
OLD = 30 * 24 * 3600


def find(wanted: str | os.PathLike[str] | None, deadline: Deadline) -> str | None:
    """The directory of an image, by its name or its path; None for the one that lind-boot has. Raises TimeoutError if it cannot be unpacked in time."""
    if wanted is not None and os.sep in os.fspath(wanted):
        return os.fspath(wanted)
    name = BASE if wanted is None else os.fspath(wanted)
    images = BUNDLE / "images"
    known = images / f"{name}.id"
    if not known.exists():
        return None if wanted is None else os.fspath(wanted)
    target = _cache() / f"{name}-{known.read_text().strip()}"
    if target.exists():
        os.utime(target)
    else:
        _unpack(images / f"{name}.tar.zst", target, deadline)
    return str(target)


def _cache() -> Path:
    """The directory of unpacked images, which no other user can enter."""
    user = os.geteuid()
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for folder in (Path(home, "lind-sandbox"), Path(f"/tmp/lind-{user}", "images")):
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            found, is_kept = folder.lstat(), _keeps_its_entries(folder.parent)
        except OSError:
            continue
        own = stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o022
        if own and is_kept and os.access(folder, os.W_OK):
            return folder
    raise SandboxError(f"no place for the image of the sandbox: {home}/lind-sandbox must be a directory of yours that nobody else can change")


def _keeps_its_entries(path: Path) -> bool:
    """Whether no other user can put another directory in the place of one in it, or lead a link elsewhere."""
    trusted, target = {0, os.geteuid()}, path.stat()
    by_others = target.st_mode & stat.S_IWOTH and not target.st_mode & stat.S_ISVTX
    return path.lstat().st_uid in trusted and target.st_uid in trusted and not by_others


def _unpack(archive: Path, target: Path, deadline: Deadline) -> None:
    """Unpacks an image in one step, as others see it."""
    for old in target.parent.iterdir():
        if time.time() - old.lstat().st_mtime > OLD:
            shutil.rmtree(old, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    try:
        words: list[str | Path] = [program(), "unpack-image", archive, new]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False, timeout=deadline.left())
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        if done.returncode:
            raise SandboxError(done.stderr.strip() or f"cannot unpack {archive}: status {done.returncode} of {program()}")
        new.chmod(0o755)
        try:
            new.rename(target)
        except OSError:
            # Another process was faster.
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
