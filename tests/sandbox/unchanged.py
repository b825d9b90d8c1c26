"""Files that a volume shows and that no command may change: lind-boot's own, in the usual place of a package, and those of --keep."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from world import BOOT, SECONDS, TOP, World, holds, same

ENVIRONMENT = ".venv"
BUNDLE = f"{ENVIRONMENT}/lib/python3/site-packages/lind/_bundle"
# The tries of an attacker, as words of edit.c, from the project.
ATTACKS = [
    f"w:{BUNDLE}/bin/lind-boot=evil", f"a:{BUNDLE}/bin/lind-boot=evil", f"t:{BUNDLE}/bin/lind-boot=0", f"x:{BUNDLE}/bin/lind-boot=777",
    f"d:{BUNDLE}/bin/lind-boot", f"v:{BUNDLE}/bin/lind-boot={BUNDLE}/bin/other", f"v:kept={BUNDLE}/bin/lind-boot", f"V:{BUNDLE}/bin=moved",
    f"h:{BUNDLE}/bin/lind-boot=linked", f"w:{BUNDLE}/lib/lind/grates/net_grate.wasm=evil", f"v:{BUNDLE}/lib/lind=moved", f"v:{BUNDLE}/lib=moved",
    f"v:{BUNDLE}=moved", f"v:{ENVIRONMENT}/lib/python3=moved", f"v:{ENVIRONMENT}/lib={ENVIRONMENT}/moved", f"v:{ENVIRONMENT}=moved", f"d:{ENVIRONMENT}",
    # Nearer directories in which the next start would look for grates.
    f"m:{BUNDLE}/bin/lib", f"m:{BUNDLE}/bin/build", f"l:{BUNDLE}/bin/lib=/tmp", f"l:{BUNDLE}/bin/build=/tmp", f"h:kept={BUNDLE}/bin/lib",
    f"v:sub={BUNDLE}/bin/lib", f"v:sub={BUNDLE}/lib/lind",
    f"w:/proc/self/cwd/{BUNDLE}/bin/lind-boot=evil", "w:aside/bin/lind-boot=evil", "x:aside/bin/lind-boot=0",
]
OF_ENVIRONMENT = [
    f"w:{ENVIRONMENT}/bin/python=evil", f"d:{ENVIRONMENT}/bin/python", f"w:{ENVIRONMENT}/lib/python3/site-packages/evil.pth=import evil",
    f"w:{ENVIRONMENT}/lib/python3/site-packages/lind/__init__.py=evil", f"a:{ENVIRONMENT}/pyvenv.cfg=home = /tmp", f"m:{ENVIRONMENT}/new",
    f"v:kept={ENVIRONMENT}/bin/python", f"v:sub={ENVIRONMENT}/bin", f"h:{ENVIRONMENT}/bin/tool=linked-2", f"l:{ENVIRONMENT}/bin/more=/bin/sh",
]


def tree(folder: Path) -> dict[str, str]:
    """All that is in a directory, with the contents of its files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        said = os.readlink(path) if path.is_symlink() else "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(folder))] = f"{path.lstat().st_mode:o} {said}"
    return found


def installed(world: World) -> Path:
    """A package in an environment in the project, as pip installs it. Returns its runner."""
    bundle = world.project / BUNDLE
    (bundle / "bin").mkdir(parents=True)
    runner = Path(shutil.copy(BOOT, bundle / "bin"))
    shutil.copytree(TOP / "build" / "grates", bundle / "lib" / "lind" / "grates")
    (world.project / ENVIRONMENT / "bin").mkdir()
    (world.project / ENVIRONMENT / "bin" / "python").symlink_to("/usr/bin/python3")
    for name in ("bin/tool", "pyvenv.cfg", "lib/python3/site-packages/lind/__init__.py"):
        (world.project / ENVIRONMENT / name).write_text("")
    (world.project / "sub" / "lind").mkdir(parents=True)
    (world.project / "aside").symlink_to(BUNDLE)
    if world.user is not None:
        for path in [world.project, *world.project.rglob("*")]:
            os.chown(path, world.user, world.user, follow_symlinks=False)
    return runner


def boot(world: World, runner: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The runner of the package."""
    return subprocess.run([runner, *words], cwd=world.project, env=world.known | {"LIND_ROOT": str(TOP / "lindfs")}, user=world.user, group=world.user,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)


def attacked(world: World, runner: Path, attacks: list[str], *options: str) -> None:
    """Tries it all in a session, of which each command is one attack."""
    before = tree(world.project / ENVIRONMENT)
    done = boot(world, runner, "session", "start", "one", *options, "-v", f"{world.folder}/tool:/tool:ro", "-w", str(world.project))
    same(f"{options}: start {done.stderr}", done.returncode, 0)
    for attack in attacks:
        done = boot(world, runner, "session", "exec", "one", "/tool/edit", attack)
        same(f"{options} {attack}: {done.stderr}", done.returncode, 1)
    done = boot(world, runner, "session", "exec", "one", "/tool/edit", "w:linked=evil", "w:linked-2=evil", "w:own=text", "m:own.d", "v:own=own.d/own")
    same(f"{options}: the rest can be changed: {done.stderr}", done.returncode, 0)
    same("stop", boot(world, runner, "session", "stop", "one").returncode, 0)
    same(f"{options}: unchanged", tree(world.project / ENVIRONMENT), before)
    for name in ("linked", "linked-2", "own.d/own"):
        (world.project / name).unlink(missing_ok=True)
    shutil.rmtree(world.project / "own.d", ignore_errors=True)


def a_package_in_the_project(world: World) -> None:
    """It can be used with the project as a volume, and stays what it was."""
    runner = installed(world)
    for options in (("-v", "."), ("-v", ".", "--policy", "build"), ("-v", ".", "--mounts=kernel")):
        attacked(world, runner, ATTACKS, *options)
    attacked(world, runner, [*ATTACKS, *OF_ENVIRONMENT], "-v", ".", "--policy", "build", "--keep", ENVIRONMENT)
    # The directory above it is the volume.
    above = [f"v:{world.project}={world.folder}/moved", f"w:{world.project}/{BUNDLE}/bin/lind-boot=evil"]
    attacked(world, runner, above, "-v", str(world.folder), "--policy", "build")


def a_package_in_an_overlay(world: World) -> None:
    """No change of it can come to be applied; others are applied though it lies there."""
    runner = installed(world)
    before = tree(world.project / ENVIRONMENT)
    done = boot(world, runner, "session", "start", "one", "-v", ".:overlay", "-v", f"{world.folder}/tool:/tool:ro", "--policy", "build", "--keep", ENVIRONMENT)
    same(f"start {done.stderr}", done.returncode, 0)
    for attack in [*ATTACKS, *OF_ENVIRONMENT]:
        done = boot(world, runner, "session", "exec", "one", "/tool/edit", attack)
        same(f"{attack}: {done.stderr}", done.returncode, 1)
    same("a change", boot(world, runner, "session", "exec", "one", "/tool/edit", "w:own=text").returncode, 0)
    done = boot(world, runner, "session", "apply", "one")
    same(f"applied {done.stderr}", (done.returncode, (world.project / "own").read_text()), (0, "text"))
    same("unchanged", tree(world.project / ENVIRONMENT), before)


def a_volume_in_the_package(world: World) -> None:
    runner = installed(world)
    for volume in (f"{BUNDLE}/lib/lind/grates", f"{BUNDLE}/lib/lind", f"{BUNDLE}/bin/lind-boot"):
        done = boot(world, runner, "run", "-v", f"{volume}:/v", "true")
        same(f"{volume}: {done.stderr}", done.returncode, 125)
        holds(volume, done.stderr, "a guest could change them")
    done = boot(world, runner, "run", "--keep", ENVIRONMENT, "-v", f"{ENVIRONMENT}/bin:/v", "true")
    holds("kept", done.stderr, "a guest could change them")
    same("read-only", boot(world, runner, "run", "-v", f"{BUNDLE}/lib:/v:ro", f"{world.folder}/tool/probe").returncode, 7)


def another_name_of_the_runner(world: World) -> None:
    """Installers that link files from a store: a name of the same file that a command could write to."""
    runner = installed(world)
    store = world.folder / "store"
    os.link(runner, store)
    probe = f"{world.folder}/tool/probe"
    same("outside", boot(world, runner, "run", "-v", ".", probe).returncode, 7)
    os.link(runner, world.project / "store")
    done = boot(world, runner, "run", "-v", ".", probe)
    same("inside", done.returncode, 125)
    for part in (f"{world.project}/store", "hard link", "--link-mode=copy"):
        holds("inside", done.stderr, part)
    same("an overlay", boot(world, runner, "run", "-v", ".:overlay", probe).returncode, 7)


def names_that_are_kept(world: World) -> None:
    """--keep protects any place, by links too; what it names may be missing."""
    (world.project / "real").mkdir()
    (world.project / "real" / "file").write_text("")
    (world.project / "link").symlink_to("real")
    if world.user is not None:
        for path in world.project.rglob("*"):
            os.chown(path, world.user, world.user, follow_symlinks=False)
    lines = world.probe("w:real/file", "w:link/file", "w:real/new", "w:later", "w:other", options=("-v", ".", "--keep", "link", "--keep", "later"))
    same("kept", [line.rsplit(": ", 1)[1] for line in lines[1:]], ["Read-only file system"] * 4 + ["ok"])


TESTS = [a_package_in_the_project, a_package_in_an_overlay, a_volume_in_the_package, another_name_of_the_runner, names_that_are_kept]
