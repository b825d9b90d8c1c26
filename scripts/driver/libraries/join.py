"""Links a program with shared libraries: those it needs, and those that it opens with dlopen."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable

from driver import build, place
from driver.libraries import archive, kept, library, objects, table
from driver.libraries.extract import extracted, members
from driver.libraries.find import Inputs
from driver.libraries.library import Library
from driver.libraries.names import Entry, Names, Part, nearest_first
from driver.libraries.objects import Object, Symbol
from driver.libraries.shared import exports, undefined
from driver.options import Request

# Functions whose callers have a use for the names in a program.
CALLS = (b"dlopen", b"dlsym", b"dladdr")
# The start, and forms of main, which nobody looks for.
ALWAYS = {"main", "__main_argc_argv", "__main_void", "__original_main", "__libc_start_main"}
LIBC = "libc.a"
# Names of the C library for programs; the others are for itself.
PUBLIC = re.compile(r"[A-Za-z]\w*|_exit|_Exit|__errno_location|__h_errno_location")


def wanted(request: Request, inputs: Inputs) -> bool:
    """Whether a program has libraries, or may get some later."""
    return bool(request.opened or inputs.libraries) or (request.dynamic and not request.static and calls(inputs))


def link_if_wanted(request: Request, words: list[str], output: str, cxx: bool, passes: bool) -> int:
    """Links a program that may have libraries."""
    inputs = Inputs(request, words)
    if not wanted(request, inputs):
        return build.link_program(request, inputs.plain, output, cxx, passes)
    return link(request, inputs, [library.read(path) for path in request.opened], output, cxx, passes)


def calls(inputs: Inputs) -> bool:
    for path in [*inputs.objects, *inputs.whole, *inputs.archives]:
        data = archive.with_members(path)
        if any(name in data for name in CALLS):
            return True
    return False


def link(request: Request, inputs: Inputs, opened: list[Library], output: str, cxx: bool, passes: bool = True) -> int:
    """Links a program with the libraries among the inputs, which it needs, and with those that it opens."""
    program = Program(request, inputs)
    parts = parts_of(program, opened)
    Names(parts, program.visible, request.dynamic, static_names(inputs))
    workspace = build.Workspace()
    try:
        target = workspace.file("table.o")
        # Its constructor, which starts libraries, comes before the program's.
        words = [target, *inputs.objects, *written(parts, workspace)]
        with_cxx = cxx or any(part.library.cxx for part in parts)
        status = table.compiled(table.of_program(*program.entries(parts, with_cxx), parts), target, os.path.join(place.sysroot(), "include"))
        if status:
            return status
        if inputs.whole:
            words += ["--whole-archive", *inputs.whole, "--no-whole-archive"]
        status = build.link_program(request, [*words, *inputs.archives, *inputs.rest], output, with_cxx, passes)
        if not status and request.dynamic and not place.is_device(output):
            kept.keep(request, inputs, parts, output, cxx)
        return status
    finally:
        workspace.close()


def written(parts: list[Part], workspace: build.Workspace) -> list[str]:
    """The objects of libraries, in files whose names the linker's messages show."""
    paths = []
    for part in parts:
        for origin in part.objects:
            member = origin.name.removesuffix(")").rpartition("(")[2]
            paths.append(workspace.file(f"{part.label[-40:]}-{os.path.basename(member)[-40:]}"))
            with open(paths[-1], "wb") as file:
                file.write(origin.encoded())
    return paths


class Program:
    """The program's own objects and archives."""

    def __init__(self, request: Request, inputs: Inputs) -> None:
        self.request = request
        self.inputs = inputs
        self.objects = [Object(path, inputs.contents(path)) for path in inputs.objects]
        self.objects += [origin for origin in (member.origin for member in members(inputs, inputs.whole))]
        self.visible = {symbol.name for origin in self.objects for symbol in origin.symbols if symbol.exported}

    def wants(self) -> set[str]:
        """The names that the program does not define, its archives as far as they are linked included."""
        taken = extracted(members(self.inputs, self.inputs.archives), self.objects, ALWAYS)
        return undefined([*self.objects, *(member.origin for member in taken)])

    def entries(self, parts: list[Part], cxx: bool) -> tuple[list[Entry], list[Entry]]:
        """The names that dlsym finds in the program and in the C library, of the objects that are linked."""
        if not self.request.dynamic and not parts:
            return [], []
        present = [*self.objects, *(origin for part in parts for origin in part.objects)]
        of_archives = members(self.inputs, [*self.inputs.archives, *of_sysroot(cxx)])
        taken = extracted(of_archives, present, ALWAYS)
        libc = os.path.join(place.sysroot(), "lib", LIBC)
        own = [*self.objects, *(member.origin for member in taken if member.path in self.inputs.archives)] if self.request.dynamic else []
        ours = exported(own, lambda symbol: symbol.exported and symbol.name not in ALWAYS)
        # Clang hides all names of the C library.
        theirs = exported((member.origin for member in taken if member.path == libc), lambda symbol: symbol.others_see and PUBLIC.fullmatch(symbol.name))
        return ours, theirs


def exported(origins: Iterable[Object], chosen: Callable[[Symbol], object]) -> list[Entry]:
    found: dict[str, Entry] = {}
    for origin in origins:
        for symbol in origin.symbols:
            if symbol.kind in (objects.OF_FUNCTION, objects.OF_DATA) and chosen(symbol):
                found.setdefault(symbol.name, Entry(origin, symbol, symbol.name))
    return list(found.values())


def of_sysroot(cxx: bool) -> list[str]:
    names = [LIBC, *(["libc++.a", "libc++abi.a", "libunwind.a"] if cxx else [])]
    return [os.path.join(place.sysroot(), "lib", name) for name in names]


def static_names(inputs: Inputs) -> set[str]:
    """The names that archives define, those of the sysroot too."""
    return {name for path in [*inputs.archives, *of_sysroot(cxx=True)] if os.path.exists(path) for name in archive.index(path)}


def parts_of(program: Program, opened: list[Library]) -> list[Part]:
    """The libraries of a program: what it needs, nearest first, then those that it opens."""
    inputs = program.inputs
    wants = program.wants() if inputs.spare else set()
    roots: list[Library] = []
    later = list(opened)
    for found in inputs.libraries:
        (later if found.digest in inputs.spare and not exports(found) & wants else roots).append(found)
    by_digest: dict[str, Part] = {}
    labels: set[str] = set()

    def part_of(found: Library, at_start: bool) -> Part:
        if found.digest in by_digest:
            return by_digest[found.digest]
        tried = (found.soname if number == 1 else f"{found.soname}.{number}" for number in itertools.count(1))
        label = next(name for name in tried if name not in labels)
        labels.add(label)
        part = Part(found, label, at_start)
        by_digest[found.digest] = part
        # The digest of a library that needs itself in the end is known by now.
        for name in found.needed:
            other = next((other for other in opened if other.soname == name), None)
            part.needed.append(part_of(other or inputs.needed(name, found), at_start))
        return part

    at_start = nearest_first([part_of(found, True) for found in roots])
    return at_start + [part for part in nearest_first([part_of(found, False) for found in later]) if part not in at_start]

