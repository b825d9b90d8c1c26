"""The results of operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone

from .errors import shown

__all__ = ["Amount", "Applied", "Change", "CommandInfo", "Copied", "Denial", "Difference", "FileInfo", "HeldCall", "Output", "Policy", "Refusal", "Result", "Rule", "SessionInfo", "Stats"]


@dataclass(frozen=True)
class Denial:
    """A call that was denied.

    `message` is the line that the command got on its standard error. `arguments` says what was asked for, `rule` why it was denied, `hint` which option
    would allow it, and `instead` what the command can do. `command` is the number of the command, `times` how often the same call was denied within a
    second. `error` is None if the programs were killed instead, as for a limit. Names in the texts are of the guest's making.
    """

    id: int
    message: str
    grate: str
    rule: str
    program: str
    arguments: str
    call: str | None = None
    error: str | None = None
    hint: str | None = None
    instead: str | None = None
    command: int | None = None
    time: float = 0.0
    times: int = 1

    def __str__(self) -> str:
        return self.message

    @property
    def limit(self) -> str | None:
        """The name of the limit that was reached, if it is one."""
        return self.rule.removeprefix("limit ") if self.rule.startswith("limit ") else None


@dataclass(frozen=True)
class HeldCall:
    """A call that waits until somebody says whether it is denied.

    `about` is what an answer is about: a path, or the host and port. `arguments`, `rule`, `hint` and `instead` are as in a `Denial`. `pid` is the number
    of the process in the sandbox. `seconds` are those that were left when this was said. Names are of the guest's making; `str` escapes them.
    """

    number: int
    seconds: float
    about: str
    grate: str
    rule: str
    program: str
    pid: int
    arguments: str
    call: str | None = None
    hint: str | None = None
    instead: str | None = None

    def __str__(self) -> str:
        about = "" if self.arguments.endswith(self.about) else f" ({self.about})"
        return shown(f"{self.program} ({self.pid}): {self.arguments}{about}: {self.rule}")


@dataclass(frozen=True)
class Result:
    """How a command has ended, and what it has written.

    `exit_code` is the exit status, or 128 + n if signal n ended the command. `wall` is how many seconds it ran. `timed_out` are the seconds of the
    timeout, if it was killed for that. `dropped` is how many bytes were written beyond `max_output`. `denied` is how many calls were denied, and
    `denials` are the first of them.
    """

    exit_code: int
    stdout_bytes: bytes = field(default=b"", repr=False)
    stderr_bytes: bytes = field(default=b"", repr=False)
    signal: int | None = None
    timed_out: float | None = None
    wall: float = 0.0
    dropped: int = 0
    denied: int = 0
    denials: tuple[Denial, ...] = ()
    note: str | None = None

    @property
    def limit(self) -> str | None:
        """The limit that has ended the command, if one has: "timeout", "cpu" and so on."""
        if self.timed_out is not None:
            return "timeout"
        killed = (denial.limit for denial in self.denials if denial.error is None)
        return next(killed, None) if not self.ok else None

    @property
    def stdout(self) -> str:
        """The standard output as text, or what was shown on the terminal. Bytes that are not UTF-8 become U+FFFD."""
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        """The standard error as text."""
        return self.stderr_bytes.decode(errors="replace")

    @property
    def ok(self) -> bool:
        """Whether the exit status is 0."""
        return self.exit_code == 0


@dataclass(frozen=True)
class Output:
    """A piece of output. `stream` is "stdout", "stderr" or "terminal", `lost` how many bytes before it are not kept any more."""

    stream: str
    data: bytes
    at: int = 0
    lost: int = 0

    @property
    def text(self) -> str:
        """The piece as text. A character that is cut at its end becomes U+FFFD: join the data of pieces first where that matters."""
        return self.data.decode(errors="replace")


@dataclass(frozen=True)
class FileInfo:
    """A file of a sandbox. `type` is "file", "directory", "link", "fifo", "socket", "character device" or "block device"."""

    name: str
    type: str
    size: int
    mode: int
    mtime: float
    uid: int
    gid: int
    links: int
    inode: int
    target: str | None = None
    errno: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.type == "file"

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.type == "directory"

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.type == "link"

    @property
    def modified(self) -> datetime:
        """When it was changed last."""
        return datetime.fromtimestamp(self.mtime, timezone.utc)


@dataclass(frozen=True)
class CommandInfo:
    """A command of a sandbox that runs, or has ended not long ago."""

    id: int
    pid: int | None
    line: str
    started: float
    seconds: float
    terminal: bool
    detached: bool
    output: int
    result: Result | None = None


@dataclass(frozen=True)
class Change:
    """A change in a directory that is watched. `kind` is "created", "removed", "modified", "written", "attributes", "moved_from", "moved_to", or
    "overflow" where changes were lost."""

    kind: str
    name: str
    is_dir: bool


@dataclass(frozen=True)
class Copied:
    """A copy: how many files it has, and the names of those that were left out, since they are devices, sockets or FIFOs; the first hundred."""

    count: int
    skipped: tuple[str, ...] = ()
    skips: int = 0


@dataclass(frozen=True)
class Amount:
    """How much is used of something, the most that was, and its limit. None is what is not known: an amount without a limit is mostly not counted."""

    used: float | None = None
    peak: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class Stats:
    """The amounts that a sandbox uses. Sizes are bytes, times seconds; `resident` is the host's memory, `read` and `written` are bytes from and to disks."""

    seconds: float
    commands: int
    denials: int
    cpu: Amount
    memory: Amount
    processes: Amount
    threads: Amount
    open_files: Amount
    disk: Amount
    resident: int | None = None
    read: int | None = None
    written: int | None = None


@dataclass(frozen=True)
class Difference:
    """A change in an overlay. `kind` is "A" for an added file, "M", "D", or "R" for one that was renamed `from_path`. `path` is below the directory.
    `changed_below` is whether the directory's own file has changed meanwhile, so that `apply` refuses it."""

    kind: str
    path: str
    type: str
    from_path: str | None = None
    size: int | None = None
    mode: int | None = None
    changed_below: bool = False


@dataclass(frozen=True)
class Refusal:
    """A change that is not applied, or not all of it, and why."""

    change: Difference
    why: str


@dataclass(frozen=True)
class Applied:
    """The result of `apply`: the changes that are in the directory now, or would be with `dry_run`, and those that are not. `finished` is whether all
    that was begun has come to its end; otherwise the next `apply` goes on."""

    changes: tuple[Difference, ...] = ()
    refused: tuple[Refusal, ...] = ()
    finished: bool = True
    dry_run: bool = False


@dataclass(frozen=True)
class SessionInfo:
    """A session that runs: its name, for `Sandbox.connect`, its process, how long it has been up, and how many commands run in it."""

    name: str
    pid: int
    seconds: float
    commands: int
    socket: str = field(repr=False)


@dataclass(frozen=True)
class Rule:
    """A rule that was added while the sandbox runs. `once` is whether its one use is left, `seconds` how long it holds still, or None."""

    number: int
    allow: bool
    rule: str
    once: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class Policy:
    """The rules that were added, the newest first, and the options that the grates were started with, as pairs of a grate and an option."""

    rules: tuple[Rule, ...] = ()
    start: tuple[tuple[str, str], ...] = ()
