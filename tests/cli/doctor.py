"""`lind-boot doctor`: that it sees what holds, and what does not, where something of the host is missing."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Callable

from world import BOOT, SECONDS, Failed, Skipped, World, ends

NOBODY = 65534
LANDLOCK = [444, 445, 446]
UNSHARE = 272
SECCOMP = 317
NAMESPACES = 0x10020000  # CLONE_NEWUSER and CLONE_NEWNS
EPERM, ENOSYS = 1, 38
# The walls that hold on every kernel.
BY_KERNEL = {"read", "write", "port", "socket", "abstract", "signal", "exec"}


def refusing(numbers: list[int], error: int, bits: int = 0) -> Callable[[], None]:
    """A function that makes the calling process, and all that it starts, find these calls refused;
    with `bits`, where the first argument has one of them."""
    def install() -> None:
        code = [(0x20, 0, 0, 0)]  # the number
        for number in numbers:
            # To what refuses it, which comes next, or over that.
            code += [(0x15, 0, 3 if bits else 1, number)] + ([(0x20, 0, 0, 16), (0x45, 0, 1, bits)] if bits else [])
            code += [(0x06, 0, 0, 0x50000 | error)] + ([(0x20, 0, 0, 0)] if bits else [])
        code.append((0x06, 0, 0, 0x7fff0000))
        program = b"".join(struct.pack("<HBBI", *step) for step in code)
        libc = ctypes.CDLL(None, use_errno=True)
        buffer = ctypes.create_string_buffer(program)
        filter_program = struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(buffer))
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter_program, 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")
    return install


def diagnosis(world: World, *before: str, user: int | None = None, home: str | None = "", preexec: Callable[[], None] | None = None,
              words: tuple[str, ...] = ("--json",), **more: object) -> subprocess.CompletedProcess[str]:
    """The doctor's output, started by `before`, as a user, with the calls that `preexec` leaves."""
    environment = dict(world.environment)
    if home == "":
        folder = world.folder / f"doctor-{user}"
        folder.mkdir(exist_ok=True)
        if user is not None:
            os.chown(folder, user, user)
        home = str(folder)
    environment.pop("HOME")
    if home is not None:
        environment["HOME"] = home
    streams: dict[str, object] = {"stdin": subprocess.DEVNULL} | more
    return subprocess.run([*before, str(BOOT), "doctor", *words], env=environment, user=user, group=user, extra_groups=[] if user else None,
                          preexec_fn=preexec, capture_output=True, text=True, timeout=SECONDS, check=False, **streams)


def ordinary() -> int | None:
    """The user of most tests: never root."""
    return NOBODY if os.geteuid() == 0 else None


def root() -> None:
    if os.geteuid() != 0:
        raise Skipped("not root")


def found(done: subprocess.CompletedProcess[str], holds: bool) -> dict:
    if not done.stdout.startswith("{"):
        raise Failed(f"{done.args}: status {done.returncode}: {done.stdout}{done.stderr}")
    said = json.loads(done.stdout)
    if said["holds"] != holds or done.returncode != (0 if holds else 1):
        raise Failed(f"{done.args}: status {done.returncode}: {said['less']}, {done.stderr}")
    return said


def refused(said: dict, wall: str) -> set[str]:
    return {name for name, walls in said["trials"].items() if walls[wall] and walls[wall]["refused"]}


def allowed(said: dict, wall: str) -> set[str]:
    return {name for name, walls in said["trials"].items() if walls[wall] and walls[wall]["refused"] is False}


def same(what: str, got: object, expected: object) -> None:
    if got != expected:
        raise Failed(f"{what}: {got}, expected {expected}")


def advice(said: dict, part: str) -> None:
    if not any(part in less["advice"] for less in said["less"]):
        raise Failed(f"no advice has {part!r}: {said['less']}")


def everything_holds(world: World) -> None:
    for user in {None, ordinary()}:
        said = found(diagnosis(world, user=user), True)
        same("kernel", refused(said, "kernel"), BY_KERNEL | {"protected"})
        same("root", refused(said, "root"), {"read", "write", "socket", "exec"})
        same("landlock", refused(said, "landlock"), {"read", "write", "read-at", "write-at", "abstract", "signal", "exec"})
        same("seccomp", refused(said, "seccomp"), {"signal", "start", "mount", "exec"})
        same("all", refused(said, "all walls"), set(said["trials"]) - {"port", "protected"})
    done = diagnosis(world, words=())
    ends(done, 0)
    for part in ("Everything that is promised holds.", "read a file outside", "filter of calls    in force"):
        if part not in done.stdout:
            raise Failed(f"{part!r} is not in {done.stdout}")
    bait = world.folder / "bait"
    bait.mkdir()
    ends(diagnosis(world, "env", f"TMPDIR={bait}"), 0)
    same("files that are left", list(bait.iterdir()), [])


def without_namespaces(world: World) -> None:
    """Neither root nor user namespaces: lind-boot keeps the mounts, and the doctor says what that is worth."""
    said = found(diagnosis(world, user=ordinary(), preexec=refusing([UNSHARE], EPERM, NAMESPACES)), False)
    same("kernel", refused(said, "kernel"), BY_KERNEL | {"protected"})
    # Landlock knows nothing of sockets that are files: a root of its own keeps from them.
    same("all", allowed(said, "all walls"), {"socket"})
    advice(said, "user namespaces are permitted")
    done = diagnosis(world, user=ordinary(), words=(), preexec=refusing([UNSHARE], EPERM, NAMESPACES))
    ends(done, 1)
    if "Less than promised:" not in done.stdout or "mounts of its own  no (" not in done.stdout:
        raise Failed(done.stdout)


def namespaces_by_sysctl(world: World) -> None:
    """The setting that forbids them is named, with what to set."""
    root()
    script = 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    before = ("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh")
    advice(found(diagnosis(world, *before), False), "sysctl -w user.max_user_namespaces=")


def without_landlock(world: World) -> None:
    for user in {None, ordinary()}:
        said = found(diagnosis(world, user=user, preexec=refusing(LANDLOCK, ENOSYS)), False)
        same("kernel", refused(said, "kernel"), BY_KERNEL | {"protected"})
        # The gaps that remain: a directory that is open, and sockets without a file.
        same("all", allowed(said, "all walls"), {"read-at", "write-at", "abstract"})
        advice(said, "CONFIG_SECURITY_LANDLOCK")


def without_seccomp(world: World) -> None:
    for user in {None, ordinary()}:
        said = found(diagnosis(world, user=user, preexec=refusing([SECCOMP], ENOSYS)), False)
        same("kernel", refused(said, "kernel"), BY_KERNEL | {"protected"})
        # The other walls know nothing of new processes.
        same("all", allowed(said, "all walls"), {"start"})
        if not any(less["what"].startswith("filter of calls: not in force") for less in said["less"]):
            raise Failed(f"{said['less']}")
        advice(said, "CONFIG_SECCOMP_FILTER")


def without_proc(world: World) -> None:
    root()
    before = ("unshare", "--mount", "--propagation", "private", "sh", "-c", 'umount -l /proc; exec "$@"', "sh")
    said = found(diagnosis(world, *before), True)
    same("kernel", refused(said, "kernel"), BY_KERNEL | {"protected"})
    if not any(fact["name"] == "/proc" and "not mounted" in fact["value"] for fact in said["host"]):
        raise Failed(f"{said['host']}")
    # A user namespace is set up by files in /proc.
    user = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
    folder = world.folder / f"doctor-{NOBODY}"
    folder.mkdir(exist_ok=True)
    os.chown(folder, NOBODY, NOBODY)
    found(diagnosis(world, *before, *user, home=str(folder)), False)


def inside_bubblewrap(world: World) -> None:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise Skipped("no bubblewrap")
    for user in {None, ordinary()}:
        found(diagnosis(world, bwrap, "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-user", "--unshare-pid", user=user), True)


def inside_a_cage(world: World) -> None:
    shutil.copy(BOOT, world.root / "boot")
    ends(world.boot("boot", "doctor"), 126, "boot: a program for the host, not for a cage")


def without_a_home(world: World) -> None:
    for home in (None, "/proc", "/nowhere/at/all"):
        found(diagnosis(world, user=ordinary(), home=home), True)


def closed_streams(world: World) -> None:
    done = diagnosis(world, "sh", "-c", 'exec "$@" <&-', "sh")
    found(done, True)
    # Nobody can be told, but nothing goes wrong.
    done = subprocess.run(["sh", "-c", '"$0" doctor <&- >&- 2>&-', str(BOOT)], env=world.environment, timeout=SECONDS, check=False)
    same("status", done.returncode, 125)


def nowhere_for_bait(world: World) -> None:
    done = subprocess.run([BOOT, "doctor"], env=world.environment | {"TMPDIR": "/nowhere"}, capture_output=True, text=True, timeout=SECONDS, check=False)
    ends(done, 125, "/nowhere/lind-doctor-", "TMPDIR")


TESTS = [everything_holds, without_namespaces, namespaces_by_sysctl, without_landlock, without_seccomp, without_proc, inside_bubblewrap, inside_a_cage,
         without_a_home, closed_streams, nowhere_for_bait]
