"""The results of operations."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ._messages import ProtocolError, text, text_or_none
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


def _number(keys: Mapping[str, Any], key: str) -> int:
    value = keys.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProtocolError(f"{key}: expected a number, not {value!r}")
    return value


def _seconds(keys: Mapping[str, Any], key: str) -> float:
    value = keys.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProtocolError(f"{key}: expected a number, not {value!r}")
    return float(value)


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ProtocolError(f"expected an object, not {value!r}")
    return value


def read_end(value: object, stdout: bytes = b"", stderr: bytes = b"", note: object = None) -> Result:
    """The result of an `ended` event."""
    keys = _object(value)
    signal = None if keys.get("signal") is None else _number(keys, "signal")
    return Result(
        exit_code=128 + signal if signal is not None else _number(keys, "status"),
        stdout_bytes=stdout,
        stderr_bytes=stderr,
        signal=signal,
        timed_out=None if keys.get("timed_out") is None else _seconds(keys, "timed_out"),
        wall=_seconds(keys, "wall"),
        dropped=_number(keys, "dropped") if "dropped" in keys else 0,
        denied=_number(keys, "denied") if "denied" in keys else 0,
        denials=read_denials(keys.get("denials", [])),
        note=text_or_none(note),
    )


def read_output(keys: Mapping[str, Any], body: bytes) -> Output:
    """The piece of an `output` event."""
    return Output(text(keys["output"]), body, _number(keys, "at"), _number(keys, "lost") if "lost" in keys else 0)


def read_file(value: object) -> FileInfo:
    """An entry of a directory."""
    keys = _object(value)
    numbers = {key: _number(keys, key) for key in ("size", "mode", "uid", "gid", "links", "inode")}
    return FileInfo(text(keys.get("name")), text(keys.get("type")), mtime=_seconds(keys, "mtime"), target=text_or_none(keys.get("target")),
                    errno=text_or_none(keys.get("errno")), **numbers)


def read_command(value: object) -> CommandInfo:
    """An entry of the list of commands."""
    keys = _object(value)
    return CommandInfo(
        id=_number(keys, "id"),
        pid=None if keys.get("pid") is None else _number(keys, "pid"),
        line=text(keys.get("line")),
        started=_seconds(keys, "started"),
        seconds=_seconds(keys, "seconds"),
        terminal=keys.get("terminal") is True,
        detached=keys.get("detached") is True,
        output=0 if keys.get("output") is None else _number(keys, "output"),
        result=read_end(keys["ended"]) if "ended" in keys else None,
    )


def read_change(keys: Mapping[str, Any]) -> Change:
    """An event of `watch`."""
    return Change(text(keys.get("event")), text(keys.get("name")), keys.get("directory") is True)


def read_copied(keys: Mapping[str, Any]) -> Copied:
    """The end of a copy."""
    skipped = keys.get("skipped")
    names = tuple(text(name) for name in skipped) if isinstance(skipped, list) else ()
    return Copied(_number(keys, "count"), names, _number(keys, "skips") if "skips" in keys else len(names))


def read_denials(value: object) -> tuple[Denial, ...]:
    """Denials that were reported."""
    if not isinstance(value, list):
        raise ProtocolError(f"denials: expected a list, not {value!r}")
    return tuple(_denial(entry) for entry in value)


def _denial(value: object) -> Denial:
    keys = _object(value)
    message, grate, rule, program, arguments = (text(keys.get(key)) for key in ("message", "grate", "rule", "program", "arguments"))
    call, error, hint, instead = (text_or_none(keys.get(key)) for key in ("call", "error", "hint", "instead"))
    command = None if keys.get("command") is None else _number(keys, "command")
    return Denial(_number(keys, "id"), message, grate, rule, program, arguments, call, error, hint, instead, command, _seconds(keys, "time"),
                  _number(keys, "times"))


def read_questions(value: object) -> tuple[HeldCall, ...]:
    """The calls that wait."""
    if not isinstance(value, list):
        raise ProtocolError(f"questions: expected a list, not {value!r}")
    return tuple(read_question(entry) for entry in value)


def read_question(value: object) -> HeldCall:
    """A call that waits."""
    keys = _object(value)
    about, grate, rule, program, arguments = (text(keys.get(key)) for key in ("about", "grate", "rule", "program", "arguments"))
    call, hint, instead = (text_or_none(keys.get(key)) for key in ("call", "hint", "instead"))
    return HeldCall(_number(keys, "number"), _seconds(keys, "seconds"), about, grate, rule, program, _number(keys, "cage"), arguments, call, hint, instead)


def read_settled(value: object) -> tuple[int, str]:
    """The number of a call that does not wait any more, and how that ended: "yes", "no" or "late"."""
    keys = _object(value)
    return _number(keys, "number"), text(keys.get("answer"))


def read_stats(keys: Mapping[str, Any]) -> Stats:
    """The answer to `stats`."""

    def amount(name: str) -> Amount:
        parts = _object(keys.get(name))
        return Amount(*(None if parts.get(key) is None else _seconds(parts, key) for key in ("used", "peak", "limit")))

    def count(name: str, key: str) -> int | None:
        parts = _object(keys.get(name))
        return None if parts.get(key) is None else _number(parts, key)

    return Stats(
        seconds=_seconds(keys, "seconds"),
        commands=_number(keys, "commands"),
        denials=_number(keys, "denials"),
        cpu=amount("cpu"),
        memory=amount("memory"),
        processes=amount("cages"),
        threads=amount("threads"),
        open_files=amount("files"),
        disk=amount("disk"),
        resident=count("memory", "resident"),
        read=count("io", "read"),
        written=count("io", "written"),
    )


def read_policy(keys: Mapping[str, Any]) -> Policy:
    """The answer to `policy`."""
    rules, start = (keys.get(key) for key in ("rules", "start"))
    if not isinstance(rules, list) or not isinstance(start, list):
        raise ProtocolError("policy: expected rules and start")
    entries = (_object(entry) for entry in start)
    return Policy(tuple(_rule(_object(rule)) for rule in rules), tuple((text(entry.get("grate")), text(entry.get("option"))) for entry in entries))


def _rule(keys: Mapping[str, Any]) -> Rule:
    seconds = None if keys.get("seconds") is None else _seconds(keys, "seconds")
    return Rule(_number(keys, "number"), keys.get("allow") is True, text(keys.get("rule")), keys.get("once") is True, seconds)


def read_differences(printed: str) -> list[Difference]:
    """The output of `lind-boot session diff --json`."""
    return _differences(_parsed(printed), "diff")


def read_discarded(printed: str) -> list[Difference]:
    """The output of `lind-boot session discard --json`."""
    return _differences(_object(_parsed(printed)).get("discarded"), "discarded")


def read_applied(printed: str) -> Applied:
    """The output of `lind-boot session apply --json`."""
    keys = _object(_parsed(printed))
    refused = keys.get("refused")
    if not isinstance(refused, list):
        raise ProtocolError("refused: expected a list")
    refusals = tuple(Refusal(_difference(_object(entry)), text(entry.get("why"))) for entry in refused)
    return Applied(tuple(_differences(keys.get("applied"), "applied")), refusals, keys.get("finished") is True, keys.get("dry_run") is True)


def read_snapshot(printed: str) -> str:
    """The output of `lind-boot session snapshot --json` and `rollback --json`."""
    return text(_object(_parsed(printed)).get("snapshot"))


def read_sessions(printed: str) -> list[SessionInfo]:
    """The output of `lind-boot session ls --json`."""
    entries = _parsed(printed)
    if not isinstance(entries, list):
        raise ProtocolError("sessions: expected a list")
    return [_session(_object(entry)) for entry in entries]


def _session(keys: Mapping[str, Any]) -> SessionInfo:
    commands = keys.get("commands")
    count = len(commands) if isinstance(commands, list) else 0
    return SessionInfo(text(keys.get("name")), _number(keys, "pid"), _seconds(keys, "seconds"), count, text(keys.get("socket")))


def _parsed(printed: str) -> object:
    try:
        return json.loads(printed)
    except ValueError as why:
        raise ProtocolError(f"lind-boot does not print JSON: {why}") from None


def _differences(entries: object, what: str) -> list[Difference]:
    if not isinstance(entries, list):
        raise ProtocolError(f"{what}: expected a list")
    return [_difference(_object(entry)) for entry in entries]


def _difference(keys: Mapping[str, Any]) -> Difference:
    mode = text_or_none(keys.get("mode"))
    return Difference(
        kind=text(keys.get("kind")),
        path=_path(keys, "path") or "",
        type=text(keys.get("type")),
        from_path=_path(keys, "from"),
        size=_number(keys, "size") if "size" in keys else None,
        mode=None if mode is None else int(mode, 8),
        changed_below=keys.get("changed_below") is True,
    )


def _path(keys: Mapping[str, Any], key: str) -> str | None:
    """A path, of which there are the bytes too if it is not UTF-8."""
    raw = text_or_none(keys.get(f"{key}_bytes"))
    return text_or_none(keys.get(key)) if raw is None else os.fsdecode(bytes.fromhex(raw))
