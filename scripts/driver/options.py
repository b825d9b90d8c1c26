"""gcc's command line: options to compile with, to link with, and those that do not apply to wasm.

An option is compiled with, linked with, or dropped. A dropped option asks for something that is
always so (-pthread), that wasm does not have (-fPIC, -march=), or that only tunes the
layout of an ELF file.
"""

from __future__ import annotations

from driver.place import Fail

COMPILE_ONLY = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"}
# Options that are answered without an input.
QUERIES = ("--version", "-dumpversion", "-dumpmachine", "-dumpfullversion", "-print-", "--print-", "--help", "-v", "-V")

# Options whose value is the next word.
PAIRED = {
    "-D", "-U", "-I", "-include", "-imacros", "-isystem", "-iquote", "-idirafter", "-iprefix", "-iwithprefix",
    "-MF", "-MT", "-MQ", "-x", "-Xclang", "-Xpreprocessor", "-Xassembler", "-mllvm", "-aux-info", "--param",
    "-iwithprefixbefore", "-isysroot",
}
PAIRED_LINK = {"-L", "-l", "-u"}
PAIRED_DROPPED = {"-T", "-z", "-Xlinker", "-e", "-arch", "-target", "-h"}

DROPPED = {
    "-pthread", "-pthreads", "-mt", "-pie", "-no-pie", "-nopie", "-fPIC", "-fpic",
    "-fPIE", "-fpie", "-fno-PIC", "-fno-pic", "-fno-PIE", "-fno-pie", "-m64", "-m32", "-mx32", "-static-libgcc",
    "-static-libstdc++", "-shared-libgcc", "-no-canonical-prefixes", "-symbolic", "-pipe", "-Bsymbolic", "-fno-plt",
    "-fno-semantic-interposition", "-fsemantic-interposition", "-fstack-clash-protection", "-mno-red-zone",
    "-stdlib=libc++", "-stdlib=libstdc++", "-lgcc", "-lgcc_s", "-lgcc_eh", "-latomic", "-lc", "-lssp", "-lssp_nonshared",
}
DROPPED_STARTS = (
    "-march=", "-mtune=", "-mcpu=", "-mcmodel=", "-mfpmath=", "-fcf-protection", "-fuse-ld=", "--sysroot=", "-specs=",
    "--target=", "-fno-dwarf2-cfi-asm", "-Wa,--noexecstack", "-B",
)

# Options that compile with counters.
COUNTERS = ("-fprofile-generate", "-fprofile-instr-generate", "-fcs-profile-generate")

# Each name of a C++ library stands for all of ours.
CXX_LIBRARIES = {"-lstdc++", "-lsupc++", "-lc++", "-lc++abi", "-lunwind"}

SOURCES = (".c", ".i", ".s", ".S", ".sx", ".cc", ".cpp", ".cxx", ".c++", ".C", ".ii", ".bc", ".ll", ".h")

# Options of an ELF linker that change nothing here; those that take a value in the next word come
# first.
LINKER_PAIRED_DROPPED = {
    "-z", "-T", "--script", "-Map", "--dynamic-list", "-dynamic-linker", "--dynamic-linker", "-I", "-m", "--hash-style", "-e",
    "--entry", "-init", "-fini", "--sort-section", "-plugin", "-plugin-opt", "--exclude-libs", "--defsym",
    "--section-start", "-Ttext", "-Tdata", "-Tbss", "--oformat", "--compress-debug-sections", "--orphan-handling", "-a",
}
LINKER_DROPPED = {
    "--start-group", "--end-group", "-(", "-)", "--warn-common", "--sort-common",
    "--eh-frame-hdr", "--no-eh-frame-hdr",
    "-Bsymbolic", "-Bsymbolic-functions", "-pie", "--pie", "-no-pie", "--no-pie", "--relax",
    "--no-relax", "--no-undefined", "--no-allow-shlib-undefined", "--allow-shlib-undefined", "-nostdlib", "-N", "-n",
    "--no-copy-dt-needed-entries", "--copy-dt-needed-entries", "--enable-new-dtags", "--disable-new-dtags", "-O1",
    "--warn-once", "--no-warn-mismatch", "--fatal-warnings", "--no-fatal-warnings", "--cref", "--no-keep-memory",
    "--reduce-memory-overheads", "-d", "-q", "--emit-relocs", "-X", "--discard-locals", "-x", "--discard-all",
    "--no-ld-generated-unwind-info", "--build-id", "--no-dynamic-linker",
    "--undefined-version", "--no-undefined-version", "--no-rosegment", "--no-omagic", "--discard-none", "--no-threads",
}
LINKER_DROPPED_STARTS = (
    "-z", "-Map", "--Map", "--sort-", "-T", "--dynamic-list",
    "--build-id", "--hash-style", "-dynamic-linker", "--dynamic-linker", "-melf", "--exclude-libs", "--script",
    "--compress-debug-sections", "--oformat", "--icf", "-plugin", "--stats", "--section-start", "-Ttext", "--defsym",
    "--warn-", "--no-warn-", "--orphan-handling", "--gdb-index", "--threads", "--package-metadata", "--pack-dyn-relocs",
)
# Options of the linker, each in its spellings.
LINKER_PARTIAL = {"-r", "-i", "--relocatable"}
LINKER_SHARED = {"-shared", "--shared", "-Bshareable", "-G"}
# Those that say which kind of library -l takes from here on.
LINKER_KINDS = {"-static": "-Bstatic", "-dn": "-Bstatic", "-non_shared": "-Bstatic", "-dy": "-Bdynamic", "-call_shared": "-Bdynamic"}
# Those that count for the libraries behind them. The linker for WebAssembly does not know them.
LINKER_AS_NEEDED = ("--as-needed", "--no-as-needed")
# Those in force until another of their kind: --push-state notes them, --pop-state restores them.
LINKER_STATES = (("--no-whole-archive", "--whole-archive"), ("-Bdynamic", "-Bstatic"), ("--no-as-needed", "--as-needed"))
LINKER_DYNAMIC = {"-E", "-export-dynamic", "--export-dynamic"}
# Those with a value in the next word, or behind an equals sign.
LINKER_SONAME = ("-soname", "--soname", "-h")
LINKER_RUN_PATH = ("-rpath", "--rpath", "-rpath-link", "--rpath-link", "-R")
LINKER_VERSIONS = ("-version-script", "--version-script")
# Those that the linker gets as one word, so that a value is not taken for a file.
LINKER_JOINED = {
    "-u": "--undefined=", "-undefined": "--undefined=", "--undefined": "--undefined=", "-y": "--trace-symbol=", "--trace-symbol": "--trace-symbol=",
    "-wrap": "--wrap=", "--wrap": "--wrap=", "--export": "--export=", "--export-if-defined": "--export-if-defined=",
    "--keep-section": "--keep-section=", "-mllvm": "-mllvm=",
}
LINKER_VALUES = (*LINKER_SONAME, *LINKER_RUN_PATH, *LINKER_VERSIONS, *LINKER_JOINED)


class Request:
    """A parsed command line."""

    def __init__(self) -> None:
        self.mode = ""  # one of COMPILE_ONLY; "" compiles and links
        self.output = ""
        self.compile: list[str] = []  # options, in order
        self.inputs: list[tuple[str, str]] = []  # ("source" | "object" | "flag", word), in link order
        self.languages: dict[int, str] = {}  # -x in force, by index of the input
        self.partial = False  # -r
        self.shared = False  # the output is a shared library
        self.dynamic = False  # -rdynamic: libraries find the program's names, and more can be joined
        self.closed = False  # --no-export-dynamic: not even with -rdynamic
        self.static = False  # -static: no shared libraries
        self.soname = ""
        self.versions = ""  # a version script
        self.run_paths: list[str] = []  # -rpath and -rpath-link
        self.opened: list[str] = []  # libraries that are joined for dlopen
        self.nostdlib = False
        self.nostartfiles = False
        self.cxx_library: bool | None = None  # whether the C++ library is linked; None: if the driver is called as C++'s
        self.strip = False
        self.profile = False  # the program counts what it does: a library writes that down at its end
        self.grate = False
        self.fpcast = True  # calls with a wrong type work as they do natively
        self.fork = "auto"  # which programs can fork: --fork of lind-passes
        self.query = ""
        self.linker_version = False  # the linker was asked which it is
        self.verbose = False

    def sources(self) -> list[int]:
        return [i for i, (kind, _) in enumerate(self.inputs) if kind == "source"]


def expand(words: list[str], inside: tuple[str, ...] = ()) -> list[str]:
    """Replaces @FILE by the words in it. `inside`: the files whose contents these words are."""
    out: list[str] = []
    for word in words:
        if word.startswith("@") and len(word) > 1:
            try:
                with open(word[1:], encoding="utf-8", errors="surrogateescape") as file:
                    text = file.read()
            except OSError:
                out.append(word)
                continue
            if word in inside:
                raise Fail(f"{word} contains itself")
            import shlex

            try:
                parts = shlex.split(text)
            except ValueError as problem:
                raise Fail(f"{word}: {problem}") from None
            out.extend(expand(parts, (*inside, word)))
        else:
            out.append(word)
    return out


class Parser:
    """Reads words one by one into a Request."""

    def __init__(self, words: list[str]) -> None:
        self.words = expand(words)
        self.at = 0
        self.language = ""
        self.request = Request()

    def value(self, option: str) -> str:
        if self.at >= len(self.words):
            raise Fail(f"{option} needs a value")
        self.at += 1
        return self.words[self.at - 1]

    def parse(self) -> Request:
        while self.at < len(self.words):
            self.word(self.value(""))
        words = {word for kind, word in self.request.inputs if kind == "linker"}
        self.request.partial = self.request.partial or bool(words & LINKER_PARTIAL)
        self.request.linker_version = "--version" in words or "-v" in words or "-V" in words
        self.request.inputs = link_flags(self.request.inputs, self.request)
        return self.request

    def word(self, word: str) -> None:
        request = self.request
        if word == "-" or not word.startswith("-"):
            self.input(word)
        elif word in COMPILE_ONLY:
            # -E and -M take precedence over -c, as in gcc.
            if request.mode in ("", "-c"):
                request.mode = word
            if word == "-c":
                return
            if word != request.mode:
                request.compile.append(word)
        elif word == "-o":
            request.output = self.value(word)
        elif word.startswith("-o") and len(word) > 2:
            request.output = word[2:]
        elif word == "-r" or word == "-nostdlib" or word == "-nodefaultlibs" or word == "-nostartfiles":
            request.partial = request.partial or word == "-r"
            request.nostdlib = request.nostdlib or word in ("-nostdlib", "-nodefaultlibs")
            request.nostartfiles = request.nostartfiles or word in ("-nostdlib", "-nostartfiles")
        elif word in CXX_LIBRARIES or word == "-nostdlib++":
            request.cxx_library = word != "-nostdlib++"
        elif word == "-s":
            request.strip = True
        elif word == "--compile-grate":
            request.grate = True
        elif word in ("--fpcast", "--fpcast-emu"):
            request.fpcast = True
        elif word == "--no-fpcast":
            request.fpcast = False
        elif word in ("--fork=auto", "--fork=always", "--fork=never"):
            request.fork = word.partition("=")[2]
        elif word in ("-shared", "--shared", "--compile-library"):
            request.shared = True
        elif word == "-rdynamic":
            request.dynamic = True
        elif word in ("-static", "--static", "-static-pie"):
            request.static = True
        elif word == "--dlopen":
            request.opened.append(self.value(word))
        elif word == "-x":
            self.language = self.value(word)
        elif word.startswith("-x"):
            self.language = word[2:]
        elif word.startswith("-z") and len(word) > 2:
            self.linker([word])
        elif word == "-Xlinker":
            self.linker([self.value(word)])
        elif word.startswith("-Wl,"):
            self.linker(word[4:].split(","))
        elif word in PAIRED_LINK:
            option = "--undefined=" if word == "-u" else word
            request.inputs.append(("flag", option + self.value(word)))
        elif word in PAIRED_DROPPED:
            self.drop_pair(word)
        elif word in DROPPED or word.startswith(DROPPED_STARTS):
            pass
        elif word.startswith(("-L", "-l")):
            request.inputs.append(("flag", word))
        elif word in PAIRED:
            request.compile += [word, self.value(word)]
        elif word.startswith(QUERIES):
            if word == "-v":
                request.verbose = True
            request.query = request.query or word
        else:
            request.profile = request.profile or word.startswith(COUNTERS)
            request.compile.append(word)

    def drop_pair(self, word: str) -> None:
        value = self.value(word)
        if word == "-z" and value == "muldefs":
            self.linker(["--allow-multiple-definition"])

    def input(self, word: str) -> None:
        request = self.request
        is_source = self.language not in ("", "none") or word == "-" or word.endswith(SOURCES)
        if is_source and self.language not in ("", "none"):
            request.languages[len(request.inputs)] = self.language
        request.inputs.append(("source" if is_source else "object", word))

    def linker(self, words: list[str]) -> None:
        self.request.inputs += [("linker", word) for word in words]


def link_flags(inputs: list[tuple[str, str]], request: Request) -> list[tuple[str, str]]:
    """Sorts the linker's own options, which come as single words (-Xlinker) or several (-Wl,a,b).
    Those about shared libraries are noted in the request."""
    out: list[tuple[str, str]] = []
    skip = ""
    now = [kinds[0] for kinds in LINKER_STATES]
    pushed: list[list[str]] = []
    for kind, word in inputs:
        if kind != "linker":
            out.append((kind, word))
        elif skip:
            if skip == "-z" and word == "muldefs":
                out.append(("flag", "--allow-multiple-definition"))
            if skip in LINKER_JOINED:
                out.append(("flag", LINKER_JOINED[skip] + word))
            else:
                of_libraries(skip, word, request)
            skip = ""
        elif word in LINKER_PAIRED_DROPPED or word in LINKER_VALUES:
            skip = word
        elif word == "--push-state":
            pushed.append(now)
        elif word == "--pop-state":
            before = pushed.pop() if pushed else now
            out += [("flag", old) for old, new in zip(before, now, strict=True) if old != new]
            now = before
        elif word == "-zmuldefs":
            out.append(("flag", "--allow-multiple-definition"))
        elif (of_libraries(*word.split("=", 1), request) if "=" in word else of_libraries(word, "", request)) or word in LINKER_DROPPED or word in LINKER_PARTIAL or word.startswith(LINKER_DROPPED_STARTS):
            pass
        else:
            word = LINKER_KINDS.get(word, word)
            now = [word if word in kinds else old for old, kinds in zip(now, LINKER_STATES, strict=True)]
            out.append(("flag", word))
    request.dynamic = request.dynamic and not request.closed
    return out


def of_libraries(option: str, value: str, request: Request) -> bool:
    """Notes an option of the linker that is about shared libraries."""
    if option in LINKER_SHARED:
        request.shared = True
    elif option in LINKER_DYNAMIC:
        request.dynamic = True
    elif option == "--no-export-dynamic":
        request.closed = True
    elif option in LINKER_SONAME:
        request.soname = value
    elif option in LINKER_RUN_PATH:
        request.run_paths += value.split(":")
    elif option in LINKER_VERSIONS:
        request.versions = value
    elif option.startswith("-hlib"):
        request.soname = option[2:]
    else:
        return False
    return True
