"""lind-cc and wasm32-unknown-linux-musl-{gcc,cc,g++}: the driver with the behaviour of gcc."""

from __future__ import annotations

import os

from driver import build, place
from driver.options import Parser


def answer(query: str, cxx: bool, compile_options: list[str]) -> int:
    """Answers a question that a configure script asks the compiler about itself."""
    value = query.partition("=")[2]
    query = query.lstrip("-")
    if query == "dumpmachine":
        print(place.TRIPLE)
    elif query in ("dumpversion", "dumpfullversion"):
        return place.become([place.tool("clang"), "-dumpversion"])
    elif query == "print-multi-os-directory":
        print(".")
    elif query == "print-multiarch":
        # The sysroot has no directories for variants.
        print()
    elif query.startswith("print-prog-name"):
        ours = os.path.join(place.ROOT, "scripts", "bin", f"{place.TRIPLE}-{value}")
        print(ours if os.path.exists(ours) else value)
    elif query.startswith("print-file-name"):
        file = os.path.join(place.sysroot(), "lib", value)
        print(file if os.path.exists(file) else value)
    elif query == "print-libgcc-file-name":
        print(os.path.join(place.compiler_directory(), "lib", "wasi", "libclang_rt.builtins-wasm32.a"))
    elif query == "print-sysroot":
        print(place.sysroot())
    elif query == "print-search-dirs":
        print(f"install: {place.ROOT}/scripts/bin/\nprograms: ={place.ROOT}/scripts/bin")
        print(f"libraries: ={os.path.join(place.sysroot(), 'lib')}")
    else:
        clang = place.tool("clang++" if cxx else "clang")
        return place.become([clang, f"--target={place.TRIPLE}", *compile_options, "--" + query if len(query) > 1 else "-" + query])
    return 0


def main(words: list[str], cxx: bool) -> int:
    request = Parser(words).parse()
    has_inputs = any(kind in ("source", "object") for kind, _ in request.inputs)
    if request.query and (not has_inputs or request.query.lstrip("-").startswith(("print", "dump"))):
        return answer(request.query, cxx, [])
    if request.linker_version and not has_inputs:
        from driver import tools

        return tools.version()
    if request.verbose:
        place.Shell.verbose = True
        # meson and CMake read the header directories from the compiler's output.
        request.compile.append("-v")
    if request.mode:
        return build.compile_only(request, cxx)
    output = request.output or "a.out"
    if output.endswith(".cwasm"):
        return build.build_cwasm(request, output, cxx)
    return build.build_program(request, output, cxx)
