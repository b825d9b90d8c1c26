"""-shared: makes a shared library of objects."""

from __future__ import annotations

import fnmatch
import os
import re

from driver import place
from driver.libraries import archive, objects
from driver.libraries.extract import extracted
from driver.libraries.extract import members as members_of
from driver.libraries.find import Inputs
from driver.libraries.library import Library
from driver.libraries.objects import Object
from driver.options import Request
from driver.place import Fail


def make(request: Request, words: list[str], output: str, cxx: bool) -> int:
    inputs = Inputs(request, words)
    members = [(os.path.basename(path), inputs.contents(path)) for path in inputs.objects]
    found = [Object(path, body) for path, (_, body) in zip(inputs.objects, members, strict=True)]
    whole = members_of(inputs, inputs.whole)
    found += [member.origin for member in whole]
    taken = extracted(members_of(inputs, inputs.archives), found)
    members += [(member.name, member.body) for member in [*whole, *taken]]
    found += [member.origin for member in taken]
    if request.versions:
        hide(request.versions, found)
        members = [(name, origin.encoded()) for (name, _), origin in zip(members, found, strict=True)]
    for word in inputs.rest:
        if word.startswith("-l") and not os.path.exists(os.path.join(place.sysroot(), "lib", f"lib{word[2:]}.a")):
            raise Fail(f"cannot find {word}")
    wanted = undefined(found)
    needed = [other.soname for other in inputs.libraries if other.digest not in inputs.spare or wanted & exports(other)]
    with_cxx = request.cxx_library if request.cxx_library is not None else cxx
    made = Library(request.soname or os.path.basename(output), list(dict.fromkeys(needed)), with_cxx, members)
    archive.write(output, made.encoded())
    if not place.is_device(output):
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(output, 0o777 & ~mask)
    return 0


def undefined(found: list[Object]) -> set[str]:
    """The names that objects refer to and none of them defines."""
    defined = {symbol.name for origin in found for symbol in origin.symbols if symbol.others_see}
    return {symbol.name for origin in found for symbol in origin.symbols if symbol.flags & objects.UNDEFINED} - defined


def exports(of: Library) -> set[str]:
    return {symbol.name for origin in of.objects() for symbol in origin.symbols if symbol.exported}


def hide(script: str, found: list[Object]) -> None:
    """Hides what a version script calls local. Patterns are those of a shell."""
    try:
        with open(script, encoding="utf-8", errors="surrogateescape") as file:
            text = re.sub(r"/\*.*?\*/|#[^\n]*", "", file.read(), flags=re.DOTALL)
    except OSError as problem:
        raise Fail(f"{script}: {problem.strerror}") from None
    kept: list[str] = []
    hidden: list[str] = []
    into = kept
    # A version is NAME { global: ...; local: ...; } OLDER; and begins with what is global.
    for word in re.findall(r'extern\s+"[^"]*"\s*\{|"[^"]*"|[{}:]|[^\s;:{}]+', text):
        if word in ("{", "global"):
            into = kept
        elif word == "local":
            into = hidden
        elif word not in ("}", ":") and not re.match(r"extern\s", word):
            into.append(word.strip('"'))
    for origin in found:
        for symbol in origin.symbols:
            if symbol.exported and closeness(symbol.name, hidden) > closeness(symbol.name, kept):
                symbol.flags |= objects.HIDDEN


def closeness(name: str, patterns: list[str]) -> int:
    """How well patterns fit a name: 3 if one is the name itself, 1 if `*` alone fits, 0 if none does."""
    if name in patterns:
        return 3
    fitting = [pattern for pattern in patterns if fnmatch.fnmatchcase(name, pattern)]
    return 0 if not fitting else 1 if all(pattern == "*" for pattern in fitting) else 2
