"""Compiles and links for a cage."""

from __future__ import annotations

import os
import sys

from driver import place
from driver.options import LINKER_AS_NEEDED, Request
from driver.place import Fail, run

FEATURES = ["-matomics", "-mbulk-memory", "-mmutable-globals", "-msign-ext", "-mnontrapping-fptoint", "-msimd128"]
# clang's driver takes a linux triple for a system with shared libraries: it would compile
# position-independent code and leave out the exception model. So only the compiler proper gets the
# triple of cages.
TARGET = ["--target=wasm32-unknown-unknown", "-Xclang", "-triple", "-Xclang", place.TRIPLE]
# Keeps branches as branches. Elsewhere clang turns short ones into selects and its back end turns
# these into branches again where that is faster; Cranelift makes each a conditional move, on which
# an interpreter's next instruction then waits.
BRANCHES = ["-mllvm", "-phi-node-folding-threshold=0", "-mllvm", "-two-entry-phi-node-folding-threshold=0"]
# Loops are unrolled about as far as clang does for x86-64, whose limit its wasm target undercuts:
# an address that is one operand there is an addition of its own here, so the turn of a short loop
# is a larger part of it.
UNROLLING = ["-mllvm", "-unroll-partial-threshold=100"]
# setjmp and C++ exceptions are both wasm exceptions, in the standard encoding.
EXCEPTIONS = ["-mexception-handling", "-mllvm", "-wasm-enable-sjlj", "-mllvm", "-wasm-use-legacy-eh=false"]
# Errors of clang that were warnings in the compilers that much C was written for.
LENIENT = [
    "-Wno-error=implicit-function-declaration", "-Wno-error=implicit-int", "-Wno-error=int-conversion",
    "-Wno-error=incompatible-function-pointer-types", "-Wno-error=incompatible-pointer-types", "-Wno-error=return-mismatch",
]
# The linker's message about a call with another type than the function's.
MISMATCH = "function signature mismatch"
# The linker's message about the functions that change from one stack to another.
SWITCHES = r"undefined symbol: ((?:get|make|set|swap)context)\b"
CXX_LANGUAGES = {"c++", "c++-cpp-output"}
CXX_SUFFIXES = (".cc", ".cpp", ".cxx", ".c++", ".C", ".ii")

# The engine gives the program its stack, so the linker's own is as small as possible; the first 64
# KiB are never mapped. --shared-memory makes the linker lay out thread-local data and make data
# passive; the memory pass removes the flag again.
LAYOUT = [
    "--shared-memory", "--initial-memory=4294967296", "--max-memory=4294967296", "--global-base=65536",
    "-z", "stack-size=1024", "--export-table", "--growable-table",
    # A pointer to a function is its place in the table: no function may be SIG_IGN (1) or SIG_HOLD
    # (2).
    "--table-base=4", "--export-if-defined=__heap_base",
    "--export=__stack_pointer", "--export-if-defined=__tls_base", "--export-if-defined=__lind_handle",
    "--export-if-defined=__lind_vfork",
    "--export-if-defined=pass_fptr_to_wt", "--export-if-defined=__wasm_longjmp",
    # Functions that a signal handler must not jump out of, since nothing would be caught there.
    "--export-if-defined=__lind_poll", "--export-if-defined=__wasm_setjmp", "--export-if-defined=__wasm_setjmp_test",
]
# For objects of -flto, which the linker compiles.
LTO = [
    "-mllvm", "-wasm-enable-sjlj", "-mllvm", "-wasm-enable-eh", "-mllvm", "-wasm-use-legacy-eh=false",
    "-mllvm", "-exception-model=wasm", *UNROLLING,
]
# The places of pointers to functions, for the pass that gives functions other places in the table.
RELOCATIONS = ["--emit-relocs"]
# The functions of libc that a program with handlers needs, and those of the SDK if it does not have
# its own way in.
WORKERS = ["--undefined=__lind_worker_init", "--undefined=__lind_worker_exit"]
GRATE = ["--undefined=__lind_handle"]


class Workspace:
    """A directory for objects between compiling and linking, removed at the end."""

    def __init__(self) -> None:
        self.path = ""
        self.files: list[str] = []

    def file(self, name: str) -> str:
        if not self.path:
            base = place.temporary()
            for attempt in range(1000):
                path = os.path.join(base, f"lind-cc.{os.getpid()}.{attempt}")
                try:
                    os.mkdir(path, 0o700)
                except FileExistsError:
                    continue
                self.path = path
                break
            else:
                raise Fail(f"cannot make a directory in {base}")
        path = os.path.join(self.path, f"{len(self.files)}-{name}")
        self.files.append(path)
        return path

    def close(self) -> None:
        if not self.path:
            return
        # A compiler that was killed leaves temporary files.
        for name in os.listdir(self.path):
            os.unlink(os.path.join(self.path, name))
        os.rmdir(self.path)


def is_cxx(source: str, language: str) -> bool:
    return language in CXX_LANGUAGES or (not language and source.endswith(CXX_SUFFIXES))


def compile_flags(cxx: bool) -> list[str]:
    include = os.path.join(place.sysroot(), "include")
    # Clang hides all names of WebAssembly, so that no library would have any.
    flags = [*TARGET, *FEATURES, *BRANCHES, *UNROLLING, *EXCEPTIONS, "-fvisibility=default", "-nostdinc"]
    if cxx:
        flags += ["-fwasm-exceptions", "-nostdinc++", "-isystem", os.path.join(include, "c++", "v1")]
    return [
        *flags, "-isystem", include, "-isystem", place.headers_of_grates(),
        "-isystem", os.path.join(place.compiler_directory(), "include"), "-D_REENTRANT", *LENIENT,
        "-Wno-unused-command-line-argument",
    ]


def compile_only(request: Request, cxx: bool) -> int:
    """-c, -S, -E, -M: clang does all of the work."""
    sources = request.sources()
    if not sources:
        raise Fail("no input files")
    if request.output and len(sources) > 1 and request.mode != "-E":
        raise Fail(f"cannot use -o with {request.mode} and several files")
    if request.mode == "-c":
        return objects(request, cxx)
    return place.become(command_for(request, cxx)[0])


def command_for(request: Request, cxx: bool) -> tuple[list[str], list[str]]:
    """The command that compiles all sources, and its part that compiles any one."""
    sources = request.sources()
    cxx = cxx or any(is_cxx(request.inputs[i][1], request.languages.get(i, "")) for i in sources)
    compiler = [place.tool("clang++" if cxx else "clang"), *compile_flags(cxx)]
    command = [*compiler, request.mode, *request.compile]
    for i in sources:
        command += words_of(request, i)
        if i in request.languages:
            command += ["-x", "none"]
    if request.output:
        command += ["-o", request.output]
    return command, [*compiler, *request.compile]


def objects(request: Request, cxx: bool) -> int:
    """-c: compiles the functions that call setjmp once more."""
    workspace = Workspace()
    try:
        keep_standard_input(request, workspace)
        command, compiler = command_for(request, cxx)
        status = run(command)
        for i in request.sources():
            name = os.path.splitext(os.path.basename(request.inputs[i][1]))[0] + ".o"
            status = status or probe_jumps(compiler, words_of(request, i), request.output or name)
        return status
    finally:
        workspace.close()


def probe_jumps(compiler: list[str], source: list[str], target: str) -> int:
    """Compiles a source again, with what jumps out of handlers want, if the object made of it names setjmp."""
    # Source from standard input cannot be read a second time.
    if not os.path.isfile(target) or "-" in source:
        return 0
    with open(target, "rb") as file:
        if b"setjmp" not in file.read():
            return 0
    from driver import jumps

    return jumps.recompile(compiler, source, target)


def keep_standard_input(request: Request, workspace: Workspace) -> None:
    """Source on standard input can be read only once, and may be compiled twice: it becomes a file without a name in messages."""
    for i in request.sources():
        kind, word = request.inputs[i]
        if word != "-" or request.languages.get(i) not in ("c", "cpp-output", *CXX_LANGUAGES):
            continue
        path = workspace.file("stdin")
        with open(path, "wb") as file:
            file.write(b'# 1 "<stdin>"\n')
            while text := sys.stdin.buffer.read(1 << 16):
                file.write(text)
        request.inputs[i] = (kind, path)
        # Quoted headers are looked for in the caller's directory, and the object keeps its usual
        # name.
        request.compile += ["-iquote", "."]
        if request.mode == "-c" and not request.output:
            request.output = "-.o"


def words_of(request: Request, index: int) -> list[str]:
    """A source, and its language if that was given."""
    language = request.languages.get(index, "")
    return [*(["-x", language] if language else []), request.inputs[index][1]]


def compile_sources(request: Request, workspace: Workspace, cxx: bool) -> list[str] | int:
    """Compiles the inputs that are not objects yet. Returns the linker's inputs in order, or a status."""
    inputs: list[str] = []
    keep_standard_input(request, workspace)
    for i, (kind, word) in enumerate(request.inputs):
        if kind != "source":
            inputs.append(word)
            continue
        if word.endswith(".h"):
            raise Fail(f"{word}: a header cannot be linked")
        language = request.languages.get(i, "")
        name = os.path.basename(word) if word != "-" else "stdin"
        target = workspace.file(name + ".o")
        this_cxx = cxx or is_cxx(word, language)
        command = [place.tool("clang++" if this_cxx else "clang"), *compile_flags(this_cxx), "-c", *request.compile]
        if {"-MD", "-MMD"} & set(request.compile) and "-MF" not in request.compile:
            stem = os.path.splitext(request.output if request.output and len(request.sources()) == 1 else name)[0]
            command += ["-MF", stem + ".d"]
        command += ["-x", language] if language else []
        status = run([*command, word, "-o", target])
        if not status:
            status = probe_jumps(command, [word], target)
        if status:
            return status
        inputs.append(target)
    return inputs


def link(request: Request, inputs: list[str], output: str, cxx: bool, passes: bool = True) -> int:
    """Links and runs the passes. The output appears when all of that has succeeded."""
    if request.partial:
        objects = [word for word in inputs if not word.startswith("-l") and word not in LINKER_AS_NEEDED]
        return run([place.tool("wasm-ld"), "-r", *objects, "-o", output])
    if request.shared:
        from driver.libraries import shared

        return shared.make(request, inputs, output, cxx)
    if may_have_libraries(request, inputs):
        from driver.libraries import join

        return join.link_if_wanted(request, inputs, output, cxx, passes)
    return link_program(request, [word for word in inputs if word not in LINKER_AS_NEEDED], output, cxx, passes)


def may_have_libraries(request: Request, inputs: list[str]) -> bool:
    """Whether it is worth a look if there are shared libraries."""
    if request.opened or request.dynamic or request.static:
        return True
    return any(word.startswith("-L") if word.startswith("-") else not word.endswith((".o", ".a")) for word in inputs)


def link_program(request: Request, inputs: list[str], output: str, cxx: bool, passes: bool = True) -> int:
    """Links objects and archives, with the names of libraries bound, and runs the passes."""
    by_pointer = grate_of_lind(inputs)
    command = link_command(request, inputs, cxx, by_pointer)
    if not passes:
        return run([*command, "-o", output])
    # In a directory of its own, since the linker names the module after the file; not beside a
    # device (-o /dev/null).
    beside = os.path.join(place.temporary(), os.path.basename(output)) if place.is_device(output) else output
    directory = f"{beside}.{os.getpid()}.link"
    linked = os.path.join(directory, os.path.basename(output))
    os.mkdir(directory)
    try:
        # A grate for Lind calls all its handlers by a pointer of one type, whatever their own types
        # are.
        adapted = request.fpcast or by_pointer
        status = link_and_listen([*command, *(RELOCATIONS if adapted else []), "-o", linked], request.fpcast)
        if status:
            return status
        passes = [f"--fork={request.fork}", *([] if adapted else ["--no-fpcast"])]
        return run([place.built("lind-passes"), linked, "-o", output, *passes])
    finally:
        if os.path.exists(linked):
            os.unlink(linked)
        os.rmdir(directory)


def grate_of_lind(inputs: list[str]) -> bool:
    """Whether an object defines, or at least names, the entry of a grate for Lind."""
    for word in inputs:
        if word.endswith(".o") and os.path.isfile(word):
            with open(word, "rb") as file:
                if b"pass_fptr_to_wt" in file.read():
                    return True
    return False


def link_and_listen(command: list[str], fpcast: bool) -> int:
    """Links, and passes on what the linker says.

    `fpcast`: whether calls with a wrong type are to be mended; direct ones then keep the names of
    the functions that were meant."""
    place.show(command)
    status, said = place.listen(command, 2)
    if not said:
        return status
    import re

    sys.stderr.write(said)
    switches = sorted(set(re.findall(SWITCHES, said)))
    if switches:
        sys.stderr.write(f"note: {', '.join(switches)}: WebAssembly code cannot switch stacks; use threads instead\n")
    mismatched = sorted(set(re.findall(rf"{MISMATCH}: (\S+)", said)))
    if status or not mismatched or not fpcast:
        return status
    sys.stderr.write("note: such calls are made as x86-64 would make them (--no-fpcast: they trap)\n")
    # Nobody calls these functions any more, so the linker dropped them; and only names tell which
    # function was meant.
    again = [word if word != "--strip-all" else "--strip-debug" for word in command]
    again += [f"--export-if-defined={name}" for name in mismatched]
    # Its messages now are the same as before.
    return place.listen(again, 2)[0]


def link_command(request: Request, inputs: list[str], cxx: bool, by_pointer: bool = False) -> list[str]:
    lib = os.path.join(place.sysroot(), "lib")
    command = [place.tool("wasm-ld"), *LAYOUT, *LTO]
    if request.grate or by_pointer:
        command += WORKERS
    if request.grate and not by_pointer:
        command += GRATE
    if request.strip:
        command.append("--strip-all")
    if not request.nostartfiles:
        command.append(os.path.join(lib, "crt1.o"))
    command += [*libraries_last(inputs), f"-L{lib}"]
    if not request.nostdlib:
        if request.cxx_library if request.cxx_library is not None else cxx:
            if not os.path.exists(os.path.join(lib, "libc++abi.a")):
                raise Fail("no C++ library in the sysroot: run `make cxx`")
            command += ["-lc++", "-lc++abi", "-lunwind"]
        if request.profile:
            command += profile_library(lib)
        if os.path.exists(os.path.join(lib, "liblindgrate.a")):
            command.append("-llindgrate")
        elif request.grate and not by_pointer:
            raise Fail("no liblindgrate.a in the sysroot: run `make grates`")
        runtime = os.path.join(place.compiler_directory(), "lib", "wasi", "libclang_rt.builtins-wasm32.a")
        if not os.path.exists(runtime):
            raise Fail(f"no {runtime}: run scripts/setup.sh")
        command += ["-lc", runtime]
    return command


def profile_library(lib: str) -> list[str]:
    """The options that link the code which writes counters into a file at a program's end. It is a
    constructor, which the linker keeps if it is exported."""
    if not os.path.exists(os.path.join(lib, "libclang_rt.profile.a")):
        raise Fail("no profile library in the sysroot: run `make profile`")
    return ["--export=__llvm_profile_runtime", "-lclang_rt.profile"]


def libraries_last(inputs: list[str]) -> list[str]:
    """If an object comes behind a library, wasm-ld takes the type of the library's functions from
    the object, and writes an invalid module where they disagree, as in the probes of configure
    scripts. In the other order it warns and makes the call trap."""
    if "--whole-archive" in inputs:
        return inputs
    libraries = [word for word in inputs if word.startswith("-l") or word.endswith(".a")]
    return [word for word in inputs if word not in libraries] + libraries


def build_program(request: Request, output: str, cxx: bool, passes: bool = True) -> int:
    """Builds one linked program from sources and objects."""
    if not any(kind in ("source", "object") for kind, _ in request.inputs):
        raise Fail("no input files")
    workspace = Workspace()
    try:
        inputs = compile_sources(request, workspace, cxx)
        if isinstance(inputs, int):
            return inputs
        return link(request, inputs, output, cxx, passes)
    finally:
        workspace.close()


def precompile(wasm: str) -> int:
    """Compiles X.wasm to X.cwasm beside it. The runner prints the path; our caller does too, so the runner's line is dropped."""
    command = [place.built("lind-boot"), "--precompile", wasm]
    place.show(command)
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def build_cwasm(request: Request, output: str, cxx: bool) -> int:
    """Writes X.cwasm, and X.wasm beside it, which runs where the other is not trusted."""
    wasm = output[: -len(".cwasm")] + ".wasm"
    return build_program(request, wasm, cxx) or precompile(wasm)
