"""A root with an overlay: changes go to a state of the user's, and mounts in the container stay what they are."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from world import TOP, Failed, World, ends, equals

BOOT = TOP / "target" / "release" / "lind-boot"


@contextmanager
def states(world: World) -> Iterator[None]:
    """A directory of states of their own."""
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(world.folder / "state")
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before


def boot(*words: str | Path) -> str:
    return ends(subprocess.run([BOOT, *words], capture_output=True, text=True, timeout=60, check=False), 0)


def with_mounts(world: World, name: str, *args: str) -> tuple[Path, Path]:
    """A bundle with an overlay and mounts of all kinds in it, and the directory that is mounted."""
    outside = world.folder / f"outside-{name}"
    outside.mkdir()
    (outside / "file").write_text("text\n")
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/data/deep", "type": "bind", "source": str(outside), "options": ["rbind"]},
        {"destination": "/etc/hosts", "type": "bind", "source": str(outside / "file"), "options": ["rbind", "ro"]},
        {"destination": "/run/.hidden", "type": "bind", "source": str(outside / "file"), "options": ["rbind"]},
        {"destination": "/var/run/memory", "type": "tmpfs", "source": "tmpfs", "options": ["size=64k"]},
    ]
    linux = {"maskedPaths": ["/secret"], "readonlyPaths": ["/fixed"]}
    bundle = world.bundle(*args, mounts=mounts, linux=linux, annotations={"run.lind.overlay": name})
    root = bundle / "rootfs"
    for folder in ("var", "run", "fixed"):
        (root / folder).mkdir()
    (root / "var/run").symlink_to("/run")
    (root / "secret").write_text("secret")
    (root / "old").write_text("old\n")
    return bundle, outside


def overlay(world: World) -> None:
    with states(world):
        bundle, outside = with_mounts(world, "fix", "wait")
        root = bundle / "rootfs"
        with world.container(bundle) as container:
            container.until("waits")

            def guest(*words: str, status: int = 0, options: tuple[str, ...] = ()) -> str:
                return ends(container.exec("guest", *words, options=options), status)

            equals(guest("look", "/", "/etc", "/data/deep", "/etc/hosts", "/run/memory", "/fixed", "/dev/null").split(), ["rw", "rw", "rw", "r-", "rw", "r-", "rw"])
            equals(guest("cat", "/etc/hosts"), "text\n")
            equals(guest("cat", "/run/.hidden"), "text\n")
            equals(guest("cat", "/secret"), "")
            equals(guest("cat", "/sys/fs/cgroup/cgroup.type"), "domain\n")
            equals({*os.listdir(root), "made"} - set(guest("list", "/").split()), set(), "names in the root that are missing")
            guest("move", "/old", "/etc/new")
            guest("move", "/data", "/elsewhere", status=errno.EBUSY)
            guest("move", "/etc/hosts", "/hosts", status=errno.EXDEV)
            # The way back from a mount is the overlay's, by all kinds of paths.
            for words, options in ((["cat", "/data/deep/../../etc/new"], ()), (["cat", "../../etc/new"], ("--cwd", "/data/deep")), (["cat", "etc/hosts"], ("--cwd", "/"))):
                equals(guest(*words, options=options), "old\n" if "new" in words[1] else "text\n", " ".join(words))
            equals((sorted(os.listdir(outside)), sorted(os.listdir(root / "etc"))), (["file", "made"], ["hosts", "passwd"]), "changes on the host")
            ends(container.kill("TERM"), 0)
            equals(container.wait(), 3)
        equals(sorted(boot("diff", "fix").splitlines()), ["A etc/made", "A made", "R old -> etc/new"], "the state")
        # The same container goes on where it was, and another one does not get these changes.
        with world.container(bundle) as container:
            container.until("waits")
            equals(ends(container.exec("guest", "cat", "/etc/new"), 0), "old\n")
            ends(container.exec("guest", "mkdir", "/last"), 0)
            # Nothing that was changed before is lost by this.
            ends(container.kill("KILL"), 0)
            equals(container.wait(), 137)
        if "A last/" not in boot("diff", "fix"):
            raise Failed(f"killed: {boot('diff', 'fix')!r}")
        other = world.bundle("exit", "0", annotations={"run.lind.overlay": "fix"})
        ends(world.oci("run", "--bundle", other, "other"), 1, "belongs to another lower directory")
        boot("apply", "fix", "old", "etc/new")
        equals(((root / "etc/new").read_text(), (root / "old").exists(), (root / "made").exists()), ("old\n", False, False))
        boot("discard", "fix")
        equals(boot("diff", "fix"), "")


def overlay_with_an_own_program(world: World) -> None:
    """A program that the container has made is run, by an ordinary user too; `delete --force` keeps changes."""
    with states(world):
        bundle, _ = with_mounts(world, "own", "wait")
        with world.container(bundle) as container:
            container.until("waits")
            ends(container.exec("guest", "move", "/bin/guest.cwasm", "/bin/other.cwasm"), 0)
            equals(ends(container.exec("other", "echo", "hi", options=("--user", "7:7")), 0), "hi\n")
            ends(container.exec("other", "mkdir", "/denied", options=("--user", "7:7")), errno.EACCES)
        if "R bin/guest.cwasm -> bin/other.cwasm" not in boot("diff", "own"):
            raise Failed(f"deleted: {boot('diff', 'own')!r}")


def wrong_overlays(world: World) -> None:
    with states(world):
        for name, said in (("../x", "names a file of the host"), ("a b", "not the name of a state"), ("-x", "not the name of a state")):
            ends(world.oci("run", "--bundle", world.bundle("exit", "0", annotations={"run.lind.overlay": name}), "wrong"), 1, said)
        ends(world.oci("run", "--bundle", world.bundle("exit", "0", root={"readonly": True}, annotations={"run.lind.overlay": "x"}), "wrong"), 1, "root.readonly")


TESTS = [overlay, overlay_with_an_own_program, wrong_overlays]
