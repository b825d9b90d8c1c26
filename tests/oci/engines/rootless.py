"""podman of an ordinary user, in the user namespace that it makes, with lind-oci as its runtime."""

from __future__ import annotations

import os
import pwd
import subprocess
import tempfile
from pathlib import Path

import podman
import rootfs
from table import Skipped, Table

SUITE = "rootless"
OF_NETWORKS = ("ports", "pods", "kube_play")
OF_GROUPS = ("stats", "pause", "read_only_and_limits")


def run(table: Table, only: str = "") -> None:
    # A name of this run: an account that exists is another's, and useradd refuses it.
    user = f"lind-oci-{os.getpid()}"
    if subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", user], capture_output=True, check=False).returncode:
        raise Skipped("cannot add a user")
    try:
        of_user(table, only, user)
    finally:
        subprocess.run(["pkill", "-KILL", "-u", user], check=False)
        subprocess.run(["userdel", "--remove", user], capture_output=True, check=False)


def of_user(table: Table, only: str, user: str) -> None:
    entry = pwd.getpwnam(user)
    reachable = subprocess.run(["runuser", "-u", user, "--", rootfs.OCI, "--version"], capture_output=True, check=False)
    if reachable.returncode:
        raise Skipped(f"another user cannot run {rootfs.OCI}")
    with tempfile.TemporaryDirectory(prefix="lind-rootless-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        has_tunnels = subprocess.run(["runuser", "-u", user, "--", "sh", "-c", "exec 3<>/dev/net/tun"], capture_output=True, check=False).returncode == 0
        here = podman.Podman(folder, ("runuser", "-u", user, "--"), "" if has_tunnels else "none")
        rootfs.archive(folder / "root.tar")
        for path in [folder, *folder.iterdir()]:
            os.chown(path, entry.pw_uid, entry.pw_gid)
        try:
            here.run("import", str(folder / "root.tar"), podman.IMAGE)
            for case in podman.CASES:
                if case.__name__ in OF_NETWORKS and not has_tunnels:
                    table.skip(SUITE, case.__name__, "this user may not open /dev/net/tun, which slirp4netns needs")
                elif case.__name__ in OF_GROUPS and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
                    table.skip(SUITE, case.__name__, "users have no control groups of the first version")
                elif only in case.__name__:
                    table.case(SUITE, case.__name__, case, here)
        finally:
            subprocess.run(here.command("system", "reset", "-f"), env=here.environment, capture_output=True, check=False, timeout=90)
