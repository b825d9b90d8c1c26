"""Sandboxes for commands of a model or a stranger: what they see, change and reach is what you name.

>>> import lind
>>> with lind.Sandbox() as sandbox:
...     result = sandbox.run("echo $((6 * 7))")
>>> result.stdout
'42\\n'

`AsyncSandbox` is the same for asyncio. Every error is a `LindError`.
"""

from __future__ import annotations

from ._async.denials import AsyncDenials
from ._async.files import AsyncFiles, AsyncWatch
from ._async.process import AsyncProcess
from ._async.sandbox import AsyncSandbox
from ._run import run
from ._runtime import program
from ._sync.denials import Denials
from ._sync.files import Files, Watch
from ._sync.process import Process
from ._sync.sandbox import Sandbox
from .errors import (
    CommandError,
    CommandNotStarted,
    DeniedError,
    ExistsError,
    FileError,
    IsDirectoryError,
    LindError,
    NotDirectoryError,
    NotFoundError,
    RequestError,
    SandboxError,
    TimeoutExpired,
)
from .results import Amount, Change, CommandInfo, Copied, Denial, Difference, FileInfo, Output, Policy, Result, Rule, Stats

__version__ = "0.1.0"

__all__ = [
    "Amount",
    "AsyncDenials",
    "AsyncFiles",
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncWatch",
    "Change",
    "CommandError",
    "CommandInfo",
    "CommandNotStarted",
    "Copied",
    "Denial",
    "Denials",
    "DeniedError",
    "Difference",
    "ExistsError",
    "FileError",
    "FileInfo",
    "Files",
    "IsDirectoryError",
    "LindError",
    "NotDirectoryError",
    "NotFoundError",
    "Output",
    "Policy",
    "Process",
    "RequestError",
    "Result",
    "Rule",
    "Sandbox",
    "SandboxError",
    "Stats",
    "TimeoutExpired",
    "Watch",
    "program",
    "run",
]
