"""Paths of clients, which lie below the root of a sandbox."""

from __future__ import annotations

import errno
import posixpath
from collections import deque

from ... import AsyncSandbox
from ...errors import FileError, shown
from ..core import Refusal

# The root of a sandbox, for its clients.
ROOT = "/workspace"
# How many links a path may lead through, and how long it may be.
LINKS, LENGTH = 40, 4096
OUTSIDE = f"the path leads out of {ROOT}"


def lexical(path: str) -> str:
    """A path of a client as one of the sandbox, without a look at links. Paths that begin with / are below the root too.

    >>> lexical("src/../a//b"), lexical("/etc/passwd"), lexical("/workspace/a"), lexical("")
    ('/workspace/a/b', '/workspace/etc/passwd', '/workspace/a', '/workspace')
    """
    if "\0" in path:
        raise Refusal(400, "a path with a null byte")
    if len(path) > LENGTH:
        raise Refusal(400, f"a path may have {LENGTH} characters")
    plain = posixpath.normpath(path)
    if plain == ROOT or plain.startswith(f"{ROOT}/"):
        plain = plain[len(ROOT) :]
    joined = posixpath.normpath(posixpath.join(ROOT, plain.lstrip("/")))
    if not is_below(joined):
        raise Refusal(403, OUTSIDE)
    return joined


def is_below(path: str) -> bool:
    """Whether a path is the root or below it."""
    return path == ROOT or path.startswith(f"{ROOT}/")


def relative(path: str) -> str:
    """A path of the sandbox as clients know it."""
    return path[len(ROOT) :].lstrip("/")


async def confined(sandbox: AsyncSandbox, path: str, *, follow: bool = True) -> str:
    """The path without links that a client's leads to. With `follow=False` the last name may be a link. What does not exist is taken as it is.

    A guest may put a link in the place of a directory afterwards. That leads to files of the same sandbox which its commands reach too.
    """
    at, links = ROOT, 0
    pending = deque(relative(lexical(path)).split("/"))
    while pending:
        name = pending.popleft()
        if name in ("", "."):
            continue
        following = posixpath.dirname(at) if name == ".." else posixpath.join(at, name)
        if not is_below(following):
            raise Refusal(403, OUTSIDE)
        target = None if name == ".." or (not pending and not follow) else await _target(sandbox, following)
        if target is None:
            at = following
            continue
        links += 1
        if links > LINKS:
            raise Refusal(400, f"{shown(path)}: {LINKS} links or more, one behind the other")
        if target.startswith("/"):
            if not is_below(posixpath.normpath(target)):
                raise Refusal(403, OUTSIDE)
            at, target = ROOT, target.lstrip("/").removeprefix(ROOT.lstrip("/"))
        pending.extendleft(reversed(target.split("/")))
    return at


async def _target(sandbox: AsyncSandbox, path: str) -> str | None:
    """What a link leads to; None if it is not a link."""
    try:
        return (await sandbox.files.stat(path, follow=False)).target
    except FileError as why:
        if why.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
