"""Denials as programs read of them: /proc/lind/denials, and the program lind-why."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

from session_policy import begin, living_in
from world import TOP, World, holds, same


@functools.cache
def lind_why() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lind-why-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run([TOP / "scripts" / "lind_compile", "-O1", "-Wall", "-Wextra", "-Werror", "-o", folder / "why.wasm", TOP / "ports" / "lind-why" / "lind_why.c"],
                   check=True, capture_output=True)
    return folder / "why.wasm"


def why(world: World, *words: str) -> tuple[int, str]:
    done = world.boot("session", "exec", "one", "--", "/tool/why.wasm", *words)
    return done.returncode, done.stdout + done.stderr


def programs_learn_why(world: World) -> None:
    shutil.copy(lind_why(), world.folder / "tool" / "why.wasm")
    begin(world)
    same("nothing yet", why(world), (1, "nothing was denied\n"))
    with living_in(world) as living:
        living.does(f"write {world.project}/.envrc")
        living.does(f"write {world.project}/.git/config")
        status, said = why(world)
        same("status", status, 0)
        lines = said.splitlines()
        holds("what", lines[0], f"living ({world_pid(lines[0])}): {world.project}/.git/config: may not be changed")
        holds("instead", lines[1], "    instead: set it for one command by git -c NAME=VALUE")
        holds("to be allowed", lines[2], "    to be allowed it, ask the person who started this sandbox for: ")
        same("one", said.count("may not be changed"), 1)
        _, said = why(world, "-a")
        same("in order", [name in said for name in (".envrc", ".git/config")] + [said.index(".envrc") < said.index(".git/config")], [True] * 3)
        holds("an option", said, "--allow-name .envrc")
        # The same again is told once, as the last.
        living.does(f"write {world.project}/.envrc")
        holds("again", why(world)[1], ".envrc")
        same("once", why(world, "-a")[1].count("/.envrc: "), 1)
        # Names are a program's.
        living.does(f"write {world.project}/.a\x1b[2J\u202e")
        said = why(world)[1]
        same("escaped", [c for c in said if c != "\n" and not c.isprintable()], [])
        holds("seen", said, f"{world.project}/.a")
        # Nobody writes there, and only so many are kept.
        same("read-only", living.does("write /proc/lind/denials"), "Permission denied")
        for number in range(40):
            living.does(f"write {world.project}/.n{number}")
        same("bounded", why(world, "-a")[1].count("may not be changed"), 16)
    same("usage", why(world, "-x")[0], 2)


def world_pid(line: str) -> str:
    return line[line.index("(") + 1:line.index(")")]


TESTS = [programs_learn_why]
