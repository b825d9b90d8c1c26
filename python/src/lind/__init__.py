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
from ._async.questions import AsyncQuestion, AsyncQuestions
from ._async.sandbox import AsyncSandbox
from ._async.session import sessions as async_sessions
from ._run import run
from ._runtime import program
from ._sync.denials import Denials
from ._sync.files import Files, Watch
from ._sync.process import Process
from ._sync.questions import Question, Questions
from ._sync.sandbox import Sandbox
from ._sync.session import sessions
from .errors import (
    ApplyError,
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
from .results import (
    Amount,
    Applied,
    Change,
    CommandInfo,
    Copied,
    Denial,
    Difference,
    FileInfo,
    HeldCall,
    Output,
    Policy,
    Refusal,
    Result,
    Rule,
    SessionInfo,
    Stats,
)

__version__ = "0.1.0"

__all__ = [
    "Amount",
    "Applied",
    "ApplyError",
    "AsyncDenials",
    "AsyncFiles",
    "AsyncProcess",
    "AsyncQuestion",
    "AsyncQuestions",
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
    "HeldCall",
    "IsDirectoryError",
    "LindError",
    "NotDirectoryError",
    "NotFoundError",
    "Output",
    "Policy",
    "Process",
    "Question",
    "Questions",
    "Refusal",
    "RequestError",
    "Result",
    "Rule",
    "Sandbox",
    "SandboxError",
    "SessionInfo",
    "Stats",
    "TimeoutExpired",
    "Watch",
    "async_sessions",
    "program",
    "run",
    "sessions",
]
