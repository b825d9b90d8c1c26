"""The tools for what commands have changed in an overlay."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Annotated

import anyio
from mcp_types import CallToolResult, TextContent
from pydantic import Field

import lind

from .display import decoded, lines, name
from .files import failed
from .results import Changed, Changes, Done

# How many changes a result has.
SHOWN = 1000
# Changes of a large tree take their time.
SECONDS = 600.0

Paths = Annotated[list[str] | None, Field(description="Files or directories, below the directory; all changes if there are none")]
Volume = Annotated[str, Field(description="The user's directory, if there are several overlays")]
Label = Annotated[str, Field(min_length=1, max_length=100)]


class Overlay:
    """The tools."""

    def __init__(self, sandbox: lind.AsyncSandbox, most: int) -> None:
        self._sandbox = sandbox
        self._most = most

    async def diff(self, paths: Paths = None, volume: Volume = "") -> Annotated[CallToolResult, Changes]:
        """Shows the changes that are in the overlay, and not in the user's directory yet: a list, and a patch as git writes it."""
        try:
            found = await self._sandbox.diff(paths or (), volume=volume or None, timeout=SECONDS)
            patch, left_out = await self._patch(paths or [], volume) if found else ("", 0)
        except (lind.LindError, OSError, ValueError) as why:
            raise failed(why) from why
        listed = [Changed(kind=one.kind, path=name(one.path), from_path=None if one.from_path is None else name(one.from_path), type=one.type,
                          changed_below=one.changed_below) for one in found[:SHOWN]]
        changes = Changes(changes=listed, patch=patch, left_out=left_out, more=len(found) > SHOWN)
        said = [f"{one.kind} {one.path}" + (f" (was {one.from_path})" if one.from_path else "") for one in listed] or ["no changes"]
        said += ["[there are more]"] if changes.more else []
        said += ["", patch] if patch else []
        said += [f"[{left_out} bytes and perhaps more of the patch are left out]"] if left_out else []
        return CallToolResult(content=[TextContent(type="text", text="\n".join(said))], structured_content=changes.model_dump(mode="json"))

    async def apply(
        self,
        paths: Paths = None,
        force: Annotated[bool, Field(description="Also where the directory's own files have changed meanwhile: the work of others there is lost")] = False,
        volume: Volume = "",
    ) -> Done:
        """Makes the changes in the user's directory itself. It cannot be undone."""
        try:
            await self._sandbox.apply(paths or (), force=force, volume=volume or None, timeout=SECONDS)
        except (lind.LindError, OSError, ValueError) as why:
            raise failed(why) from why
        return Done(done=f"applied {_named(paths)}")

    async def discard(self, paths: Paths = None, volume: Volume = "") -> Done:
        """Throws changes away: the sandbox shows the user's files again. It cannot be undone."""
        try:
            await self._sandbox.discard(paths or (), volume=volume or None, timeout=SECONDS)
        except (lind.LindError, OSError, ValueError) as why:
            raise failed(why) from why
        return Done(done=f"discarded {_named(paths)}")

    async def snapshot(self, label: Label, volume: Volume = "") -> Done:
        """Keeps the present state of the overlay under a name, for rollback."""
        try:
            await self._sandbox.snapshot(label, volume=volume or None, timeout=SECONDS)
        except (lind.LindError, OSError, ValueError) as why:
            raise failed(why) from why
        return Done(done=f"kept {name(label)}")

    async def rollback(self, label: Label, volume: Volume = "") -> Done:
        """Brings the overlay back to a state that snapshot has kept. Later changes are lost; the user's directory stays as it is."""
        try:
            await self._sandbox.rollback(label, volume=volume or None, timeout=SECONDS)
        except (lind.LindError, OSError, ValueError) as why:
            raise failed(why) from why
        return Done(done=f"rolled back to {name(label)}")

    async def _patch(self, paths: Sequence[str], volume: str) -> tuple[str, int]:
        """The beginning of the patch, and how many bytes are left out of what was read. The rest of a long one is not read at all."""
        words = [os.fspath(lind.program()), "session", "diff", "--patch", *([f"--volume={os.path.abspath(volume)}"] if volume else []), "--", self._sandbox.name, *paths]
        process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL)
        assert process.stdout is not None
        try:
            data = bytearray()
            with anyio.fail_after(SECONDS):
                while len(data) <= self._most and (piece := await process.stdout.read(64 << 10)):
                    data += piece
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
        return lines(decoded(bytes(data[: self._most]), True)[0]), max(len(data) - self._most, 0)


def _named(paths: Sequence[str] | None) -> str:
    return ", ".join(name(path) for path in paths) if paths else "all changes"
