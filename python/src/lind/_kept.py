"""Copies of sandboxes on the host: the states of overlays, and tars of files in memory, each copy in a directory of its own.

Each process holds the lock of its directories. So those of a process that was killed are found, and removed, when the next one is made.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ._deadline import Deadline
from .errors import SandboxError, shown

# The request by which a file gets the blocks of another, where these can be shared (linux/fs.h).
FICLONE = 0x40049409
# The bytes that are copied before the time is looked at.
PIECE = 16 << 20
# The database of a state, its log, and the data files of one that is a directory
# (docs/overlay.md).
DATABASE, LOG, DATA = "state.db", "-wal", "data"
OWN = os.O_CLOEXEC | os.O_NOFOLLOW


def parent() -> Path:
    """Where the directories are: beside the states of overlays."""
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named if os.path.isabs(named) else os.path.expanduser("~/.local/state"), "lind", "copies")


class Folder:
    """A directory of this process, which no other user can enter. It is removed when this is closed, or goes."""

    def __init__(self) -> None:
        try:
            parent().mkdir(mode=0o700, parents=True, exist_ok=True)
            with _locked(parent()) as above:
                _sweep(above)
                name = secrets.token_hex(8)
                os.mkdir(name, 0o700, dir_fd=above)
                lock = _open(name, above)
            self.path = parent() / name
        except OSError as why:
            raise SandboxError(f"{parent()}: copies of sandboxes cannot be kept there: {why.strerror}; name another place by XDG_STATE_HOME") from None
        self._end = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Removes it."""
        self._end()


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """A directory, locked."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | OWN)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield fd
    finally:
        os.close(fd)


def _open(name: str, above: int) -> int:
    """Opens and locks a directory that nobody else has locked."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | OWN, dir_fd=above)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def _sweep(above: int) -> None:
    """Removes the directories whose processes have ended."""
    for name in os.listdir(above):
        # A directory in use stays, and so does anything else.
        with suppress(OSError):
            os.close(_open(name, above))
            shutil.rmtree(f"/proc/self/fd/{above}/{name}", ignore_errors=True)


def _remove(path: Path, lock: int, owner: int) -> None:
    # The child of a fork leaves what its parent has.
    if owner == os.getpid():
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


@dataclass(frozen=True)
class State:
    """The state of an overlay: a file, or a directory with a slash at its end; and its head, with a colon in front."""

    path: str
    head: str = ""

    @classmethod
    def read(cls, word: str) -> State:
        """The state that a session names."""
        path, colon, head = word.rpartition(":")
        return cls(path, colon + head) if colon and "/" not in head else cls(word)

    def __str__(self) -> str:
        return self.path + self.head

    def copy(self, to: str, deadline: Deadline) -> State:
        """Copies it, while nobody has it open."""
        if not self.path.endswith("/"):
            _copy_database(self.path, to, deadline)
            return State(to, self.head)
        os.mkdir(to, 0o700)
        _copy_database(self.path + DATABASE, f"{to}/{DATABASE}", deadline)
        if os.path.isdir(self.path + DATA):
            os.mkdir(f"{to}/{DATA}", 0o700)
            for name in os.listdir(self.path + DATA):
                if name.isascii() and name.isdigit():
                    copy_file(f"{self.path}{DATA}/{name}", f"{to}/{DATA}/{name}", deadline)
        return State(f"{to}/", self.head)


def _copy_database(path: str, to: str, deadline: Deadline) -> None:
    copy_file(path, to, deadline)
    with suppress(FileNotFoundError):
        copy_file(path + LOG, to + LOG, deadline)


def new_file(path: str) -> BinaryIO:
    """Makes a file to write."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | OWN, 0o600), "w+b")


def kept_file(path: str) -> BinaryIO:
    """Opens a file to read."""
    return open(os.open(path, os.O_RDONLY | OWN), "rb")


def copy_file(path: str, to: str, deadline: Deadline) -> None:
    """Copies a regular file, with its holes. Blocks are shared where the file system can do that, so that neither file sees changes of the other."""
    with kept_file(path) as source, new_file(to) as target:
        about = os.fstat(source.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise SandboxError(f"{shown(path)}: is not a regular file")
        try:
            fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
        except OSError:
            os.ftruncate(target.fileno(), about.st_size)
            for start, end in _pieces(source.fileno(), about.st_size):
                deadline.left()
                _copy_piece(source.fileno(), target.fileno(), start, end)


def _pieces(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are not holes."""
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
            hole = os.lseek(fd, at, os.SEEK_HOLE)
        except OSError:
            # The rest is a hole.
            return
        while at < hole:
            end = min(hole, at + PIECE)
            yield at, end
            at = end


def _copy_piece(source: int, target: int, start: int, end: int) -> None:
    while start < end:
        data = os.pread(source, min(end - start, 1 << 20), start)
        if not data:
            return
        while data:
            done = os.pwrite(target, data, start)
            start, data = start + done, data[done:]


# A volume in the words of `-v`, behind the directory of the host: the guest's path, if it has
# another, and the state.
OVERLAY = re.compile(r"((?:.*?:)?overlay)(?:=.*)?", re.DOTALL)


def with_state(how: str, state: State) -> str:
    """How a volume is mounted, with this state of its overlay."""
    found = OVERLAY.fullmatch(how)
    if found is None:
        raise SandboxError(f"a volume {shown(how)} has an overlay that `volumes` does not name")
    return f"{found[1]}={state}"


def mounts(text: str) -> dict[str, str]:
    """The mounts of /proc/mounts: what each path is, as "tmpfs rw"."""
    found = {}
    for line in text.splitlines():
        _, path, kind, flags = line.split(" ")[:4]
        found[re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), path)] = f"{kind} {flags.partition(',')[0]}"
    return found


# The directories that each sandbox has of its own, unless volumes are there. They are in memory, or
# on a disk where lind-boot makes the mounts itself.
MEMORY = ("/tmp", "/home/user")


def memory(found: Mapping[str, str], volumes: Iterable[str], tmpfs: Iterable[str]) -> list[str]:
    """The directories beside volumes that are the sandbox's own and can be changed."""
    wanted = {*MEMORY, *(os.path.normpath(one.partition(":")[0]) for one in tmpfs)} - set(volumes)
    return sorted(path for path in wanted if found.get(path, "").endswith(" rw"))


def is_below(path: str, folder: str) -> bool:
    """Whether a path lies in a directory."""
    return path.startswith(folder.rstrip("/") + "/")
