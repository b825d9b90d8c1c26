"""The tool that says what commands may do, and what was denied to them."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

from mcp.server.mcpserver import Context

import lind
from lind._deadline import Deadline
from lind._images import find
from lind._options import Options

from .asking import Asking, has_user
from .display import name
from .files import failed
from .results import Denied, Rules

# How many denials a result has.
DENIALS = 20


class Explain:
    """The tool. `options` are those of the sandbox."""

    def __init__(self, sandbox: lind.AsyncSandbox, options: Options, asking: Asking) -> None:
        self._sandbox = sandbox
        self._options = options
        self._asking = asking
        self._start: tuple[list[str], list[str]] | None = None

    async def explain(self, ctx: Context[Any, Any]) -> Rules:
        """Says what commands may do without running one: the directories that they see, and the rules. Lists the calls that were denied last, what a
        command can do instead, and the option of the server by which the user would allow each."""
        try:
            if self._start is None:
                self._start = await asyncio.to_thread(describe, self._options)
            policy = await self._sandbox.policy()
            denials = await self._sandbox.denials()
        except (lind.LindError, OSError, ValueError) as why:
            raise failed(why) from why
        volumes, rules = self._start
        added = [f"{'allow' if rule.allow else 'deny'} {name(rule.rule)}" + (" (once)" if rule.once else "") for rule in policy.rules]
        return Rules(volumes=volumes, rules=rules, added=added, asks=self._asking.is_on and has_user(ctx),
                     denials=[Denied.of(denial) for denial in reversed(denials[-DENIALS:])], waiting=self._asking.waiting())


def describe(options: Options) -> tuple[list[str], list[str]]:
    """The volumes and the rules of a sandbox, in the words of `lind-boot run --explain`."""
    deadline = Deadline(options.start_timeout)
    try:
        image = find(options.image, deadline)
        words = [str(lind.program()), "run", "--explain", "--json", *([f"--image={image}"] if image else []), *options.words(), "--", "bash"]
        done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=deadline.left())
    except (TimeoutError, subprocess.TimeoutExpired):
        raise lind.SandboxError(f"lind-boot run --explain: no answer within {options.start_timeout:g} seconds") from None
    if done.returncode:
        raise lind.SandboxError(f"lind-boot run --explain: {done.stderr.strip()}")
    about = json.loads(done.stdout)
    volumes = []
    for volume in about["volumes"]:
        how = "overlay: changes stay beside it" if volume["overlay"] else "read-only" if volume["read_only"] else "changes go to it at once"
        volumes.append(name(f"{volume['host']} as {volume['guest']}, {how}"))
    return volumes, [name(str(rule)) for rule in about["rules"]]
