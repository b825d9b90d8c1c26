"""Files of the user's that options name: an earlier run may have put links in their place, or written them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from world import Failed, World, holds, needs_tools, same

REFUSED = 125


def own(world: World, *paths: Path) -> None:
    for path in paths:
        if world.user is not None:
            os.chown(path, world.user, world.user, follow_symlinks=False)


def refused(what: str, done: subprocess.CompletedProcess[str], part: str) -> None:
    same(f"{what}: status", (done.returncode, done.stdout), (REFUSED, ""))
    holds(what, done.stderr, part)


def links_in_the_place_of_results(world: World) -> None:
    """One run leaves a link that leads out of the project; the next one writes its results there."""
    command, precious = str(world.folder / "tool" / "command"), world.home / ".bashrc"
    precious.write_text("precious")
    for link in (world.project / "out.json", world.home / "out.json"):
        link.symlink_to(precious)
        own(world, link)
    for option in ("--denials", "--result", "--learn", "--audit"):
        for volumes in ((), ("-v", "."), ("-v", ".:ro")):
            done = world.run(option, "out.json", *volumes, command, "files")
            refused(f"{option} {volumes}", done, "exists" if option == "--audit" else "symbolic link")
        refused(option, world.run(option, str(world.home / "out.json"), command, "files"), "exists" if option == "--audit" else "symbolic link")
    refused("learn", world.boot("learn", "-o", "out.json", command, "files"), "symbolic link")
    for option in ("--denials", "--result", "--learn"):
        refused(f"session {option}", world.boot("session", "start", "planted", option, "out.json", "-v", "."), "symbolic link")
    same("as it was", precious.read_text(), "precious")


def results_where_the_command_writes(world: World) -> None:
    command = str(world.folder / "tool" / "command")
    (world.project / "way").symlink_to(world.home)
    own(world, world.project / "way")
    for option in ("--denials", "--result", "--learn", "--audit"):
        for volume in (".", ".:overlay"):
            refused(f"{option} {volume}", world.run(option, "new.json", "-v", volume, command, "files"), "name a file elsewhere")
        refused(f"{option} through a link", world.run(option, "way/new.json", "-v", ".", command, "files"), "way is a symbolic link in")
        same(f"{option} elsewhere", world.run(option, f"../home/{option}.json", "-v", ".", command, "files").returncode, 0)
        same(f"{option} where nothing changes", world.run(option, f"own{option}.json", "-v", ".:ro", command, "files").returncode, 0)
    same("nothing came of it", (world.home / "new.json").exists(), False)


def policies_are_out_of_reach(world: World) -> None:
    """No run obeys what an earlier one may have written."""
    probe = str(world.folder / "tool" / "probe")
    (world.project / "p.toml").write_text('network = "none"\nread-only = true\n')
    own(world, world.project / "p.toml")
    refused("in the project", world.run("--policy", "p.toml", "-v", ".", probe), "lind/policies")
    same("read-only", world.run("--policy", "p.toml", "-v", ".:ro", probe).returncode, 7)
    refused("a session", world.boot("session", "start", "planted", "--policy", "./p.toml", "-v", "."), "can change")
    (world.home / "link.toml").symlink_to(world.project / "p.toml")
    refused("a link", world.run("--policy", str(world.home / "link.toml"), "-v", ".:ro", probe), "symbolic link")


def policies_have_names(world: World) -> None:
    probe = str(world.folder / "tool" / "probe")
    same("learned", world.boot("learn", "-o", "work", "-v", ".", "--", probe, "r:kept").returncode, 7)
    where = world.home / ".config" / "lind" / "policies"
    holds("there", (where / "work.toml").read_text(), "# Learned from")
    lines = world.probe("r:kept", "w:new", options=("--policy", "work", "-v", "."))
    same("obeyed", [line.endswith(": ok") for line in lines[1:]], [True, False])
    same("elsewhere", world.run("--policy", "work", "-v", ".", probe, XDG_CONFIG_HOME=str(world.folder)).returncode, REFUSED)
    refused("none", world.run("--policy", "wrok", probe), "there are agent, build, readonly, untrusted, work,")
    refused("one of ours", world.boot("learn", "-o", "agent", "-v", ".", "--", probe), "comes with lind-boot")
    where.rename(world.project / "policies")
    where.symlink_to(world.project / "policies")
    refused("where guests write", world.run("--policy", "work", "-v", ".", probe), "can change")


def variables_come_from_no_link(world: World) -> None:
    """A run gives away what its variables are read from."""
    (world.folder / "keys").write_text("KEY=secret\n")
    (world.project / "vars").symlink_to(world.folder / "keys")
    (world.project / "plain").write_text("A=1\n")
    own(world, world.project / "vars", world.project / "plain")
    probe = str(world.folder / "tool" / "probe")
    for volumes in ((), ("-v", ".")):
        refused(f"{volumes}", world.run("--env-file", "vars", *volumes, probe, "e:KEY"), "symbolic link")
        holds(f"{volumes}", world.run("--env-file", "plain", *volumes, probe, "e:A").stdout, "env A: 1")


def links_in_the_place_of_volumes(world: World) -> None:
    precious = world.folder / "precious"
    precious.mkdir()
    (precious / "key").write_text("key")
    link = world.project / "out"
    link.symlink_to(precious)
    (world.project / "up").symlink_to(world.folder)
    own(world, precious, link, world.project / "up")
    probe = str(world.folder / "tool" / "probe")
    for words in (("-v", "out"), ("-v", "out/:/x"), ("-v", f"{link}:ro"), ("-v", "out:overlay"), ("--dir", "out"), ("--dir", "out::/x")):
        done = world.run(*words, probe, "r:/x/key")
        refused(f"{words}", done, f"symbolic link, which an earlier command may have created; name the path that it leads to: {precious}")
        refused(f"session {words}", world.boot("session", "start", "planted", *words), "symbolic link")
    refused("on the way", world.run("-v", ".", "-v", "up/precious:/x", probe), "up is a symbolic link in")
    same("where one stands", world.run("-v", str(link), probe, cwd=precious).returncode, 7)
    if not (precious / "key").exists():
        raise Failed("it is gone")


def set_id_bits_are_told(world: World) -> None:
    """The host obeys them: the user hears of every way to set one, and of nothing else."""
    needs_tools()
    for how in [("--mounts=bind",), ("--mounts=kernel",)]:
        if how == ("--mounts=bind",) and world.run(*how, "-v", ".", "true").returncode:
            continue
        for number, script in enumerate(["cp kept a; chmod u+s a", "cp kept a; chmod 2755 a; mv a b", "cp kept a; exec 3<a; chmod g+s /proc/self/fd/3",
                                         "$EDIT s:a", "$EDIT n:a", "$EDIT f:a", "$EDIT o:a"]):
            done = world.run(*how, "-v", ".", "-v", f"{world.folder}/tool:/tool:ro", "-e", "EDIT=/tool/edit.wasm", "--", "bash", "-c", script)
            same(f"{how} {number}: status", done.returncode, 0)
            holds(f"{how} {number}", done.stderr, f"lind-boot: a set-user-ID or set-group-ID bit was set in a volume, where the host obeys it: {world.project}/a;")
            same("lines", done.stderr.count("set-user-ID"), 1)
            for name in ("a", "b"):
                (world.project / name).unlink(missing_ok=True)
        done = world.run(*how, "-v", ".", "--", "bash", "-c", "cp kept /tmp/a; chmod u+s /tmp/a; cp kept a; chmod 755 a; mkdir d; chmod g+s d; rm -r a d")
        same(f"{how}: elsewhere", (done.returncode, "set-user-ID" in done.stderr), (0, False))
    world.boot("session", "start", "bits", "-v", ".")
    done = world.boot("session", "exec", "bits", "--", "bash", "-c", "cp kept a; chmod u+s a")
    holds("a session", done.stderr, f"{world.project}/a;")
    same("once", "set-user-ID" in world.boot("session", "exec", "bits", "true").stderr, False)


TESTS = [links_in_the_place_of_results, results_where_the_command_writes, policies_are_out_of_reach, policies_have_names, variables_come_from_no_link,
         links_in_the_place_of_volumes, set_id_bits_are_told]
