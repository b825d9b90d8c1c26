"""Faults: what is left of containers when processes are killed at any step, when walls cannot be put up, when there are many."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import bundles
import rootfs
from bundles import Runtime
from table import Failed, Skipped, Table

SUITE = "faults"
MANY = 200
ROUNDS = 1000
# The variable with the directory of a run, which processes hand on to those that they start.
MARK = "LIND_FAULTS"
# Calls without which a wall is missing.
WALLS = ["unshare", "mount", "move_mount", "open_tree", "mount_setattr", "chroot", "seccomp", "landlock_create_ruleset", "landlock_restrict_self", "capset"]


class World:
    """A runtime, and bundles."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.oci = folder, Runtime(str(rootfs.OCI), folder)
        self.sleeper = bundles.bundle(folder / "sleeper", ["sleep", "1000"])
        self.true = bundles.bundle(folder / "true", ["true"])

    def name(self, word: str) -> str:
        """The id of a container that no other run has."""
        return f"{word}-{os.getpid()}"

    def left(self) -> dict[str, object]:
        """All that containers of this run could leave. Others of the host come and go."""
        top = Path("/sys/fs/cgroup")
        states = self.oci.states
        return {
            "groups": sorted(str(path) for pattern in ("lind-oci/*", "*/lind-oci/*") for path in top.glob(pattern) if path.name.endswith(self.name("")) and path.is_dir()),
            "mounts": sorted(place for line in Path("/proc/self/mountinfo").read_text().splitlines() if (place := line.split()[4]).startswith(f"{self.folder}/")),
            "processes": processes(self.folder),
            "states": sorted(path.name for path in states.iterdir()) if states.is_dir() else [],
        }

    def check(self, before: dict[str, object], what: str) -> None:
        due = time.monotonic() + 20
        while (after := self.left()) != before:
            if time.monotonic() > due:
                raise Failed(f"{what}: {after}, expected {before}")
            time.sleep(0.05)


def processes(folder: Path) -> int:
    """How many processes of ours run that have the mark of this run."""
    mark = f"{MARK}={folder}".encode()
    count = 0
    for entry in Path("/proc").iterdir():
        try:
            target = os.readlink(entry / "exe") if entry.name.isdigit() else ""
            if str(rootfs.OCI.parent) not in target or mark not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        count += state not in "ZX"
    return count


def steps(command: list[str]) -> list[tuple[str, int]]:
    """The system calls of a command's first thread: name, and how often it was made before."""
    with tempfile.NamedTemporaryFile("r") as log:
        subprocess.run(["strace", "-o", log.name, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120)
        counts: Counter[str] = Counter()
        found = []
        for line in log.read().splitlines():
            name = re.match(r"(\w+)\(", line)
            if name:
                counts[name[1]] += 1
                found.append((name[1], counts[name[1]]))
    return found


def kill_at(step: tuple[str, int], command: list[str]) -> None:
    inject = f"inject={step[0]}:signal=KILL:when={step[1]}"
    subprocess.run(["strace", "-o", "/dev/null", "-e", f"trace={step[0]}", "-e", inject, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120)


def chosen(found: list[tuple[str, int]], most: int = 150) -> list[tuple[str, int]]:
    """Calls that change something, and of the others as many as there is time for."""
    changing = {"openat", "mkdir", "write", "rename", "fsync", "fdatasync", "unlink", "rmdir", "clone3", "clone", "vfork", "sendmsg", "sendto", "bind", "listen", "recvfrom", "read", "wait4", "exit_group", "unshare", "flock", "kill", "socketpair", "connect", "mknod", "chmod", "execve"}
    important = [step for step in found if step[0] in changing]
    if len(important) <= most:
        return important
    every = len(important) / most
    return [important[int(at * every)] for at in range(most)]


def killed_at_each_call(world: World, words: list[str | Path], before_it: list[list[str | Path]], name: str) -> None:
    if not shutil.which("strace"):
        raise Skipped("no strace")
    before = world.left()

    def prepared() -> None:
        for one in before_it:
            world.oci.quiet(*one)

    prepared()
    found = chosen(steps(world.oci.command(*words)))
    world.oci.run("delete", "--force", name, status=None)
    if len(found) < 20:
        raise Failed(f"strace shows {len(found)} calls alone")
    for step in found:
        prepared()
        kill_at(step, world.oci.command(*words))
        world.oci.run("delete", "--force", name)
        world.check(before, f"killed at {step[0]} number {step[1]}")
    if world.oci.quiet("run", "--bundle", world.true, name):
        raise Failed("the id cannot be used again")


def create_killed(world: World) -> None:
    step = world.name("step")
    killed_at_each_call(world, ["create", "--bundle", world.sleeper, step], [], step)


def start_killed(world: World) -> None:
    step = world.name("step")
    killed_at_each_call(world, ["start", step], [["create", "--bundle", world.sleeper, step]], step)


def delete_killed(world: World) -> None:
    step = world.name("step")
    killed_at_each_call(world, ["delete", "--force", step], [["run", "-d", "--bundle", world.sleeper, step]], step)


def exec_killed(world: World) -> None:
    process = world.folder / "process.json"
    process.write_text('{"args": ["sleep", "1000"], "cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}}')
    step = world.name("step")
    killed_at_each_call(world, ["exec", "--process", process, "--detach", step], [["run", "-d", "--bundle", world.sleeper, step]], step)


def full_disk(world: World) -> None:
    """A directory of states with more and more room: a container is there, or nothing of it."""
    place = world.folder / "small"
    place.mkdir()
    oci = Runtime(str(rootfs.OCI), world.folder)
    oci.states = place / "states"
    worked = 0
    for pages in range(1, 24):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"nr_blocks={pages},nr_inodes={8 + pages}", "none", place], check=True)
        try:
            created = oci.quiet("create", "--bundle", world.true, world.name("small"))
            if created == 0:
                worked += 1
                oci.run("start", world.name("small"))
                oci.run("delete", "--force", world.name("small"))
            if oci.states.is_dir() and list(oci.states.iterdir()):
                raise Failed(f"{pages} pages: left {[str(path) for path in oci.states.rglob('*')]}")
        finally:
            subprocess.run(["umount", "-l", place], check=False)
    if worked == 0:
        raise Failed("no container was created with any room")


def walls_taken_away(world: World) -> None:
    """Each call that puts a wall up fails: no program runs."""
    if not shutil.which("strace"):
        raise Skipped("no strace")
    bundle = bundles.bundle(world.folder / "toucher", ["touch", "/ran"])
    for call in WALLS:
        command = ["strace", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error=EPERM", *world.oci.command("run", "--bundle", bundle, world.name("walled"))]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
        ran = bundle / "rootfs/ran"
        if ran.exists():
            ran.unlink()
            raise Failed(f"with {call} refused the program has run")
        if done.returncode == 0 or not done.stderr.strip():
            raise Failed(f"with {call} refused: status {done.returncode}, {done.stderr!r}")
    if world.oci.quiet("run", "--bundle", bundle, world.name("walled")) or not (bundle / "rootfs/ran").exists():
        raise Failed("with all walls it does not run")


def the_death_of_an_exec(world: World) -> None:
    """SIGKILL of the process that stands for an exec, many times: the container goes on, and its processes are gone."""
    world.oci.quiet("run", "-d", "--bundle", world.sleeper, world.name("stood"))
    try:
        pid_file, process = world.folder / "exec.pid", world.folder / "process.json"
        process.write_text('{"args": ["sleep", "1000"], "cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}}')
        for _ in range(20):
            world.oci.quiet("exec", "--process", process, "--detach", "--pid-file", pid_file, world.name("stood"))
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
        due = time.monotonic() + 20
        while (found := world.oci.run("exec", world.name("stood"), "sh", "-c", "ls -d /proc/[0-9]* | wc -l").strip()) not in ("3", "4", "5"):
            if time.monotonic() > due:
                raise Failed(f"{found} processes in the container")
            time.sleep(0.1)
    finally:
        world.oci.run("delete", "--force", world.name("stood"))


def many_at_once(world: World) -> None:
    before = world.left()
    started = [subprocess.Popen(world.oci.command("run", "-d", "--bundle", world.sleeper, world.name(f"many{number}")), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for number in range(MANY)]
    failed = [one.wait(timeout=300) for one in started]
    listed, seen = world.oci.run("list").count(" running "), processes(world.folder)
    for number in range(MANY):
        world.oci.run("delete", "--force", world.name(f"many{number}"))
    if any(failed) or listed != MANY:
        raise Failed(f"{listed} of {MANY} run; {sum(map(bool, failed))} were not created")
    if seen < MANY:
        raise Failed(f"{seen} processes are seen, so what they leave would not be")
    world.check(before, "after all")


def many_in_a_row(world: World) -> None:
    before, row = world.left(), world.name("row")
    for number in range(ROUNDS):
        for words in (["create", "--bundle", world.true, row], ["start", row], ["delete", "--force", row]):
            if world.oci.quiet(*words):
                raise Failed(f"number {number}: {words[0]} failed")
    world.check(before, f"after {ROUNDS}")


CASES = [create_killed, start_killed, delete_killed, exec_killed, the_death_of_an_exec, full_disk, walls_taken_away, many_at_once, many_in_a_row]


def run(table: Table, only: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="lind-faults-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)
        world = World(folder)
        os.environ[MARK] = str(folder)
        try:
            for case in CASES:
                if only in case.__name__:
                    table.case(SUITE, case.__name__, case, world)
        finally:
            del os.environ[MARK]
