"""lind-link and lind-ldd."""

from __future__ import annotations

import os
import sys

from driver import build
from driver.libraries import join, kept, library
from driver.libraries.find import Inputs
from driver.libraries.objects import CUSTOM, MAGIC, Reader
from driver.place import Fail

LINK_HELP = """\
Usage: lind-link PROGRAM LIBRARY.so... [-o NEW]

Joins shared libraries to a program, so that its dlopen finds them. PROGRAM was linked with
-rdynamic, and PROGRAM.link is beside it. A library that was joined before from the same path is
replaced. Without -o, the program itself is written again; if there is compiled code of it beside
it (.cwasm), that is too.
"""
LDD_HELP = """\
Usage: lind-ldd FILE...

Prints the libraries that are in a program (.wasm), or those that a shared library needs.
"""
SECTION = "lind.libraries"


def link(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(LINK_HELP, end="")
        return 0 if words else 2
    output = ""
    files: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "-o":
            output = next(rest, "")
            if not output:
                raise Fail("-o needs a value")
        elif word.startswith("-"):
            raise Fail(f"{word}: no such option; see lind-link --help")
        else:
            files.append(word)
    if len(files) < 2:
        raise Fail("give a program, and a library for it")
    program, *added = files
    stem = program.removesuffix(".cwasm").removesuffix(".wasm")
    source = stem + kept.SUFFIX
    if not os.path.isfile(source):
        raise Fail(f"{program}: there is no {source}: link the program with -rdynamic, which keeps what it was linked from")
    modules = [*([] if program.endswith(".cwasm") else [program]), f"{stem}.wasm", stem]
    output = output or next((path for path in modules if os.path.isfile(path)), program)
    module = output[: -len(".cwasm")] + ".wasm" if output.endswith(".cwasm") else output
    compiled = module.removesuffix(".wasm") + ".cwasm"
    workspace = build.Workspace()
    try:
        status = join_to(kept.Kept(source, workspace), [library.read(path) for path in added], module)
    finally:
        workspace.close()
    if not status and (output.endswith(".cwasm") or (module.endswith(".wasm") and os.path.exists(compiled))):
        status = build.precompile(module)
    return status


def join_to(program: kept.Kept, added: list[library.Library], module: str) -> int:
    """Links what was kept again, with more libraries."""
    replaced = {found.origin: found for found in added}
    inputs = Inputs(program.request, program.words)
    opened: list[library.Library] = []
    for found, at_start in program.libraries:
        (inputs.libraries if at_start else opened).append(replaced.pop(found.origin, found))
    known = {found.digest for found in [*inputs.libraries, *opened]}
    opened += [found for found in replaced.values() if found.digest not in known]
    return join.link(program.request, inputs, opened, module, program.cxx)


def ldd(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(LDD_HELP, end="")
        return 0 if words else 2
    for path in words:
        if len(words) > 1:
            print(f"{path}:")
        lines = needs(path)
        sys.stdout.writelines(f"\t{line}\n" for line in lines or ["no shared libraries"])
    return 0


def needs(path: str) -> list[str]:
    if library.is_library(path):
        return library.read(path).needed
    with open(path, "rb") as file:
        data = file.read()
    if not data.startswith(MAGIC):
        raise Fail(f"{path}: neither a program of WebAssembly nor a shared library for cages")
    try:
        for kind, body in Reader(data[len(MAGIC) :]).parts():
            part = Reader(body)
            if kind == CUSTOM and part.name() == SECTION:
                return [line for line in body[part.at :].decode(errors="replace").split("\n") if line.isprintable() and line]
    except (IndexError, ValueError):
        raise Fail(f"{path}: the module is damaged") from None
    return []
