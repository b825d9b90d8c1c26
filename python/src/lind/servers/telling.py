"""How servers tell clients of files: names that any client can read, and errors as the status of HTTP."""

from __future__ import annotations

import errno
from collections.abc import Mapping

from ..errors import FileError, shown
from .core import Refusal

STATUS = {errno.ENOENT: 404, errno.EACCES: 403, errno.EPERM: 403, errno.EROFS: 403, errno.ENOSPC: 507, errno.EDQUOT: 507, errno.EFBIG: 507}

# The last second of the year 9999: clients know no later time, and guests may set any.
LATEST = 253_402_300_799


def moment(seconds: float) -> float:
    """The time of a file, if clients know it, or the one next to it that they know.

    >>> moment(1.5), moment(-1.0), moment(1e15)
    (1.5, 0.0, 253402300799.0)
    """
    return min(max(seconds, 0.0), float(LATEST))


def plain(text: str) -> str:
    """A name as text. Bytes that are not UTF-8 become U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def reason(why: FileError) -> str:
    """The error of a file in words. Its name is of a guest's making."""
    return f"{shown(str(why.filename)) if why.filename is not None else 'file'}: {why.strerror}"


def refusal(why: FileError, more: Mapping[int, int] | None = None) -> Refusal:
    """The answer to a request that fails for a file. `more` are statuses that only one protocol has."""
    return Refusal({**STATUS, **(more or {})}.get(why.errno or 0, 400), reason(why))
