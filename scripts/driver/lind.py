"""lind_compile and lind-clang: build a program in lindfs/ from sources."""

from __future__ import annotations

import os

from driver import build, place
from driver.options import Parser, Request
from driver.place import Fail

HELP = """\
Usage: lind_compile [OPTIONS] FILE...

Compiles and links C for a cage. Without -o or -c, X.c becomes X.wasm beside it and
lindfs/[DIR/]X.cwasm; an installed lind_compile writes X.cwasm beside it, too. Options of gcc
(-O2, -D, -I, -L, -l, -c, -o, ...) work as in gcc; the default is -O2.

  -o FILE             write FILE; a name ending in .cwasm is precompiled, with the .wasm beside it
  --output-dir DIR    the folder of lindfs/ for the program
  --no-fpcast         calls with another type than the function's trap, instead of working as they do natively
  --fork=never        the program cannot fork; --fork=always prepares a program that does not
                      fork, too, to measure the cost
  --compile-grate     the program is a grate: it handles system calls of other programs
  --compile-only      stop at X.wasm, without running the passes
  --opt-only          FILE.wasm: run the passes over it, in place
  --precompile-only   FILE.wasm: precompile it into lindfs/[DIR/]
  -shared             make a shared library, X.so if there is no -o (docs/shared-libraries.md)
  -rdynamic           keep X.link, so that lind-link can join libraries to the program
  --dlopen LIB.so     join a library that the program opens with dlopen
  -static             take no shared libraries
  --print-cmd, -v     show the commands
  -h, --help          this text

The last line is `OK: ` and the path of the program.
"""


class Options:
    """The options of lind_compile that are not the compiler's."""

    def __init__(self) -> None:
        self.step = ""
        self.directory = ""
        self.help = False
        self.rest: list[str] = []


def split(words: list[str]) -> Options:
    """Removes our own options from the command line."""
    options = Options()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("--compile-only", "--opt-only", "--precompile-only"):
            options.step = word
        elif word == "--output-dir" or word.startswith("--output-dir="):
            options.directory = word.partition("=")[2]
            if "=" not in word:
                if at >= len(words):
                    raise Fail("--output-dir needs a value")
                options.directory = words[at]
                at += 1
        elif word in ("-v", "--verbose", "--print-cmd"):
            place.Shell.verbose = True
        elif word in ("-h", "--help"):
            options.help = True
        elif word in ("-s", "--", "--print-args", "--debug-args", "--no-default-clang-flags"):
            pass
        else:
            options.rest.append(word)
    return options


def the_module(options: Options) -> str:
    modules = [word for word in options.rest if not word.startswith("-")]
    if len(modules) != 1 or not modules[0].endswith(".wasm"):
        raise Fail(f"{options.step} takes one .wasm file")
    return modules[0]


def install(wasm: str, options: Options) -> str:
    """Puts the module and its precompiled form into lindfs, if there is one, and returns the latter's path."""
    root = place.root_of_programs()
    if root is None and options.directory:
        raise Fail("--output-dir needs a source tree with lindfs/; give the place of the program with -o FILE")
    directory = os.path.join(root, options.directory.strip("/")) if root else os.path.dirname(os.path.abspath(wasm))
    os.makedirs(directory, exist_ok=True)
    target = os.path.join(directory, os.path.basename(wasm))
    if os.path.realpath(wasm) != os.path.realpath(target):
        import shutil

        shutil.copyfile(wasm, target)
        shutil.copymode(wasm, target)
    if build.precompile(target):
        raise Fail(f"{target} did not compile")
    return target[: -len(".wasm")] + ".cwasm"


def done(path: str) -> int:
    print(f"OK: {os.path.abspath(path)}")
    return 0


def stem(request: Request) -> str:
    """X of the first X.c, which names the program."""
    for kind, word in request.inputs:
        if kind in ("source", "object") and word != "-":
            return os.path.splitext(word)[0]
    raise Fail("no input files")


def main(words: list[str], cxx: bool) -> int:
    options = split(words)
    if options.help or not words:
        print(HELP, end="")
        return 0 if options.help else 2
    if options.step == "--opt-only":
        module = the_module(options)
        return place.run([place.built("lind-passes"), module, "-o", module]) or done(module)
    if options.step == "--precompile-only":
        return done(install(the_module(options), options))

    request = Parser(options.rest).parse()
    if not any(word.startswith("-O") for word in request.compile):
        request.compile.insert(0, "-O2")
    if request.query:
        from driver import gcc

        return gcc.answer(request.query, cxx, [])
    if request.mode:
        return build.compile_only(request, cxx)
    if options.step == "--compile-only":
        if (request.output or "").endswith(".cwasm"):
            raise Fail(f"--compile-only writes a .wasm file: -o {request.output} must not end in .cwasm")
        wasm = request.output or stem(request) + ".wasm"
        return build.build_program(request, wasm, cxx, passes=False) or done(wasm)
    if request.shared and not request.output:
        request.output = stem(request) + ".so"
    if request.output:
        make = build.build_cwasm if request.output.endswith(".cwasm") else build.build_program
        return make(request, request.output, cxx) or done(request.output)
    wasm = stem(request) + ".wasm"
    return build.build_program(request, wasm, cxx) or done(install(wasm, options))
