"""chroot(2) in a sandbox: a root of its own leads nowhere else, and what the policy says of paths stays true below it."""

from __future__ import annotations

import os
import shutil

from mounts import permitted
from world import Skipped, World, compiled, needs_tools, same

REFUSED, MISSING, DENIED = "Read-only file system", "No such file or directory", "Operation not permitted"


def ends(lines: list[str]) -> list[str]:
    return [line.rsplit(": ", 1)[1] for line in lines[1:]]


def makers(world: World) -> list[str]:
    return ["kernel", *(["bind"] if permitted(world) else [])]


def laid_out(world: World) -> None:
    (world.project / "jail" / "in").mkdir(parents=True)
    (world.project / "jail" / "file").write_text("in")
    for name, target in [("absolute", "/file"), ("up", "../../../file"), ("secret", f"{world.folder}/secret"), ("other", "../kept")]:
        os.symlink(target, world.project / "jail" / name)


def rules_hold_below_a_root(world: World) -> None:
    """The policy goes by the paths of the sandbox: `/.envrc` below another root is the project's."""
    if world.user is not None:
        same("a user", ends(world.probe(f"R:{world.project}")), [DENIED])
        return
    laid_out(world)
    for how in makers(world):
        options = (f"--mounts={how}", "-v", ".")
        asked = {"R:jail": "ok", "r:/file": "ok", "r:/absolute": "ok", "r:/in/../../up": "ok", "r:/other": MISSING, "r:/secret": MISSING,
                 f"r:{world.folder}/secret": MISSING, "r:/bin/probe.wasm": MISSING, "w:/new": "ok", "w:/in/../../new": "ok", "w:/.envrc": REFUSED,
                 "m:/.vscode": REFUSED, "w:/in/.zshenv": REFUSED, "m:/in/deep": "ok", "w:/in/../.git/hooks/x": MISSING}
        same(how, dict(zip(asked, ends(world.probe(*asked, options=options)), strict=True)), asked)
        same("where", (world.project / "jail" / "new").exists(), True)
        shutil.rmtree(world.project / "jail" / "in" / "deep")
        asked = {"R:.": "ok", "w:/.git/hooks/x": REFUSED, "w:/.git/config": REFUSED, "w:/jail/.envrc": REFUSED, "w:/kept": "ok"}
        same(how, dict(zip(asked, ends(world.probe(*asked, options=options)), strict=True)), asked)
        # Read-only volumes are it below a root, too; and to the sandbox's own root, never further.
        asked = {f"R:{world.project}/jail": "ok", "w:/file": REFUSED, "r:/file": "ok"}
        same(how, ends(world.probe(*asked, options=(f"--mounts={how}", "-v", ".:ro"))), list(asked.values()))
        words = ["R:jail", "d:..", "d:../../../../../../../..", "R:.", f"r:{world.folder}/secret", "r:/etc/shadow", f"r:{world.project}/kept"]
        same(how, ends(world.probe(*words, options=options)), ["ok"] * 4 + [MISSING, MISSING, "ok"])


def lists_hold_below_a_root(world: World) -> None:
    """The lists of a policy have the paths of the sandbox."""
    if world.user is not None:
        raise Skipped("only root has a root of its own")
    laid_out(world)
    policy = world.folder / "lists.toml"
    jail = world.project / "jail"
    policy.write_text(f'network = "host"\nread = ["{jail}", "{jail}/file"]\nwrite = ["{jail}/in/**"]\n')
    asked = {"R:jail": "ok", "r:/file": "ok", "r:/absolute": "ok", "w:/in/new": "ok", "w:/new": "Permission denied", "w:/in/../other": "Permission denied"}
    same("lists", dict(zip(asked, ends(world.probe(*asked, options=("--policy", str(policy), "-v", "."))), strict=True)), asked)


def programs_run_below_a_root(world: World) -> None:
    if world.user is not None:
        raise Skipped("only root has a root of its own")
    needs_tools()
    laid_out(world)
    (world.project / "jail" / "bin").mkdir()
    for name in ["probe", "command"]:
        shutil.copy(compiled(name), world.project / "jail" / "bin" / f"{name}.wasm")
        (world.project / "jail" / "bin" / f"{name}.wasm").chmod(0o755)
    (world.project / "jail" / "script").write_text("#!/bin/probe.wasm r:/file\n")
    (world.project / "jail" / "script").chmod(0o755)
    for how in makers(world):
        # The image's programs are not below it.
        done = world.run(f"--mounts={how}", "-v", ".", "chroot", "jail", "/bin/true")
        same("nothing else", done.returncode, 127)
        done = world.run(f"--mounts={how}", "-v", ".", "chroot", "jail", "/bin/probe.wasm", "r:/file", "r:/bin/probe.wasm", "r:/jail/file")
        same(how, (done.returncode, ends(done.stdout.splitlines())), (7, ["ok", "ok", MISSING]))
        done = world.run(f"--mounts={how}", "-v", ".", "chroot", "jail", "/script")
        # Its own name is a further word, of which the probe knows nothing.
        same("a script", (done.returncode, done.stdout.splitlines()[1:2]), (2, ["read /file: ok"]))


def a_grate_that_keeps_files_refuses(world: World) -> None:
    """An overlay finds files itself, and would show another tree than the kernel."""
    same("overlay", ends(world.probe("R:/tmp", options=("-v", ".:overlay"))), [DENIED])


TESTS = [rules_hold_below_a_root, lists_hold_below_a_root, programs_run_below_a_root, a_grate_that_keeps_files_refuses]
