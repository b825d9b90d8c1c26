"""A sandbox as a tool of LangChain: a shell.

    with lind.Sandbox(volumes={".": "overlay"}) as sandbox:
        agent = create_agent(model=..., tools=[LindShell(sandbox=sandbox)])

A call of the tool:

>>> import lind
>>> with lind.Sandbox() as sandbox:
...     said = LindShell(sandbox=sandbox).invoke({"command": "echo hello; exit 3"})
>>> said
'hello\\n[exit status 3]'
"""

from __future__ import annotations

from typing import Literal

from langchain_core.tools import ArgsSchema, BaseTool
from pydantic import BaseModel, ConfigDict, Field

import lind

from ._shown import SHOWN, Shown

__all__ = ["LindShell"]


class Command(BaseModel):
    """The arguments, for the model."""

    command: str = Field(description="The command, for bash")
    timeout: float | None = Field(default=None, gt=0, description="Seconds after which the command is ended")


class LindShell(BaseTool):
    """Runs commands in a sandbox, which the caller opens and closes.

    The model gets what a command has written, and how it has ended. The artifact of the message is the `lind.Result`, or the exception if the
    command ran out of time or did not start.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str = "shell"
    description: str = (
        "Runs a command by bash in a sandbox, and returns its output. Files that it leaves are there for the next command; variables and the "
        "current directory are not."
    )
    args_schema: ArgsSchema | None = Command
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    sandbox: lind.Sandbox = Field(exclude=True)
    timeout: float | None = 600
    """The seconds for commands that name no timeout, and the most that one can name."""
    max_output: int = SHOWN
    """How many bytes of output the model gets; of more it gets the beginning and the end."""

    def _run(self, command: str, timeout: float | None = None) -> tuple[str, lind.Result | lind.LindError]:
        shown = Shown(self.max_output)
        seconds = min(filter(None, (timeout, self.timeout)), default=None)
        end: lind.Result | lind.TimeoutExpired | lind.CommandNotStarted
        try:
            end = self.sandbox.run(command, timeout=seconds, max_output=None, on_stdout=shown.add, on_stderr=shown.add)
        except (lind.TimeoutExpired, lind.CommandNotStarted) as why:
            end = why
        return shown.text(end), end
