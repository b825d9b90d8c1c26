"""Policies that are learned: the same run passes under one, and nothing more."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

from world import SECONDS, TOP, Failed, Skipped, World, holds, needs_tools, same

SCRIPT = """
mkdir -p out
for i in 1 2 3 4; do echo $i > out/$i; done
cat kept | sed s/k/K/ > result
T=$(mktemp); sort kept > $T; cp $T sorted; rm $T
sed -i s/K/k/ result
awk '{ print NR, $0 }' result
"""


def policy_of(world: World) -> str:
    return str(world.runtime / "learned.toml")


def learn(world: World, *words: str) -> str:
    """Learns from a run that has to end well; what it printed."""
    done = world.boot("learn", "-o", policy_of(world), *words)
    if done.returncode not in (0, 7):
        raise Failed(f"learning: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def under(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    return world.run("--policy", policy_of(world), *words)


def passes(world: World, printed: str, *words: str) -> None:
    done = under(world, *words)
    same("the same run", (done.returncode in (0, 7), done.stdout, done.stderr), (True, printed, ""))


def refused(world: World, what: str, part: str, *words: str) -> None:
    done = under(world, *words)
    same(f"{what}: ends well", done.returncode == 0, False)
    holds(what, done.stderr, "lind-boot: denied: ")
    holds(what, done.stderr, part)


def program(name: str) -> str:
    """Where a tool of the image really is: it may be one name of several."""
    return f"/bin/{(TOP / 'lindfs' / 'bin' / name).resolve().name}"


def script(world: World) -> tuple[str, ...]:
    needs_tools()
    (world.project / "work.sh").write_text(SCRIPT)
    return ("-v", ".:/p", "-w", "/p", "--", "bash", "work.sh")


def a_program_passes_and_nothing_more(world: World) -> None:
    """Without a shell: what needs no port."""
    before = ("-v", ".", "--", str(world.folder / "tool" / "probe"))
    (world.project / "other").write_text("other")
    words = (*before, "w:new", "r:kept")
    passes(world, learn(world, *words), *words)
    done = under(world, *before, "w:new", "r:kept", "r:other", "w:kept", "w:more", "c:192.0.2.1:22")
    same("the learned calls, and more", [line.endswith(": ok") for line in done.stdout.splitlines()[1:]], [True, True, False, False, False, False])
    for part in ("in the list read of the policy", "in the list write of the policy"):
        holds("denied", done.stderr, part)


def a_script_passes_and_nothing_more(world: World) -> None:
    words = script(world)
    passes(world, learn(world, *words), *words)
    text = Path(policy_of(world)).read_text()
    for part in ['"out/**"', '"/tmp/**"', f'"{program("sort")}"', '"result"']:
        holds("policy", text, part)
    if '"/p/**"' in text:
        raise Failed("the whole project may be changed")
    for what, part, command in [
        ("a file to read", "'/p/other' in the list read of the policy", "cat other"),
        ("a file to write", "'/p/kept' in the list write of the policy", "echo x > kept"),
        ("a new file", "'/p/new' in the list write of the policy", "echo x > new"),
        ("a program", "'/bin/bash' in the list programs of the policy", "/bin/bash -c true"),
        ("a call", "in the list calls of the policy", "ln -s a b"),
    ]:
        (world.project / "other").write_text("other")
        (world.project / "work.sh").write_text(command)
        refused(world, what, part, *words)


def learning_twice_adds(world: World) -> None:
    words = script(world)
    first = learn(world, *words)
    (world.project / "second.sh").write_text("cat kept > /tmp/x; rm /tmp/x; mkdir -p new; echo y > new/file; ls new")
    others = (*words[:-1], "second.sh")
    second = learn(world, *others)
    passes(world, first, *words)
    passes(world, second, *others)


def calls_that_do_the_same_are_one(world: World) -> None:
    """The next run may rename and remove by other calls than the one that was learned."""
    before = ("-v", ".", "--", str(world.folder / "tool" / "edit"))
    learn(world, *before, "w:a=x", "v:a=b", "d:b")
    names = Path(policy_of(world)).read_text()
    for name in ("renameat2", "renameat", "unlinkat", "openat"):
        holds("calls", names, f'"{name}"')
    passes(world, "", *before, "w:a=x", "V:a=b", "D:b")
    refused(world, "another", "'link' in the list calls of the policy", *before, "w:a=x", "h:a=b")


def connections_are_learned(world: World) -> None:
    probe = str(world.folder / "tool" / "probe")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        port, wrong = (str(one.getsockname()[1]) for one in (server, other))
        printed = learn(world, "--network", "host", "-v", ".", "--", probe, f"c:{port}")
        holds("policy", Path(policy_of(world)).read_text(), f'"127.0.0.1:{port}"')
        passes(world, printed, "-v", ".", "--", probe, f"c:{port}")
        done = under(world, "-v", ".", "--", probe, f"c:{wrong}", "c:192.0.2.1:9")
        same("another", done.stdout.splitlines()[1:], [f"connect {wrong}: Connection refused", "connect 192.0.2.1:9: Permission denied"])
        holds("another", done.stderr, "--allow 192.0.2.1:9")


def what_is_refused_is_not_learned(world: World) -> None:
    probe = str(world.folder / "tool" / "probe")
    tries = ("c:192.0.2.1:22", "w:.envrc", "m:.vscode", "r:kept")
    learn(world, "-v", ".", "--", probe, *tries)
    text = Path(policy_of(world)).read_text()
    holds("the allowed path, in the volume", text, '"kept"')
    same("the refused ones", [part in text for part in ["127.0.0.1", '".envrc"']], [False, False])
    lines = under(world, "-v", ".", "--", probe, *tries).stdout.splitlines()[1:]
    same("again", [line.endswith(": ok") for line in lines], [False, False, False, True])
    done = world.run("--learn", str(world.runtime / "more.toml"), "--policy", policy_of(world), "-v", ".", "--", probe)
    same("from lists", done.returncode, 125)
    holds("says what to do", done.stderr, "to add to it, use --learn")


def links_lead_nowhere_else(world: World) -> None:
    """A file is what it is, whatever name it gets."""
    probe = str(world.folder / "tool" / "probe")
    (world.project / "hidden").write_text("hidden")
    learn(world, "-v", ".", "--", probe, "r:kept", "w:kept")
    (world.project / "kept").unlink()
    (world.project / "kept").symlink_to("hidden")
    lines = under(world, "-v", ".", "--", probe, "r:kept", "w:kept").stdout.splitlines()[1:]
    same("through a link", [line.endswith("Permission denied") for line in lines], [True, True])


def nothing_learned_allows_nothing(world: World) -> None:
    done = world.boot("learn", "-o", policy_of(world), "-v", ".", "--", "no-such-command")
    same("status", done.returncode, 127)
    done = under(world, "-v", ".", "--", str(world.folder / "tool" / "probe"), "r:kept")
    same("runs nothing", (done.returncode, done.stdout), (125, ""))
    holds("says why", done.stderr, "no run that it learns from has ended")
    words = ("-v", ".", "--", str(world.folder / "tool" / "probe"), "r:kept")
    passes(world, learn(world, *words), *words)
    done = world.boot("learn", "-o", "/nowhere/p.toml", "true")
    same("status", done.returncode, 125)
    Path(policy_of(world)).write_text("netwrok = 1\n")
    same("no policy", world.boot("learn", "-o", policy_of(world), "true").returncode, 125)


def a_session_is_learned(world: World) -> None:
    """From all its commands, when it ends; and its policy holds for a session and for single runs."""
    probe = str(world.folder / "tool" / "probe.wasm")
    options = ("-v", ".", "-v", f"{world.folder}/tool:ro")

    def session(*more: str) -> list[str]:
        done = world.boot("session", "start", "learned", *options, *more)
        same("start", (done.returncode, done.stderr), (0, ""))
        ends = [world.boot("session", "exec", "learned", probe, *words).stdout.splitlines()[1:]
                for words in (["r:kept", "w:new"], ["w:/tmp/a", "r:.git/hooks"])]
        refused = world.boot("session", "exec", "learned", probe, "w:other").stdout if "--policy" in more else ""
        same("stop", world.boot("session", "stop", "learned").returncode, 0)
        same("refused", refused.splitlines()[1:], ["write other: Permission denied"] if "--policy" in more else [])
        return [end for one in ends for end in one]

    first = session("--learn", str(world.home / "learned.toml"))
    same("learning", [line.rsplit(": ", 1)[1] for line in first], ["ok"] * 4)
    holds("names it", (world.home / "learned.toml").read_text(), "# Learned from: session learned")
    same("again", session("--policy", str(world.home / "learned.toml")), first)
    lines = world.run("--policy", str(world.home / "learned.toml"), *options, probe, "r:kept", "w:new", "w:other").stdout.splitlines()[1:]
    same("alone", [line.rsplit(": ", 1)[1] for line in lines], ["ok", "ok", "Permission denied"])
    done = world.boot("session", "start", "learned", "--learn", "/nowhere/p.toml")
    same("no file", done.returncode, 125)
    holds("no file", done.stderr, "--learn /nowhere/p.toml")


def limits_have_headroom(world: World) -> None:
    words = script(world)
    printed = learn(world, "--memory", "1G", *words)
    text = Path(policy_of(world)).read_text()
    for limit in ["memory", "cpu", "cages", "files", "threads", "disk"]:
        holds("limits", text, f"\n{limit} = \"")
    passes(world, printed, *words)
    Path(policy_of(world)).write_text("".join(line if not line.startswith("cages") else "cages = 4\n" for line in text.splitlines(True)))
    holds("edited", under(world, *words).stderr, "limit cages")


def git_passes(world: World) -> None:
    if not any((TOP / "lindfs" / "bin" / f"git{suffix}").exists() for suffix in ("", ".cwasm", ".wasm")):
        raise Skipped("the image has no git")
    needs_tools()
    who = ("-e", "GIT_AUTHOR_NAME=a", "-e", "GIT_AUTHOR_EMAIL=a@b", "-e", "GIT_COMMITTER_NAME=a", "-e", "GIT_COMMITTER_EMAIL=a@b")
    work = "mkdir -p repo; cd repo; git init -q .; echo $RANDOM$RANDOM > a$1; git add .; git commit -qm x; git status -s; git log --oneline | wc -l"
    words = (*who, "-v", ".", "--", "bash", "-c", work, "bash")
    # `agent` lets nobody make a repository in a volume.
    policy = world.folder / "unprotected.toml"
    policy.write_text('network = "none"\n')
    policy.chmod(0o644)
    learn(world, "--policy", str(policy), *words, "1")
    done = under(world, *words, "1")
    same("again", (done.returncode, done.stdout.split()[-1:], done.stderr), (0, ["2"], ""))
    refused(world, "elsewhere", "denied", "-v", ".", "--", "git", "init", "-q", "other")


def names_that_a_shell_makes_up(world: World) -> None:
    """`>` does not ask for O_EXCL: the digits of such names are others in the next run, and no more. A file that is there the next time is
    asked about and renamed by other calls."""
    needs_tools()
    words = ("-v", ".", "--", "bash", "-c", "for i in 1 2; do echo $i >gen-$RANDOM$i.o; echo x >made.temporary; done; rm gen-* made.temporary; echo y >a; mv a b")
    learn(world, *words)
    for _ in range(2):
        passes(world, "", *words)
    for other in ("other.o", "other.temporary"):
        refused(world, other, "not among", "-v", ".", "--", "bash", "-c", f"echo x >{other}")


def the_output_may_be_another(world: World) -> None:
    """A copy into a file is made by other calls than one into a pipe."""
    needs_tools()
    words = ("-v", ".", "--", "cat", "kept")
    learn(world, *words)
    with open(world.folder / "output", "w+b") as output:
        done = world.begin("run", "--policy", policy_of(world), *words, stdout=output)
        said = done.communicate(timeout=SECONDS)[1]
        output.seek(0)
        same("into a file", (done.returncode, said, output.read()), (0, "", (world.project / "kept").read_bytes()))


def programs_have_rules_of_their_own(world: World) -> None:
    needs_tools()
    probe, policy = str(world.folder / "tool" / "probe.wasm"), world.runtime / "programs.toml"
    words = ("--policy", str(policy), "-v", ".", "--", "bash", "-c")
    script = f"{probe} r:kept w:kept c:192.0.2.1:22; echo x > kept; cp {probe} copy; chmod +x copy; ./copy r:kept w:kept"
    policy.write_text(f'[program."{probe}"]\nnetwork = "none"\nwrite = []\nread = ["{world.project}/**"]\nprograms = []\n')
    mounted = ("-v", f"{world.folder}/tool:{world.folder}/tool:ro")
    done = world.run(*mounted, *words, script)
    ends = [line.rsplit(": ", 1)[1] for line in done.stdout.splitlines() if ": " in line]
    same("the program, then its copy", ends, ["ok", "Read-only file system", "Permission denied", "ok", "ok"])
    holds("named", done.stderr, "denied: probe")
    same("the others", (world.project / "kept").read_text(), "x\n")
    done = world.run("--explain", *mounted, *words, script)
    holds("told", done.stdout, f"{probe}: no network but what the rules allow")
    policy.write_text('network = "host"\n[program."/bin/busybox"]\nallow = ["127.0.0.1:1"]\n')
    done = world.run(*mounted, *words, f"{probe} c:1; busybox nc 127.0.0.1 2; busybox sh -c '{probe} c:192.0.2.1:2'")
    found = [line for line in done.stdout.splitlines() if line.startswith("connect")]
    same("calls of its child", found, ["connect 1: Connection refused", "connect 192.0.2.1:2: Permission denied"])


def explain_tells_the_lists(world: World) -> None:
    learn(world, *script(world))
    done = under(world, "--explain", "-v", ".", "true")
    for part in ["can be read: ", f"can be changed: {world.project}/out/**", f"can be run: {program('sort')}", "calls: "]:
        holds("sentences", done.stdout, part)
    found = json.loads(under(world, "--explain", "--json", "-v", ".", "true").stdout)
    same("grates", [word for word in found["line"] if word.endswith("_grate")],
         ["resource_grate", "write_filter_grate", "net_grate", "seccomp_grate"])


TESTS = [calls_that_do_the_same_are_one, a_program_passes_and_nothing_more, a_script_passes_and_nothing_more, learning_twice_adds, connections_are_learned, what_is_refused_is_not_learned,
         links_lead_nowhere_else, nothing_learned_allows_nothing, a_session_is_learned, limits_have_headroom, git_passes, names_that_a_shell_makes_up, the_output_may_be_another, programs_have_rules_of_their_own,
         explain_tells_the_lists]
