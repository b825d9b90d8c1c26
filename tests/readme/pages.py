"""The commands that a page has its reader type, in their order, with the output that the page shows.

A command is a line of an indented block, or of a fenced one without a language or with `sh`. A
block in which lines begin with `$ ` has commands there, and below each what it prints; in any other
each line is a command. Comments in front of a block, which readers do not see, say otherwise:

    <!-- not run: REASON -->     the block is not typed
    <!-- needs: WORD... -->      the block is typed only where all of these are there: a program of the image, `network`,
                                 `docker`, `rust`, or `time`, which only `make readme-test` has
    <!-- given: COMMANDS -->     what a reader has already, such as a project: typed before, and not by readers
    <!-- file: NAME -->          the block is this file, which the reader writes

A fenced block below a line that ends with a name in backquotes and a colon is that file too, and so is what `$ cat NAME`
shows where no such file is there.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

MARK = re.compile(r"<!-- (not run|needs|given|file): (.*?) ?-->", re.DOTALL)
NAMED = re.compile(r"`([\w.-]+\.\w+)`:\s*$")
# The parts of an output that differ each time: process numbers, times, sizes, hashes.
VARIES = r"\(\d+\)|\b[0-9a-f]{16,}\b|\d+\.\d+|\d{5,}|\d+ m?s\b"
ITEM = re.compile(r"\s*([-*]|\d+\.)\s")


@dataclasses.dataclass
class Command:
    """A command, where it stands, and what the page shows of its output."""

    line: int
    text: str
    shown: str = ""
    needs: tuple[str, ...] = ()
    given: bool = False


@dataclasses.dataclass
class Block:
    """Lines that are no prose, and the marks in front of them."""

    line: int
    language: str
    lines: list[str]
    marks: dict[str, str]


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page."""
    lines = ["", *text.splitlines()]
    marks: dict[str, str] = {}
    number, prose, item = 1, "", False
    while number < len(lines):
        line, end = lines[number], number + 1
        if line.startswith("```"):
            end = next(i for i in range(end, len(lines)) if lines[i].startswith("```")) + 1
            named = NAMED.search(prose)
            yield Block(number + 1, line[3:].strip(), lines[number + 1:end - 1], ({"file": named[1]} if named else {}) | marks)
            marks = {}
        elif line.startswith("<!--"):
            end = next(i for i in range(number, len(lines)) if "-->" in lines[i]) + 1
            found = dict(MARK.findall("\n".join(lines[number:end])))
            if "given" in found:
                yield Block(number, "given", [found.pop("given")], marks)
            marks |= found
        elif line.startswith("    ") and not lines[number - 1].strip() and not item:
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield Block(number, "", textwrap.dedent("\n".join(lines[number:end])).rstrip().splitlines(), marks)
            marks = {}
        elif line.strip():
            # Within a list an indented line is a paragraph.
            item = bool(ITEM.match(line)) or item and (line.startswith(" ") or bool(lines[number - 1].strip()))
            prose, marks = line, {}
        number = end


def open_ended(text: str) -> bool:
    """Whether a shell would ask for another line: a here-document, a quote or a backslash at the end."""
    document = re.search(r"<<-?\s*'?(\w+)'?", text)
    if document:
        return not re.search(rf"^\s*{document[1]}$", text, re.MULTILINE)
    bare = re.sub(r"'[^']*'|\"(?:\\.|[^\"])*\"|(?<!\S)#.*|\\.", "", text)
    return text.endswith("\\") or "'" in bare or '"' in bare


def typed(block: Block) -> Iterator[Command]:
    """The commands of a block."""
    prompts = any(line.startswith("$ ") for line in block.lines)
    command: Command | None = None
    for number, line in enumerate(block.lines, block.line):
        if command and open_ended(command.text):
            command.text += f"\n{line}"
        elif line.startswith("$ ") or not prompts:
            if command:
                yield command
            command = Command(number, line.removeprefix("$ ")) if line.strip() else None
        elif command:
            command.shown += f"{line}\n"
        elif line.strip():
            raise ValueError(f"line {number}: a block with `$ ` begins with it: {line}")
    if command:
        yield command


def commands(page: Path) -> Iterator[Command]:
    """The commands of a page in their order, and files as commands that write them."""
    for block in blocks(page.read_text()):
        needs = tuple(block.marks.get("needs", "").split())
        if block.language == "given":
            yield Command(block.line, block.lines[0], needs=needs, given=True)
        elif "file" in block.marks:
            yield Command(block.line, written(block.marks["file"], block.lines), needs=needs, given=True)
        elif "not run" not in block.marks and block.language in ("", "sh", "console"):
            for command in typed(block):
                yield dataclasses.replace(command, text=shown_file(command), needs=needs)


def written(name: str, lines: list[str]) -> str:
    """A command that writes a file."""
    return "\n".join([f"cat >{name} <<'END OF FILE'", *lines, "END OF FILE"])


def shown_file(command: Command) -> str:
    """`cat NAME` shows a file that the reader writes."""
    cat = re.fullmatch(r"cat ([\w.-]+)", command.text)
    return f"[ -e {cat[1]} ] || {written(cat[1], command.shown.splitlines())}\n{command.text}" if cat else command.text


def agree(shown: str, printed: str) -> bool:
    """Whether a command printed what the page shows: `...` is anything, lines may be broken elsewhere, and what is different
    each time may be."""
    parts = re.split(rf"(\.\.\.|{VARIES})", " ".join(shown.split()))
    pattern = "".join(kind(part) if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return re.fullmatch(pattern, " ".join(printed.split())) is not None


def kind(part: str) -> str:
    """A pattern for what varies."""
    return ".*" if part == "..." else rf"(?:{VARIES})"
