"""Results of operations, read from what lind-boot says."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ._messages import ProtocolError, text, text_or_none
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
