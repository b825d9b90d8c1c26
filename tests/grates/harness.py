"""Shared parts of the tests of grates: building grates and the programs they serve, running these behind them, comparing.

A test is a function that raises `Failed`. Tests of one grate stand in tests/grates/NAME/run, a program that prints
`N passed, N failed, N skipped`; scripts/test.py finds it:

    #!/usr/bin/env python3
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from harness import HERE, answers, boot, main, program

    def changes_nothing() -> None:
        answers(boot("NAME_grate", program(HERE / "NAME" / "client.c")), 0)

    if __name__ == "__main__":
        sys.exit(main([changes_nothing]))

Files that options of grates name are in lindfs/grates-test, too: `root:/grates-test/...`. Run alone it takes names of tests, and runs those that start so. Programs go to lindfs/grates-test and are removed again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LINDFS = Path(os.environ.get("LINDFS", ROOT / "lindfs"))
PLACE = LINDFS / "grates-test"
GRATES = ROOT / "build" / "grates"
BOOT = ROOT / "target" / "release" / "lind-boot"
SECONDS = 300
BUILD_SECONDS = 1800
SCRATCH = tempfile.TemporaryDirectory()


class Failed(Exception):
    """The reason, for the reader."""


class Skipped(Exception):
    """Cannot be tested here."""


def run(*command: str, check: bool = True, seconds: int = SECONDS, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False, **options)
    if check and done.returncode:
        raise Failed(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def boot(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs lind-boot with these arguments, to its end whatever that is."""
    root = ("--root", str(LINDFS))
    # An option of a command is behind its name.
    words = (arguments[0], *root, *arguments[1:]) if arguments[:1] == ("explain",) else (*root, *arguments)
    return run(str(BOOT), *words, check=False, stdin=subprocess.DEVNULL, **options)


def explain(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `lind-boot explain` with these arguments."""
    return run(str(BOOT), "explain", "--root", str(LINDFS), *arguments, check=False, stdin=subprocess.DEVNULL)


def program(source: Path, *flags: str) -> str:
    """Compiles for a cage; the program's path in the guest's root."""
    PLACE.mkdir(parents=True, exist_ok=True)
    out = PLACE / f"{source.stem}.cwasm"
    run(str(ROOT / "scripts" / "lind_compile"), "-O1", "-std=c11", "-fno-builtin", "-w", *flags, "-o", str(out), str(source))
    return f"/{out.relative_to(LINDFS)}"


def scratch() -> Path:
    """A directory outside the guest's root, gone at the end."""
    return Path(tempfile.mkdtemp(dir=SCRATCH.name))


class Form:
    """The form in which a state of an overlay is made."""

    folder = False


def in_a_directory(test: Callable[[], None]) -> Callable[[], None]:
    """The same test with states that are directories."""
    def again() -> None:
        Form.folder = True
        try:
            test()
        finally:
            Form.folder = False

    again.__name__ = f"{test.__name__}_in_a_directory"
    return again


def room(state: Path) -> int:
    """The size of a state on the disk: data files have holes."""
    files = [state, *state.rglob("*")] if state.is_dir() else [state, Path(f"{state}-wal")]
    return sum(file.stat().st_blocks * 512 if state.is_dir() else file.stat().st_size for file in files if file.is_file())


def native(source: Path, *more: str) -> str:
    out = scratch() / source.stem
    run("clang-22", "-g", "-O1", "-fsanitize=undefined", "-fsanitize-trap=all", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/grates/lib/memfs",
        str(source), *more, "-o", str(out))
    return str(out)


def same(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise Failed(f"{what}: expected {wanted!r}, got {got!r}")


def answers(done: subprocess.CompletedProcess[str], status: int, out: str = "", err: str = "") -> None:
    if (done.returncode, done.stdout, done.stderr) != (status, out, err):
        raise Failed(f"{' '.join(done.args)}\n  expected {status} {out!r} {err!r}\n  got      {done.returncode} {done.stdout!r} {done.stderr!r}")


def lind(name: str) -> str:
    """A grate or program of lind-style, compiled as Lind's are."""
    source = HERE / "lind-style" / f"{name}.c"
    PLACE.mkdir(parents=True, exist_ok=True)
    out = PLACE / f"{name}.cwasm"
    kind = ["--compile-grate"] if name.endswith("_grate") else []
    run(str(ROOT / "scripts" / "lind_compile"), "-s", *kind, "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-o", str(out), str(source))
    return f"/{out.relative_to(LINDFS)}"


def main(tests: list[Callable[[], None]]) -> int:
    chosen = [t for t in tests if not sys.argv[1:] or any(t.__name__.startswith(p) for p in sys.argv[1:])]
    passed = failed = skipped = 0
    run("make", "-C", str(ROOT / "grates"), "install", f"LINDFS={LINDFS}", seconds=BUILD_SECONDS)
    for test in chosen:
        try:
            test()
            passed += 1
        except Skipped as why:
            skipped += 1
            print(f"skipped {test.__name__}: {why}")
        except (Failed, subprocess.TimeoutExpired, OSError) as why:
            failed += 1
            print(f"FAILED {test.__name__}: {why}", flush=True)
    shutil.rmtree(PLACE, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
