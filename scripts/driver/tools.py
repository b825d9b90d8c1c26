"""wasm32-unknown-linux-musl-{ar,nm,strip,ld,...}: LLVM's tools under the names that a cross build looks for."""

from __future__ import annotations

from driver import place

LLVM_TOOLS = {
    "ar": "llvm-ar", "ranlib": "llvm-ranlib", "nm": "llvm-nm", "strip": "llvm-strip", "objdump": "llvm-objdump",
    "objcopy": "llvm-objcopy", "addr2line": "llvm-addr2line", "strings": "llvm-strings", "size": "llvm-size",
    "c++filt": "llvm-cxxfilt", "gcc-ar": "llvm-ar", "gcc-nm": "llvm-nm", "gcc-ranlib": "llvm-ranlib",
}


def main(name: str, words: list[str]) -> int:
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
        return place.become([place.tool("wasm-ld"), *words])
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
    return build.link(request, [word for _, word in link_flags(inputs)], output, cxx=False)


def version() -> int:
    """Prints the linker's name. libtool looks for the words of LLVM's linker for ELF files: for
    another kind of linker it expects shared libraries."""
    status, said = place.listen([place.tool("wasm-ld"), "--version"], 1)
    print(f"{said.strip()} (compatible with GNU linkers)")
    return status


def linker_value(words: list[str], at: int) -> bool:
    """Whether the word before `at` is the value of a dropped option."""
    from driver.options import LINKER_PAIRED_DROPPED

    return at >= 2 and words[at - 2] in LINKER_PAIRED_DROPPED
