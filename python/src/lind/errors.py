"""The errors of this package: one small tree below `LindError`.

    LindError
    ├── SandboxError          the sandbox cannot be started, has ended, or does not answer
    ├── RequestError          the session refuses a request
    │   ├── ApplyError            not all changes of an overlay were applied
    │   └── CommandNotStarted     the command cannot be started, as a missing program
    ├── TimeoutExpired        the time was over; also a TimeoutError
    ├── CommandError          the command failed, and `check=True` was given
    └── FileError             an operation on files failed; also an OSError
        ├── NotFoundError         also a FileNotFoundError
        ├── ExistsError           also a FileExistsError
        ├── IsDirectoryError      also an IsADirectoryError
        ├── NotDirectoryError     also a NotADirectoryError
        └── DeniedError           also a PermissionError: EACCES, EPERM, or EROFS, by which a policy denies writing
"""

from __future__ import annotations

import errno as numbers
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._messages import text, text_or_none

if TYPE_CHECKING:
    from .results import Applied, Result

__all__ = ["ApplyError", "CommandError", "CommandNotStarted", "DeniedError", "ExistsError", "FileError", "IsDirectoryError", "LindError", "NotDirectoryError",
           "NotFoundError", "RequestError", "SandboxError", "TimeoutExpired"]


class LindError(Exception):
    """Any error of this package."""


class SandboxError(LindError):
    """The sandbox cannot be started, has ended, or does not answer. `log` is what its session has said, if it could be read."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log


class RequestError(LindError):
    """The session refuses a request. `status` is the status with which a command line client would exit, `errno` a name such as "ENOENT", or None."""

    def __init__(self, message: str, status: int = 125, errno: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.errno = errno


class CommandNotStarted(RequestError):
    """A command cannot be started. `status` is 127 for a program that does not exist, 126 for one that cannot be executed."""


class ApplyError(RequestError):
    """Not all changes of an overlay were applied. `applied` says which were, and why the others were not."""

    def __init__(self, message: str, status: int, applied: Applied) -> None:
        super().__init__(message, status)
        self.applied = applied


class TimeoutExpired(LindError, TimeoutError):
    """The time was over. The output so far is in `stdout` and `stderr`; `result` is there if the command was killed for it."""

    def __init__(self, what: str, timeout: float, stdout: bytes = b"", stderr: bytes = b"", result: Result | None = None) -> None:
        super().__init__(f"{what}: not done after {timeout:g} seconds")
        self.timeout = timeout
        self.stdout_bytes = stdout
        self.stderr_bytes = stderr
        self.result = result

    @property
    def stdout(self) -> str:
        """The standard output so far, as text."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """The standard error so far, as text."""
        return self.stderr_bytes.decode(errors="replace")


class CommandError(LindError):
    """A command with `check=True` has failed. `result` says how."""

    def __init__(self, command: str, result: Result) -> None:
        end = f"was ended by signal {result.signal}" if result.signal is not None else f"has exited with status {result.exit_code}"
        last = result.stderr.rstrip().rpartition("\n")[2][:500]
        super().__init__(f"{shown(command)} {end}" + (f": {shown(last)}" if last else ""))
        self.result = result


class FileError(LindError, OSError):
    """An operation on files of a sandbox failed. `errno`, `strerror` and `filename` are as in any OSError."""


class NotFoundError(FileError, FileNotFoundError):
    """The file does not exist."""


class ExistsError(FileError, FileExistsError):
    """A file of this name exists."""


class IsDirectoryError(FileError, IsADirectoryError):
    """It is a directory."""


class NotDirectoryError(FileError, NotADirectoryError):
    """It is not a directory."""


class DeniedError(FileError, PermissionError):
    """The file's mode or the policy does not permit it."""


_KINDS: dict[int, type[FileError]] = {
    numbers.ENOENT: NotFoundError,
    numbers.EEXIST: ExistsError,
    numbers.EISDIR: IsDirectoryError,
    numbers.ENOTDIR: NotDirectoryError,
    numbers.EACCES: DeniedError,
    numbers.EPERM: DeniedError,
    numbers.EROFS: DeniedError,
}


def shown(text: str) -> str:
    """Text of a guest as it can be printed: escaped where a terminal would act on it."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text)


def file_error(number: int, path: str, why: str | None = None) -> FileError:
    """The error of a path."""
    return _KINDS.get(number, FileError)(number, why or os.strerror(number), path)


def refusal(answer: Mapping[str, Any]) -> LindError:
    """The error that an answer of a session stands for."""
    message, name = shown(text(answer["error"])), text_or_none(answer.get("errno"))
    number = getattr(numbers, name, None) if name else None
    if "path" in answer and isinstance(number, int):
        return file_error(number, text(answer["path"]))
    status = answer.get("status")
    return RequestError(message, status if isinstance(status, int) else 125, name)
