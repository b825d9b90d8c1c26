"""The tools for files. All of them see and change files as a command would: the policy holds for them, and no link leads out of the sandbox."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import Field

import lind

from .display import decoded, lines, name
from .results import Entry, Found, Listing, Match, Text, Wrote

# How many entries and matches a result has, and how many entries are looked at for it.
ENTRIES, LOOKED_AT, MATCHES = 1000, 50_000, 200
LINE = 300
# A search ends after so many seconds, and after so many bytes that the program for it has written.
SECONDS, WRITTEN = 60.0, 8 << 20
# The pattern is a variable, since find replaces {} in arguments. Regular files alone are read: a
# FIFO or a device would not end, and links lead out of the tree.
SEARCH = """
grep "$1" -q -e "$LIND_PATTERN" </dev/null
case $? in 0|1) ;; 2) exit 3 ;; *) exit 4 ;; esac
find -H "$2" -name .git -prune -o -type f -exec sh -c 'exec grep "$0" -nHs -e "$LIND_PATTERN" -- "$@"' "$1" {} + 2>/dev/null
[ $? -le 1 ] || exit 4
"""
MATCH = re.compile(rb"(.+?):(\d+):(.*)")

InSandbox = Annotated[str, Field(min_length=1, description="A path in the sandbox; relative ones are below its working directory")]


class Files:
    """The tools."""

    def __init__(self, sandbox: lind.AsyncSandbox, most: int) -> None:
        self._sandbox = sandbox
        self._most = most

    async def read_file(
        self,
        path: InSandbox,
        start: Annotated[int, Field(ge=0, description="The first byte")] = 0,
        count: Annotated[int, Field(ge=0, description="How many bytes; 0: as many as a result may have")] = 0,
    ) -> Annotated[CallToolResult, Text]:
        """Reads a file, or a part of one. The content is as it is in the file, control characters too; bytes that are not UTF-8 come as base64."""
        wanted = min(count or self._most, self._most)
        try:
            size = (await self._sandbox.files.stat(path)).size
            data = await self._sandbox.files.read(path, start=start, count=wanted)
        except (lind.LindError, OSError) as why:
            raise failed(why) from why
        more = len(data) == wanted and start + wanted < size
        _, rest = decoded(data, not more)
        whole = data[: len(data) - rest] or data
        try:
            content, encoding = whole.decode(), "utf-8"
        except UnicodeDecodeError:
            content, encoding = base64.b64encode(whole).decode(), "base64"
        text = Text(path=name(path), content=content, encoding=encoding, size=size, start=start, more=more, next=start + len(whole))
        said = content + (f"\n[there is more: read on from {text.next} of {size} bytes]" if more else "")
        return CallToolResult(content=[TextContent(type="text", text=said)], structured_content=text.model_dump(mode="json"))

    async def write_file(
        self,
        path: InSandbox,
        content: str,
        encoding: Literal["utf-8", "base64"] = "utf-8",
        create: Annotated[bool, Field(description="Fail if the file is there")] = False,
    ) -> Wrote:
        """Writes a whole file, and makes the directories on the way. In an overlay it is a change that the user's directory does not have yet."""
        try:
            data = content.encode() if encoding == "utf-8" else base64.b64decode(content, validate=True)
            await self._sandbox.files.write(path, data, parents=True, create=create)
        except (lind.LindError, OSError, UnicodeEncodeError, binascii.Error) as why:
            raise failed(why) from why
        return Wrote(path=name(path), size=len(data))

    async def list_files(
        self,
        path: InSandbox = ".",
        depth: Annotated[int, Field(ge=1, le=64, description="1: the directory alone; more: so many levels")] = 1,
    ) -> Listing:
        """Lists a directory, up to 1000 files. Symbolic links are not followed."""
        try:
            found = await self._sandbox.files.list(path, recursive=depth > 1, depth=depth if depth > 1 else None, count=LOOKED_AT)
        except (lind.LindError, OSError) as why:
            raise failed(why) from why
        found.sort(key=lambda file: file.name)
        entries = [Entry(path=name(file.name), type=file.type, size=file.size, target=None if file.target is None else name(file.target)) for file in found[:ENTRIES]]
        return Listing(path=name(path), entries=entries, more=len(found) > ENTRIES)

    async def search_files(
        self,
        pattern: Annotated[str, Field(min_length=1, description="An extended regular expression, as for grep -E")],
        path: InSandbox = ".",
        literal: Annotated[bool, Field(description="The pattern is a text, not an expression")] = False,
    ) -> Found:
        """Searches files for lines that match, by grep in the sandbox, up to 200 lines. Directories that begin with . are searched too, but .git is left out."""
        # Neither an option nor an expression of find.
        added = b"" if path[0].isalnum() or path[0] in "./" else b"./"
        words = ["sh", "-c", SEARCH, "sh", "-F" if literal else "-E", added.decode() + path]
        matches: list[Match] = []
        more, rest, written = False, b"", 0
        try:
            await self._sandbox.files.stat(path)
            async with await self._sandbox.start(words, timeout=SECONDS, stdin=False, env={"LIND_PATTERN": pattern}) as process:
                async for piece in process:
                    written += len(piece.data)
                    if piece.stream == "stderr":
                        continue
                    *whole, rest = (rest + piece.data).split(b"\n")
                    matches += [match for line in whole if (match := _match(line.removeprefix(added))) is not None]
                    more = len(matches) > MATCHES or written > WRITTEN
                    if more:
                        break
                    rest = rest[: LINE * 16]
                status = 0 if more or process.result is None else process.result.exit_code
        except (lind.LindError, OSError) as why:
            raise failed(why) from why
        if status == 3:
            raise ToolError("the pattern is not an extended regular expression: with `literal` it is a text")
        if status:
            raise ToolError(f"the search has failed with status {status}: are sh, find and grep in the sandbox?")
        return Found(matches=matches[:MATCHES], more=more)


def _match(line: bytes) -> Match | None:
    parts = MATCH.fullmatch(line)
    if parts is None or b"/.git/" in parts[1] or parts[1].startswith(b".git/"):
        return None
    return Match(path=name(parts[1].decode(errors="replace")), line=int(parts[2][:9]), text=lines(parts[3][: LINE * 4].decode(errors="replace"))[:LINE])


def failed(why: Exception) -> ToolError:
    """The error as the model learns of it."""
    if isinstance(why, lind.FileError) and why.filename is not None:
        return ToolError(f"{name(str(why.filename))}: {name(str(why.strerror))}")
    return ToolError(name(str(why)))
