"""The files of a sandbox."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from .._deadline import Deadline
from .._messages import PIECE, Message, pieces, word
from .._reading import read_change, read_copied, read_file
from .._runtime import program, why
from ..errors import FileError, TimeoutExpired, file_error
from ..results import Change, Copied, FileInfo
from ._io import execute
from .connection import AsyncConnection
from .session import AsyncSession

if TYPE_CHECKING:
    from typing_extensions import Self

GuestPath = str | bytes | os.PathLike[str]
Entries = list[FileInfo]
# The most bytes that `read` returns, and the most entries of a list.
MOST = 256 << 20
ENTRIES = 100_000


class AsyncFiles:
    """The files of a sandbox, as its commands see them and may change them: the policy holds here too.

    Paths that do not begin with / are below the sandbox's working directory. A file that is not there raises NotFoundError, which is a
    FileNotFoundError, and so for the other errors.

    >>> async with AsyncSandbox() as sandbox:
    ...     await sandbox.files.write("/tmp/notes/today", "some text", parents=True)
    ...     text = await sandbox.files.read_text("/tmp/notes/today")
    ...     names = [file.name for file in await sandbox.files.list("/tmp/notes")]
    >>> text, names
    ('some text', ['today'])
    """

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def read(self, path: GuestPath, *, start: int = 0, count: int | None = None, timeout: float | None = None) -> bytes:
        """The bytes of a file, from `start`, and `count` of them. Without `count` it is the rest of the file, of at most 256 MiB."""
        data = bytearray()
        async with self._request(timeout, do="read", path=word(path), count=MOST if count is None else count, **{"from": start}) as answers:
            async for message in answers:
                data += message.body
        if count is None and answers.last.get("more") is True:
            raise file_error(errno.EFBIG, os.fsdecode(path), f"larger than {MOST} bytes: read it in parts, or download it")
        return bytes(data)

    async def read_text(self, path: GuestPath, encoding: str = "utf-8", *, errors: str = "strict", timeout: float | None = None) -> str:
        """The text of a file."""
        return (await self.read(path, timeout=timeout)).decode(encoding, errors)

    async def write(
        self,
        path: GuestPath,
        data: bytes | str,
        *,
        mode: int | None = None,
        parents: bool = False,
        create: bool = False,
        atomic: bool = True,
        timeout: float | None = None,
    ) -> None:
        """Writes a file whole. A new one takes the place of the old one in one step; with `atomic=False` the old one is written into.

        `parents` makes the directories on the way. With `create` it is an error if the file is there.
        """
        keys = {"path": word(path), "mode": mode, "parents": parents, "create": create, "atomic": atomic}
        await self._send(timeout, pieces(_bytes(data)), do="write", **keys)

    async def append(self, path: GuestPath, data: bytes | str, *, mode: int | None = None, parents: bool = False, timeout: float | None = None) -> None:
        """Writes to the end of a file, which is made if it is not there."""
        await self._send(timeout, pieces(_bytes(data)), do="append", path=word(path), mode=mode, parents=parents)

    async def stat(self, path: GuestPath, *, follow: bool = True, timeout: float | None = None) -> FileInfo:
        """The kind, size, mode and times of a file. With `follow=False` a link is looked at itself."""
        return read_file((await self._ask(timeout, do="stat", path=word(path), follow=follow)).keys["stat"])

    async def exists(self, path: GuestPath, *, timeout: float | None = None) -> bool:
        """Whether there is a file of this name. A link that leads nowhere is one."""
        try:
            await self.stat(path, follow=False, timeout=timeout)
        except FileError as why:
            if why.errno in (errno.ENOENT, errno.ENOTDIR):
                return False
            raise
        return True

    async def list(
        self, path: GuestPath = ".", *, recursive: bool = False, depth: int | None = None, count: int = ENTRIES, timeout: float | None = None
    ) -> Entries:
        """The files of a directory, and with `recursive` of those in it, up to `depth`. Raises FileError if there are more than `count`."""
        found: Entries = []
        async with self._request(timeout, do="list_files", path=word(path), recursive=recursive, depth=depth, count=count) as answers:
            async for message in answers:
                found += [read_file(entry) for entry in message.keys["entries"]]
        if answers.last.get("more") is True:
            raise file_error(errno.EOVERFLOW, os.fsdecode(path), f"has more than {count} entries; the parameter count allows more")
        return found

    async def mkdir(self, path: GuestPath, *, parents: bool = False, mode: int | None = None, exist_ok: bool = False, timeout: float | None = None) -> None:
        """Makes a directory."""
        try:
            await self._ask(timeout, do="mkdir", path=word(path), parents=parents, mode=mode)
        except FileExistsError:
            if not exist_ok or not (await self.stat(path, timeout=timeout)).is_dir:
                raise

    async def remove(self, path: GuestPath, *, recursive: bool = False, missing_ok: bool = False, timeout: float | None = None) -> None:
        """Removes a file, or an empty directory, or with `recursive` a directory with all that is in it."""
        await self._ask(timeout, do="remove", path=word(path), recursive=recursive, missing_ok=missing_ok)

    async def rename(self, path: GuestPath, to: GuestPath, *, create: bool = False, timeout: float | None = None) -> None:
        """Gives a file another name. With `create` it is an error if that is there."""
        await self._ask(timeout, do="rename", path=word(path), to=word(to), create=create)

    async def copy(
        self, path: GuestPath, to: GuestPath, *, recursive: bool = False, parents: bool = False, create: bool = False, timeout: float | None = None
    ) -> Copied:
        """Copies a file, or with `recursive` a directory."""
        message = await self._ask(timeout, do="copy", path=word(path), to=word(to), recursive=recursive, parents=parents, create=create)
        return read_copied(message.keys)

    async def symlink(self, path: GuestPath, target: GuestPath, *, timeout: float | None = None) -> None:
        """Makes a symbolic link to `target`."""
        await self._ask(timeout, do="link", path=word(path), target=word(target))

    async def upload(self, source: str | os.PathLike[str], to: GuestPath, *, timeout: float | None = None) -> None:
        """Copies a file or a directory of the host into the sandbox. A directory that is there gets it by its own name; `DIR/.` means the files in it."""
        await self._session.open()
        await self._copy(timeout, _host(source), self._inside(to))

    async def download(self, path: GuestPath, to: str | os.PathLike[str], *, timeout: float | None = None) -> None:
        """Copies a file or a directory of the sandbox to the host, by its own name into a directory that is there; `DIR/.` means the files in it.
        Links that lead out of the directory are left out."""
        await self._session.open()
        await self._copy(timeout, self._inside(path), os.path.abspath(to))

    async def tar(self, path: GuestPath, to: BinaryIO, *, count: int = 1 << 30, timeout: float | None = None) -> Copied:
        """Writes a tar of a file or directory to a file object. Raises FileError if it has more than `count` bytes."""
        async with self._request(timeout, do="tar", path=word(path), count=count) as answers:
            async for message in answers:
                to.write(message.body)
        return read_copied(answers.last)

    async def untar(self, path: GuestPath, source: BinaryIO, *, parents: bool = False, timeout: float | None = None) -> Copied:
        """Makes files of a tar that is read from a file object, below a directory."""
        return read_copied((await self._send(timeout, iter(lambda: source.read(PIECE), b""), do="untar", path=word(path), parents=parents)).keys)

    async def watch(self, path: GuestPath = ".", *, recursive: bool = False, timeout: float | None = None) -> AsyncWatch:
        """Watches a directory for changes.

        >>> async with AsyncSandbox() as sandbox:
        ...     async with await sandbox.files.watch("/tmp") as watch:
        ...         await sandbox.files.mkdir("/tmp/new")
        ...         change = await watch.read(timeout=10)
        >>> change
        Change(kind='created', name='new', is_dir=True)
        """
        await self._session.open()
        deadline = self._deadline(timeout)
        connection = await self._session.connect(deadline)
        try:
            await connection.ask(deadline, do="watch", path=word(path), recursive=recursive)
        except BaseException:
            connection.close()
            raise
        return AsyncWatch(self._session, connection)

    def _deadline(self, timeout: float | None) -> Deadline:
        return Deadline(self._session.options.request_timeout if timeout is None else timeout)

    async def _ask(self, timeout: float | None, **keys: Any) -> Message:
        await self._session.open()
        async with self._session.files:
            return await self._session.ask(timeout, **keys)

    @asynccontextmanager
    async def _request(self, timeout: float | None, **keys: Any) -> AsyncIterator[AsyncAnswers]:
        """A request whose answers come in several messages."""
        await self._session.open()
        deadline = self._deadline(timeout)
        try:
            async with self._session.files, self._session.connection(deadline) as connection:
                await connection.send(deadline, **keys)
                yield AsyncAnswers(self._session, connection, deadline)
        except TimeoutExpired:
            raise
        except TimeoutError:
            raise TimeoutExpired(str(keys["do"]), deadline.seconds or 0) from None

    async def _send(self, timeout: float | None, data: Iterable[bytes | memoryview], **keys: Any) -> Message:
        """A request with bytes, in as many messages as they need."""
        await self._session.open()
        deadline = self._deadline(timeout)
        try:
            async with self._session.files, self._session.connection(deadline) as connection:
                rest = iter(data)
                piece = next(rest, b"")
                while following := next(rest, None):
                    await connection.send(deadline, piece, more=True, **keys)
                    piece, keys = following, {}
                await connection.send(deadline, piece, more=False, **keys)
                return await self._session.await_message(connection, deadline)
        except TimeoutExpired:
            raise
        except TimeoutError:
            raise TimeoutExpired("write", deadline.seconds or 0) from None

    def _inside(self, path: GuestPath) -> bytes:
        """A path of the sandbox in the words of `lind-boot session cp`."""
        return b"%s:%s" % (self._session.started.name.encode(), os.fsencode(path))

    async def _copy(self, timeout: float | None, source: str | bytes, to: str | bytes) -> None:
        deadline = self._deadline(timeout)
        try:
            status, _, errors = await execute([str(program()), "session", "cp", source, to], deadline)
        except TimeoutError:
            raise TimeoutExpired("copy", deadline.seconds or 0) from None
        if status != 0:
            raise FileError(errno.EIO, why(errors))


class AsyncAnswers:
    """The answers to a request, up to the last, which is `last`."""

    def __init__(self, session: AsyncSession, connection: AsyncConnection, deadline: Deadline) -> None:
        self.last: dict[str, Any] = {}
        self._session, self._connection, self._deadline = session, connection, deadline

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        message = await self._session.await_message(self._connection, self._deadline)
        if message.keys.get("done") is True:
            self.last = message.keys
            raise StopAsyncIteration
        return message


class AsyncWatch:
    """Changes in a directory, one after the other. It is closed when it is left."""

    def __init__(self, session: AsyncSession, connection: AsyncConnection) -> None:
        self._session = session
        self._connection = connection

    async def read(self, timeout: float | None = None) -> Change:
        """The next change. Raises TimeoutExpired if none comes within so many seconds."""
        try:
            return read_change((await self._session.await_message(self._connection, Deadline(timeout))).keys)
        except TimeoutExpired:
            raise
        except TimeoutError:
            raise TimeoutExpired("watch", timeout or 0) from None

    def __aiter__(self) -> AsyncIterator[Change]:
        return self

    async def __anext__(self) -> Change:
        return await self.read()

    async def close(self) -> None:
        """Ends it."""
        self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


def _host(path: str | os.PathLike[str]) -> str:
    """A path of the host. The end `/.` has a meaning."""
    return os.path.abspath(path) + ("/." if os.fspath(path).endswith("/.") else "")


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data
