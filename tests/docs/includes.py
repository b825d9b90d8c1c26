"""That files of a grate know each other one way: what a file needs does not need that file. Used by `run`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^#include "(\w+)\.h"', re.MULTILINE)
DECLARED = re.compile(r"\b(\w+)\([^()]*(?:\([^()]*\)[^()]*)*\);|^extern [^;({]*?\b(\w+)(?:\[\w*\])*;", re.MULTILINE)
DEFINED = re.compile(r"^(?!static|typedef|#)[\w *]+?\b(\w+)\([^;{]*\)\n\{", re.MULTILINE)
CALL = re.compile(r"\b(\w+)\(")
# The folders in which a header may declare for several files: there, calls go one way.
CALLING = ("grates/overlay/grate", "grates/overlay/state", "grates/overlay/verbs")
# The folders of which that holds. A header there declares what the file of its name defines, so a
# circle of calls is one of includes.
FOLDERS = ("grates/namespace", "grates/overlay/grate", "grates/resource")


def needed(folder: Path) -> dict[str, set[str]]:
    """Of each name of a .c or .h: the others whose headers are included."""
    files = {path.stem for path in folder.glob("*.[ch]")}
    found: dict[str, set[str]] = {name: set() for name in files}
    for path in folder.glob("*.[ch]"):
        found[path.stem] |= (set(INCLUDE.findall(path.read_text())) & files) - {path.stem}
    return found


def called(folder: Path) -> dict[str, set[str]]:
    """Of each .c file: the others that define what it calls."""
    texts = {path.stem: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL) for path in folder.glob("*.c")}
    of = {name: file for file, text in texts.items() for name in DEFINED.findall(text)}
    return {file: {of[name] for name in CALL.findall(text) if of.get(name, file) != file} for file, text in texts.items()}


def circle(of: dict[str, set[str]]) -> list[str]:
    """Names that need each other; none if there is an order."""
    left = dict(of)
    while outside := [name for name, needs in left.items() if not needs & left.keys() or not any(name in others for others in left.values())]:
        for name in outside:
            left.pop(name)
    return sorted(left)


def of_others(folder: Path) -> Iterator[str]:
    """The names that a header declares and the file of its name does not define."""
    for header in sorted(folder.glob("*.h")):
        source = header.with_suffix(".c")
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        names = {name for pair in DECLARED.findall(re.sub(r"\\\n|^#[^\n]*|^static inline.*?^}", "", text, flags=re.MULTILINE | re.DOTALL)) for name in pair if name}
        for name in sorted(names):
            if not source.exists() or not re.search(rf"^\w[^;]*\b{name}\b[^;]*(?:=|\{{|;)", source.read_text(), re.MULTILINE):
                yield f"{header.name} declares {name}, which is not in {source.name}"


def calls_wrong(folder: Path) -> Iterator[str]:
    if names := circle(called(folder)):
        yield f"{', '.join(names)} call each other"


def wrong(folder: Path) -> Iterator[str]:
    if names := circle(needed(folder)):
        yield f"{', '.join(names)} include each other"
    yield from of_others(folder)
