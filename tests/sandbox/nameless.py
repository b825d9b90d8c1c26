"""Open files without a name, /proc/self/cwd and addresses of streams, wherever the directory is: as on Linux."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from world import World, compiled, same


def prepared(world: World, name: str, *, empty: bool = False) -> Path:
    """A directory, with a file in it that is not new."""
    top = world.folder / name
    top.mkdir()
    if not empty:
        (top / "old").write_bytes(b"0123456789" * 1000)
    if world.user is not None:
        for path in [top, *top.iterdir()]:
            shutil.chown(path, world.user, world.user)
    return top


def as_on_linux(world: World) -> None:
    native = world.folder / "native"
    subprocess.run(["cc", "-o", native, Path(__file__).with_name("nameless.c")], check=True)
    program = world.folder / "tool" / "nameless.wasm"
    shutil.copy(compiled("nameless"), program)
    program.chmod(0o755)
    expected = [subprocess.run([native, prepared(world, f"host{empty}", empty=empty)], user=world.user, group=world.user, capture_output=True, text=True, check=True).stdout
                for empty in (False, True)]
    for number, options in enumerate([("-v", "WORK"), ("-v", "WORK", "--mounts=kernel"), ("-v", "WORK:overlay=nameless"), ("-v", "WORK", "--policy=build"), ("--tmpfs", "/m")]):
        work = prepared(world, f"work{number}")
        memory = "--tmpfs" in options
        words = [word.replace("WORK", str(work)) for word in options]
        done = world.run(*words, "-w", "/", str(program), "/m" if memory else str(work))
        same(f"{options}, {done.stderr}", differences(expected[memory], done.stdout), [])


def differences(linux: str, cage: str) -> list[tuple[str, str]]:
    one, other = linux.splitlines(), cage.splitlines()
    other += ["missing"] * (len(one) - len(other))
    one += ["nothing"] * (len(other) - len(one))
    return [pair for pair in zip(one, other) if pair[0] != pair[1]]


TESTS = [as_on_linux]
