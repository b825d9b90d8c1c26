"""Chooses the behaviour by the name that the driver was called by."""

from __future__ import annotations

import os
import sys

from driver import place
from driver.place import Fail


def main(argv: list[str]) -> int:
    name = os.path.basename(argv[0])
    try:
        return dispatch(name, argv[1:])
    except Fail as problem:
        print(f"{name}: {problem}", file=sys.stderr)
        return 1
    except OSError as problem:
        print(f"{name}: {problem.filename or ''}: {problem.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        import signal

        # Exits by the signal, as if it had not been caught: make recognises by this that it has to
        # stop.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return 130


def dispatch(name: str, words: list[str]) -> int:
    if name in ("lind_compile", "lind-clang", "lind-clang++"):
        from driver import lind

        return lind.main(words, cxx=name.endswith("++"))
    if name in ("lind-link", "lind-ldd"):
        from driver.libraries import command

        return command.link(words) if name == "lind-link" else command.ldd(words)
    role = name.removeprefix(place.TRIPLE + "-")
    if role in ("lind-cc", "gcc", "cc", "clang", "lind-c++", "g++", "c++", "clang++", "cpp"):
        from driver import gcc

        if role == "cpp":
            words = ["-E", *words]
        return gcc.main(words, cxx=role.endswith("++"))
    from driver import tools

    if role in tools.LLVM_TOOLS or role in ("ld", "as"):
        return tools.main(role, words)
    raise Fail("the driver does not know this name: call it by one of the names in scripts/bin")
