"""A sandbox as the backend of a deep agent: its shell, and its files.

    with lind.Sandbox(volumes={".": "overlay"}) as sandbox:
        agent = create_deep_agent(model=..., backend=LindBackend(sandbox))

Its tools do this:

>>> import lind
>>> with lind.Sandbox() as sandbox:
...     done = LindBackend(sandbox).execute("echo hello; exit 3")
>>> done.output, done.exit_code
('hello\\n', 3)
"""

from __future__ import annotations

import asyncio
import errno
import posixpath

from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileInfo, FileUploadResponse, LsResult
from deepagents.backends.sandbox import BaseSandbox

import lind

__all__ = ["LindBackend"]

# The framework's words for errors.
CODES = {
    errno.ENOENT: "file_not_found",
    errno.EISDIR: "is_directory",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.ENOTDIR: "invalid_path",
    errno.ENAMETOOLONG: "invalid_path",
    errno.ELOOP: "invalid_path",
    errno.EINVAL: "invalid_path",
}
# The status of a command that ran out of time; the program `timeout` exits with it.
TIMED_OUT = 124


class LindBackend(BaseSandbox):
    """The shell and the files of a sandbox, which the caller opens and closes.

    Files are read and written by the session itself, with the policy of the sandbox. The image needs `python3` for the tools that search
    and edit.
    """

    def __init__(self, sandbox: lind.Sandbox, *, timeout: float | None = 1800, max_output: int = 1 << 20) -> None:
        """Commands that name no timeout get this one. Of their output this many bytes are kept."""
        self.sandbox = sandbox
        self._timeout = timeout
        self._max_output = max_output

    @property
    def id(self) -> str:
        """The name of the session."""
        self.sandbox.open()
        return self.sandbox.name

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Runs a command by the shell of the sandbox. A timeout of 0 is none."""
        seconds = self._timeout if timeout is None else timeout or None
        output = bytearray()
        try:
            result = self.sandbox.run(command, timeout=seconds, max_output=self._max_output, on_stdout=output.extend, on_stderr=output.extend)
        except lind.TimeoutExpired as why:
            return ExecuteResponse(f"{_text(output)}\n[the command was ended after {why.timeout:g} seconds]", TIMED_OUT)
        except lind.CommandNotStarted as why:
            return ExecuteResponse(str(why), why.status)
        note = f"\n[{result.note}]" if result.note else ""
        return ExecuteResponse(_text(output) + note, result.exit_code, result.dropped > 0)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files, and makes the directories on the way to them."""
        return [FileUploadResponse(path, self._write(path, data)) for path, data in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Reads files."""
        return [self._download(path) for path in paths]

    def ls(self, path: str) -> LsResult:
        """Lists a directory."""
        try:
            files = self.sandbox.files.list(path)
        except lind.FileError as why:
            return LsResult(error=f"Path '{path}': {_code(why)}")
        entries = [FileInfo(path=posixpath.join(path, file.name), is_dir=file.is_dir, size=file.size, modified_at=file.modified.isoformat()) for file in files]
        return LsResult(entries=entries)

    async def als(self, path: str) -> LsResult:
        """Lists a directory."""
        return await asyncio.to_thread(self.ls, path)

    def _write(self, path: str, data: bytes) -> str | None:
        if not path.startswith("/"):
            return "invalid_path"
        try:
            self.sandbox.files.write(path, data, parents=True)
        except lind.FileError as why:
            return _code(why)
        return None

    def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path, error="invalid_path")
        try:
            return FileDownloadResponse(path, self.sandbox.files.read(path))
        except lind.FileError as why:
            return FileDownloadResponse(path, error=_code(why))


def _code(why: lind.FileError) -> str:
    """The framework's word for an error, or the system's."""
    return CODES.get(why.errno or 0) or why.strerror or str(why)


def _text(output: bytearray) -> str:
    return output.decode(errors="replace")
