"""Finds files and tools, and runs commands.

A compiler runs thousands of times in a build, so this package imports nothing that is slow to load.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
TRIPLE = "wasm32-unknown-linux-musl"
LLVM = os.environ.get("LLVM_SUFFIX", "-22")
NOT_FOUND = 127


class Fail(Exception):
    """A failure before a tool of LLVM could report one."""


class Shell:
    """Whether commands are shown."""

    verbose = False


def home() -> str:
    """The source tree whose build/ and lindfs/ are used."""
    return os.environ.get("LIND_WASM_ROOT") or ROOT


def root_of_programs() -> str | None:
    """The directory for programs without a given place. An installation has no such directory of the user's."""
    if home() == ROOT and os.path.isdir(os.path.join(ROOT, "image")):
        return None
    return os.path.join(home(), "lindfs")


def sysroot() -> str:
    chosen = os.environ.get("SYSROOT")
    places = [os.path.join(place, "build", "sysroot") for place in (home(), ROOT)]
    candidates = [chosen] if chosen else [*places, os.path.join(ROOT, "sysroot")]
    for candidate in candidates:
        if os.path.exists(os.path.join(candidate, "lib", "libc.a")):
            return candidate
    raise Fail(f"no C library in {candidates[0]}: run `make sysroot`")


def built(name: str) -> str:
    """A program of the runtime itself."""
    places = [os.path.join(place, "target", "release") for place in (home(), ROOT)]
    for place in (*places, os.path.join(ROOT, "bin")):
        path = os.path.join(place, name)
        if os.path.exists(path):
            return path
    raise Fail(f"target/release/{name} is not built: run `make`")


def headers_of_grates() -> str:
    checkout = os.path.join(ROOT, "grates", "sdk", "c", "include")
    return checkout if os.path.isdir(checkout) else os.path.join(ROOT, "include")


def find(name: str) -> str:
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK):
            return path
    raise Fail(f"{name} not found: run scripts/setup.sh")


def tool(name: str) -> str:
    """A tool of LLVM's."""
    return find(name + LLVM)


def compiler_directory() -> str:
    """Clang's own headers and runtime."""
    version = LLVM.lstrip("-")
    path = f"/usr/lib/llvm{LLVM}/lib/clang/{version}"
    if not os.path.isdir(path):
        raise Fail(f"no {path}: run scripts/setup.sh")
    return path


def show(command: list[str]) -> None:
    if Shell.verbose:
        print(" ".join(quote(word) for word in command), file=sys.stderr, flush=True)


def quote(word: str) -> str:
    plain = word and all(c.isalnum() or c in "@%+=:,./-_" for c in word)
    return word if plain else "'" + word.replace("'", "'\"'\"'") + "'"


def run(command: list[str]) -> int:
    """Runs a command and returns its status, 128 + n for a signal."""
    show(command)
    sys.stdout.flush()
    return status_of(os.posix_spawn(command[0], command, os.environ))


def status_of(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def listen(command: list[str], descriptor: int) -> tuple[int, str]:
    """Runs a command, and returns its status and its output on the descriptor."""
    ours, theirs = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, theirs, descriptor)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        said = pipe.read()
    return status_of(pid), said.decode(errors="replace")


def temporary() -> str:
    return os.environ.get("TMPDIR") or "/tmp"


def is_device(path: str) -> bool:
    """Whether an output is a device, as /dev/null, or a pipe: such a one is written to, and not replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


def become(command: list[str]) -> int:
    """Runs a command in place of this process."""
    show(command)
    sys.stdout.flush()
    os.execv(command[0], command)
