"""The results of tools. Their fields are the output schemas that clients see.

Names, and what commands write, are of the guest's making. Control characters in them are escaped, so that a client may print them.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from lind import Denial, HeldCall, Result

from .display import name


class Denied(BaseModel):
    """A call that was denied to a command."""

    what: str = Field(description="The call that was denied, such as: connect tcp 192.0.2.1:443")
    why: str = Field(description="The rule that has denied it")
    program: str
    instead: str | None = Field(default=None, description="The work-around for the command")
    to_allow: str | None = Field(default=None, description="The option of the server that would allow it. The user has to give it")
    times: int = 1

    @classmethod
    def of(cls, denial: Denial) -> Denied:
        """The denial, fit for display."""
        return cls(what=name(denial.arguments), why=name(denial.rule), program=name(denial.program), instead=maybe(denial.instead),
                   to_allow=maybe(denial.hint), times=denial.times)


class Waiting(BaseModel):
    """A call that waits until the user allows or denies it."""

    what: str
    why: str
    program: str
    seconds: float = Field(description="The seconds that are left for an answer")

    @classmethod
    def of(cls, call: HeldCall, seconds: float) -> Waiting:
        """The call, fit for display."""
        return cls(what=name(call.arguments), why=name(call.rule), program=name(call.program), seconds=round(max(seconds, 0.0), 1))


class Ran(BaseModel):
    """A command that runs or has ended, and what it has written."""

    id: int = Field(description="The number of the command, for poll and kill")
    running: bool
    exit_code: int | None = Field(default=None, description="The exit status, 128 + n if signal n ended it; null while it runs")
    output: str = Field(description="Standard output and error, in the order in which they came")
    next: int = Field(description="How many bytes were written so far: start for the next poll")
    left_out: int = Field(default=0, description="How many bytes are left out in the middle of output, since there were too many")
    seconds: float = Field(description="How long it has run, without the time in which it waited for the user")
    ended_by: str | None = Field(default=None, description="timeout, killed, the signal, or the limit that has ended it")
    note: str | None = None
    denials: list[Denied] = Field(default_factory=list)
    waiting: list[Waiting] = Field(default_factory=list, description="Calls that wait for an answer of the user")


class Text(BaseModel):
    """A part of a file."""

    path: str
    content: str = Field(description="The text, or base64 where encoding says so")
    encoding: str = Field(description="utf-8 or base64")
    size: int = Field(description="The bytes of the whole file")
    start: int
    more: bool = Field(description="Whether there is more behind it: read on from next")
    next: int


class Wrote(BaseModel):
    """A file that was written."""

    path: str
    size: int


class Entry(BaseModel):
    """A file in a directory."""

    path: str
    type: str
    size: int
    target: str | None = Field(default=None, description="Where a symbolic link leads")


class Listing(BaseModel):
    """The files of a directory."""

    path: str
    entries: list[Entry]
    more: bool = Field(description="Whether there are others, which are left out")


class Match(BaseModel):
    """A line that matches."""

    path: str
    line: int
    text: str


class Found(BaseModel):
    """The lines that match."""

    matches: list[Match]
    more: bool = Field(description="Whether there are others, which are left out")


class Changed(BaseModel):
    """A change in the overlay."""

    kind: str = Field(description="A for added, M for changed, D for removed, R for renamed")
    path: str
    from_path: str | None = None
    type: str
    changed_below: bool = Field(default=False, description="The directory's own file has changed meanwhile, so apply refuses it")


class Changes(BaseModel):
    """The changes that are not in the user's directory yet."""

    changes: list[Changed]
    patch: str = Field(description="The changes as git writes them, up to the limit of output")
    left_out: int = Field(default=0, description="How many bytes of the patch are left out")
    more: bool = Field(default=False, description="Whether there are changes that the list leaves out")


class Done(BaseModel):
    """The end of an operation."""

    done: str


class Rules(BaseModel):
    """The rules for commands, and the calls that were denied to them."""

    volumes: list[str] = Field(description="The directories of the user that commands see, and how")
    rules: list[str] = Field(description="The rules with which the sandbox was started")
    added: list[str] = Field(description="The rules that were added since, the newest first")
    asks: bool = Field(description="Whether the user is asked about a call that would be denied")
    denials: list[Denied] = Field(description="The calls that were denied last, the newest first")
    waiting: list[Waiting] = Field(default_factory=list)


def ended_by(result: Result) -> str | None:
    """The signal or the limit that has ended a command, if one has."""
    if result.limit is not None:
        return name(result.limit)
    return f"signal {result.signal}" if result.signal is not None else None


def maybe(text: str | None) -> str | None:
    """The same, where there is one."""
    return None if text is None else name(text)
