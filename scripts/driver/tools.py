"""wasm32-unknown-linux-musl-{ar,nm,strip,ld,...}: LLVM's tools under the names that a cross build looks for."""

from __future__ import annotations

from driver import place

LLVM_TOOLS = {
    "ar": "llvm-ar", "ranlib": "llvm-ranlib", "nm": "llvm-nm", "strip": "llvm-strip", "objdump": "llvm-objdump",
    "objcopy": "llvm-objcopy", "addr2line": "llvm-addr2line", "strings": "llvm-strings", "size": "llvm-size",
    "c++filt": "llvm-cxxfilt", "gcc-ar": "llvm-ar", "gcc-nm": "llvm-nm", "gcc-ranlib": "llvm-ranlib",
}


def main(name: str, words: list[str]) -> int:
    if name == "strip":
        # llvm-strip refuses a shared library, which has a text among its objects. The objects are
        # stripped in the program.
        from driver.libraries import library

        stays = [word for word in words if not word.startswith("-") and library.is_library(word)]
        words = [word for word in words if word not in stays]
        if stays and all(word.startswith("-") for word in words):
            return 0
    if name in LLVM_TOOLS:
        return place.become([place.tool(LLVM_TOOLS[name]), *words])
    from driver import build

    if name == "as":
        return place.become([place.tool("clang"), *build.compile_flags(False), "-c", "-x", "assembler", *words])
    return linker(words)


def linker(words: list[str]) -> int:
    """ld: no start files, and only the named libraries."""
    from driver import build
    from driver.options import Request, expand, link_flags

    words = expand(words)
    if words[:1] == ["--help"]:
        # By this line libtool knows that there are shared libraries, and how they are asked for.
        return place.run([place.tool("wasm-ld"), *words]) or print("wasm-ld: supported targets: wasm32 elf") or 0
    if not words or words[0] in ("-v", "-V", "--version"):
        return version()
    request = Request()
    request.nostdlib = request.nostartfiles = True
    output = "a.out"
    inputs: list[tuple[str, str]] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "-o" and at < len(words):
            output = words[at]
            at += 1
        elif word in ("-L", "-l") and at < len(words):
            inputs.append(("flag", word + words[at]))
            at += 1
        elif word in ("-r", "--relocatable"):
            request.partial = True
        elif word in ("-s", "--strip-all"):
            request.strip = True
        else:
            inputs.append(("linker" if word.startswith("-") or linker_value(words, at) else "object", word))
    return build.link(request, [word for _, word in link_flags(inputs, request)], output, cxx=False)


def version() -> int:
    """Prints the linker's name, with the words of LLVM's linker for ELF files, by which libtool goes."""
    status, said = place.listen([place.tool("wasm-ld"), "--version"], 1)
    print(f"{said.strip()} (compatible with GNU linkers)")
    return status


def linker_value(words: list[str], at: int) -> bool:
    """Whether the word before `at` is the value of a dropped option."""
    from driver.options import LINKER_PAIRED_DROPPED, LINKER_VALUES

    return at >= 2 and (words[at - 2] in LINKER_PAIRED_DROPPED or words[at - 2] in LINKER_VALUES)
