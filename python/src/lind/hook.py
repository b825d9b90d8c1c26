#!/usr/bin/env python3
"""A PreToolUse hook for Claude Code: its Bash tool runs each command in the sandbox of the project, by lind-sh.

Reads the hook's JSON from standard input and prints the same tool input with another command. A command that it cannot rewrite is refused (status 2).
This file needs nothing else of the package and can be copied.

    lind hook [--ask] [--shell FILE]
    hook.py [--ask] [--shell FILE]

--ask leaves the user's permission to the rules of Claude Code; without it the command, which the sandbox confines, runs without a question.
--shell names lind-sh if it is not in PATH.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any


class Refused(Exception):
    """The command cannot be rewritten."""


def rewritten(event: Any, shell: str, ask: bool) -> dict[str, Any]:
    """The answer to an event."""
    given = event.get("tool_input") if isinstance(event, dict) and event.get("tool_name") == "Bash" else None
    if not isinstance(given, dict) or not isinstance(command := given.get("command"), str):
        raise Refused("expected an event of the tool Bash with a command")
    if "\0" in command:
        raise Refused("the command has a NUL byte")
    # Each word is quoted whole, so that nothing of the command is for the shell outside.
    answer: dict[str, Any] = {"hookEventName": "PreToolUse", "updatedInput": given | {"command": shlex.join([shell, "-c", "--", command])}}
    answer["permissionDecision"] = "ask" if ask else "allow"
    answer["permissionDecisionReason"] = "runs in the sandbox of the project (lind-sh)"
    return {"hookSpecificOutput": answer}


def main(words: Sequence[str] | None = None) -> int:
    """Rewrites the event of standard input."""
    parser = argparse.ArgumentParser(description="A PreToolUse hook: runs the commands of Claude Code's Bash tool by lind-sh.")
    parser.add_argument("--ask", action="store_true", help="leave the permission to the user")
    parser.add_argument("--shell", default="lind-sh", help="the file of lind-sh [default: lind-sh of PATH]")
    options = parser.parse_args(words)
    try:
        answer = rewritten(json.load(sys.stdin), options.shell, options.ask)
    except (Refused, ValueError, RecursionError) as why:
        print(f"lind hook: the command is refused: {why}", file=sys.stderr)
        return 2
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
