"""A sandbox for agents of Pydantic AI: as their workspace, and as tools.

    async with lind.AsyncSandbox(volumes={".": "overlay"}) as sandbox:
        agent = Agent(model, toolsets=[lind_toolset(sandbox)])
        await agent.run("...", workspace=LindWorkspace(sandbox))

A command in a workspace:

>>> import asyncio
>>> async def say() -> str:
...     async with lind.AsyncSandbox() as sandbox:
...         return (await LindWorkspace(sandbox).run("echo hello", shell=True)).stdout
>>> asyncio.run(say())
'hello\\n'
"""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic_ai import ModelRetry
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    SupportsCommands,
    SupportsFilesystem,
    WorkspaceBackend,
    WorkspaceCommand,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

import lind

from ._shown import SHOWN, Shown

__all__ = ["LindWorkspace", "lind_toolset"]

T = TypeVar("T")


class LindWorkspace(WorkspaceBackend, SupportsCommands, SupportsFilesystem):
    """The commands and files of a sandbox, which its creator closes. It is started by the first operation if it has not been."""

    def __init__(self, sandbox: lind.AsyncSandbox, *, max_output: int = 16 << 20) -> None:
        self.sandbox = sandbox
        self._max_output = max_output
        self._working_dir: str | None = None

    @property
    def ref(self) -> WorkspaceRef | None:
        """The name of the session, once it is there."""
        return WorkspaceRef(provider="lind", id=self.sandbox.name) if self._working_dir is not None else None

    async def working_dir(self) -> str:
        """The directory in which commands start."""
        if self._working_dir is None:
            self._working_dir = (await _available(self.sandbox.run(["pwd", "-P"], check=True))).stdout.removesuffix("\n")
        return self._working_dir

    async def run(
        self, command: WorkspaceCommand, *, shell: bool = False, env: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> CommandResult:
        """Runs a command: words, or with `shell` a text for the sandbox's shell."""
        if isinstance(command, str) != shell:
            raise TypeError("a command is a text with shell=True, and a sequence of words without")
        if timeout is not None and not 0 < timeout < float("inf"):
            raise ValueError("timeout must be a positive finite number or None")
        directory = await self.working_dir()
        try:
            done = await _available(self.sandbox.run(command, env=env, timeout=timeout, cwd=directory, max_output=self._max_output))
        except lind.TimeoutExpired as why:
            raise WorkspaceTimeoutError(str(why), stdout=why.stdout, stderr=why.stderr) from why
        except lind.CommandNotStarted as why:
            return CommandResult(exit_code=why.status, stdout="", stderr=f"{why}\n")
        if done.signal is not None:
            # The end of the sandbox ends commands too.
            await _available(self.sandbox.commands())
        if done.dropped:
            raise WorkspaceOutputLimitError(f"the command wrote {done.dropped} bytes more than are kept", limit=self._max_output, stdout=done.stdout,
                                            stderr=done.stderr)
        return CommandResult(exit_code=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    async def read_bytes(self, path: str) -> bytes:
        """The bytes of a file."""
        return await _available(self._files.read(path))

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Writes into a file, and makes it and the directories on the way if they are not there."""
        await _available(self._files.write(path, data, parents=True, atomic=False))

    async def stat(self, path: str) -> FileEntry:
        """What a file is."""
        return _entry(path, await _available(self._files.stat(path)))

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        """The files of a directory."""
        found = []
        for file in sorted(await _available(self._files.list(path)), key=lambda file: file.name):
            inside = posixpath.join(path, file.name)
            found.append(await self._followed(inside, file) if file.is_link else _entry(inside, file))
        return found

    async def make_dir(self, path: str) -> None:
        """Makes a directory, and those on the way to it."""
        await _available(self._files.mkdir(path, parents=True, exist_ok=True))

    async def remove(self, path: str) -> None:
        """Removes a file, or a directory with all that is in it, but not the one in which commands start."""
        directory = await self.working_dir()
        if not (await _available(self._files.stat(path, follow=False))).is_link:
            real = (await self.run(["realpath", "--", path])).stdout.removesuffix("\n")
            if directory == real or directory.startswith(real.rstrip("/") + "/"):
                raise ValueError(f"{path}: it is the directory in which commands start, or holds that")
        await _available(self._files.remove(path, recursive=True))

    async def exists(self, path: str) -> bool:
        """Whether there is a file, at the end of links."""
        try:
            await _available(self._files.stat(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    @property
    def _files(self) -> Any:
        return self.sandbox.files

    async def _followed(self, path: str, link: lind.FileInfo) -> FileEntry:
        try:
            return _entry(path, await _available(self._files.stat(path)))
        except lind.FileError:
            return _entry(path, link)


def _entry(path: str, file: lind.FileInfo) -> FileEntry:
    return FileEntry(name=posixpath.basename(path), path=path, is_dir=file.is_dir, size=file.size if file.is_file else None)


async def _available(operation: Awaitable[T]) -> T:
    """What an operation returns, with the framework's error if the sandbox has ended."""
    try:
        return await operation
    except lind.SandboxError as why:
        raise WorkspaceUnavailableError(str(why)) from why


def lind_toolset(sandbox: lind.AsyncSandbox, *, timeout: float | None = 600, max_output: int = SHOWN, id: str | None = "lind") -> FunctionToolset[Any]:
    """Tools for a model: run a command, read a file, write a file. Of long output it gets the beginning and the end."""

    async def run_command(command: str, timeout_seconds: float | None = None) -> str:
        """Run a command by bash in a sandbox.

        Files that it leaves are there for the next command; variables and the current directory are not.

        Args:
            command: The command.
            timeout_seconds: Seconds after which the command is ended.
        """
        shown = Shown(max_output)
        seconds = min(filter(None, (timeout_seconds, timeout)), default=None)
        try:
            return shown.text(await sandbox.run(command, timeout=seconds, max_output=None, on_stdout=shown.add, on_stderr=shown.add))
        except (lind.TimeoutExpired, lind.CommandNotStarted) as why:
            return shown.text(why)

    async def read_file(path: str) -> str:
        """Read a text file of the sandbox.

        Args:
            path: The file.
        """
        try:
            data = await sandbox.files.read(path, count=max_output + 1)
        except lind.FileError as why:
            raise ModelRetry(f"{path}: {why.strerror}") from why
        return data[:max_output].decode(errors="replace") + (f"\n[the file is longer than {max_output} bytes]" if len(data) > max_output else "")

    async def write_file(path: str, content: str) -> str:
        """Write a text file of the sandbox, and the directories on the way to it.

        Args:
            path: The file.
            content: All that will be in it.
        """
        try:
            await sandbox.files.write(path, content, parents=True)
        except lind.FileError as why:
            raise ModelRetry(f"{path}: {why.strerror}") from why
        return f"{path} is written"

    return FunctionToolset([run_command, read_file, write_file], id=id)
