"""The wheel: it works where nothing else is installed and with an empty home, and it compiles nothing there."""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools import TOP

PORTS = ("busybox", "bash")
SIGNATURE = 64


class Failed(Exception):
    """The reason of a failure."""


def same(what: str, got: object, expected: object) -> None:
    if got != expected:
        raise Failed(f"{what}: {got!r}, expected {expected!r}")


def contains(what: str, text: str, *parts: str) -> None:
    for part in parts:
        if part not in text:
            raise Failed(f"{what}: {part!r} is not in {text}")


class World:
    """A wheel of a few ports, installed into a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site, self.home = folder, folder / "site", folder / "home"
        self.bundle = self.site / "lind" / "_bundle"
        self.wheel = self.build("first")
        self.home.mkdir()
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--root-user-action=ignore", "--disable-pip-version-check", "--target", self.site, self.wheel]
        subprocess.run(command, check=True)

    def build(self, name: str) -> Path:
        """Builds the wheel."""
        subprocess.run([TOP / "scripts" / "wheel.py", "--out", self.folder / name, *PORTS], check=True, stdout=subprocess.DEVNULL)
        return next((self.folder / name).glob("lind_sandbox-*.whl"))

    def run(self, *words: str) -> str:
        """Runs a program that sees the wheel alone, and returns its output."""
        known = {"PATH": f"{self.site}/bin:/usr/bin:/bin", "PYTHONPATH": str(self.site), "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.folder)}
        done = subprocess.run(words, cwd=self.home, env=known, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(f"{words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def python(self, text: str) -> str:
        return self.run(sys.executable, "-c", f"import lind\n{text}")

    def code(self) -> set[bytes]:
        """The code that it brings, as far as it can be unpacked."""
        paths = (self.bundle / "lib" / "lind" / "code").glob("*.packed")
        every = (subprocess.run(["zstd", "-q", "-d", "--long=27", "-c", path], capture_output=True, check=False) for path in paths)
        return {done.stdout for done in every if not done.returncode}

    def cached(self) -> list[bytes]:
        """The code that was compiled or taken over, without its signatures."""
        large = (path.read_bytes() for path in (self.home / ".cache" / "lind").rglob("*") if path.is_file() and path.stat().st_size > 4096)
        return [data[:-SIGNATURE] for data in large]


def the_first_command_compiles_nothing(world: World) -> None:
    same("output", world.python("print(lind.run('echo hello | tr a-z A-Z').stdout)"), "HELLO\n\n")
    brought = world.code()
    ours = [data in brought for data in world.cached()]
    if not ours or not all(ours):
        raise Failed(f"{ours.count(False)} of {len(ours)} programs were compiled here")


def its_links_are_there(world: World) -> None:
    same("a link", world.python("with lind.Sandbox() as sandbox:\n    print(sandbox.files.stat('/bin/ls', follow=False).target)"), "busybox\n")


OVERLAY = """
import os
os.mkdir('project')
os.chdir('project')
with lind.Sandbox(volumes={'.': 'overlay'}) as sandbox:
    sandbox.run('echo new >made; echo other >other')
    print(*(change.path for change in sandbox.diff()))
    sandbox.snapshot('one')
    sandbox.run('rm made')
    sandbox.rollback('one')
    sandbox.discard(['other'])
    sandbox.apply()
    print(open('made').read(), end='')
"""


def overlays_need_no_other_image(world: World) -> None:
    """The tools that look at changes run in the wheel's image, too."""
    same("changes", world.python(OVERLAY), "made other\nnew\n")


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def put_a_link(path: Path) -> None:
    """The same bytes, which another user could change between two looks."""
    path.rename(path.with_suffix(".elsewhere"))
    path.symlink_to(path.with_suffix(".elsewhere"))


# The ways to spoil the code, and the words of the doctor about it.
SPOILT: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "a byte": (change_a_byte, "*.packed", "missing or changed"),
    "a link": (put_a_link, "*.packed", "missing or changed"),
    "gone": (Path.unlink, "*.packed", "missing or changed"),
    "the list": (change_a_byte, "list", "its list is missing, or not the one"),
}


def code_that_was_changed_is_not_used(world: World) -> None:
    folder, kept = world.bundle / "lib" / "lind" / "code", world.folder / "kept"
    brought = world.code()
    for kind, (spoil, pattern, words) in SPOILT.items():
        shutil.copytree(folder, kept)
        try:
            for path in list(folder.glob(pattern)):
                spoil(path)
            shutil.rmtree(world.home / ".cache" / "lind")
            changed = world.code() if kind == "a byte" else brought
            same(f"{kind}: output", world.python("print(lind.run('echo still').stdout.strip())"), "still\n")
            if any(data in changed for data in world.cached()):
                raise Failed(f"{kind}: code that was changed is in the cache")
            contains(kind, world.run("lind-boot", "doctor"), words)
        finally:
            shutil.rmtree(folder)
            kept.rename(folder)


def the_doctor_knows_what_came_with_it(world: World) -> None:
    shutil.rmtree(world.home / ".cache" / "lind")
    said = world.run("lind-boot", "doctor")
    contains("the doctor", said, "as this lind-boot was built with it", str(world.home / ".cache" / "lind-sandbox" / "base-"), "can be changed by root and this user alone")
    if "not compiled yet" in said:
        raise Failed(f"the doctor does not see the code that came with it: {said}")
    (world.bundle / "bin").chmod(0o777)
    try:
        contains("the doctor", world.run("lind-boot", "doctor"), f"everybody can change {world.bundle / 'bin'}")
    finally:
        (world.bundle / "bin").chmod(0o755)


def the_command_is_there(world: World) -> None:
    same("run", world.run("lind-boot", "run", "--", "bash", "-c", "echo $((6 * 7))"), "42\n")
    if "/_bundle/" not in world.run("lind-boot", "doctor", "--json"):
        raise Failed("the doctor sees another installation")


def the_usual_image_has_the_program_that_explains_denials(world: World) -> None:
    del world
    contains("ports", " ".join(runpy.run_path(str(TOP / "scripts" / "wheel.py"))["BASIC"]), "lind-why")


def the_same_tree_gives_the_same_bytes(world: World) -> None:
    again = world.build("second")
    same("bytes", again.read_bytes() == world.wheel.read_bytes(), True)


TESTS: list[Callable[[World], None]] = [
    the_first_command_compiles_nothing, its_links_are_there, overlays_need_no_other_image, code_that_was_changed_is_not_used, the_doctor_knows_what_came_with_it,
    the_command_is_there, the_usual_image_has_the_program_that_explains_denials, the_same_tree_gives_the_same_bytes]


def run_all() -> dict[str, int]:
    """How many passed and failed."""
    counts = {"passed": 0, "failed": 0}
    folder = Path(tempfile.mkdtemp(prefix="lind-wheel-"))
    try:
        world = World(folder)
        for test in TESTS:
            try:
                test(world)
                counts["passed"] += 1
                print(f"PASS wheel: {test.__name__}", flush=True)
            except (Failed, OSError, subprocess.SubprocessError) as why:
                counts["failed"] += 1
                print(f"FAIL wheel: {test.__name__}: {why}", flush=True)
    except subprocess.CalledProcessError as why:
        counts["failed"] += 1
        print(f"FAIL wheel: {why}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counts
