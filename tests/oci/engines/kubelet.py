"""Pods as a kubelet makes them, by `crictl` on containerd with lind-oci as the handler `lind`.

critest has the runtime's side of most of this. Here the host's side is done, too, as a kubelet does it: it gives volumes to a group,
makes those that are projected, and probes containers by a command, by TCP and by HTTP."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import containerd
import install
from table import Failed, Skipped, Table

SUITE = "kubelet"
SECONDS = 60
GROUP = 2000


class Pod:
    """A pod, with a directory for what its kubelet makes."""

    def __init__(self, crictl: list[str], folder: Path, **security: Any) -> None:
        self.crictl, self.folder, self.number = crictl, folder, 0
        (folder / "log").mkdir()
        self.config = {
            "metadata": {"name": folder.name, "namespace": "default", "uid": folder.name, "attempt": 1},
            "hostname": "of-the-pod", "log_directory": str(folder / "log"),
            "linux": {"security_context": {"namespace_options": {"pid": 1}, **security}},
        }
        self.id = self.run("runp", "--runtime", "lind", self.written("pod", self.config)).strip()

    def written(self, name: str, value: object) -> str:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(value))
        return str(path)

    def run(self, *words: str, status: int = 0) -> str:
        done = subprocess.run([*self.crictl, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode != status:
            raise Failed(f"crictl {' '.join(words)}: status {done.returncode}, expected {status}\n{done.stderr}\n{done.stdout}")
        return done.stdout if status == 0 else done.stdout + done.stderr

    def container(self, *command: str, mounts: tuple[tuple[Path, str, bool], ...] = (), **security: Any) -> str:
        """A container that has been started. A mount is the host's path, the container's, and whether it is read-only."""
        self.number += 1
        name = f"c{self.number}"
        config = {
            "metadata": {"name": name, "attempt": 1}, "image": {"image": containerd.IMAGE}, "command": list(command), "log_path": f"{name}.log",
            "mounts": [{"host_path": str(host), "container_path": guest, "readonly": fixed} for host, guest, fixed in mounts],
            "linux": {"security_context": {"namespace_options": {"pid": 1}, **security}},
        }
        made = self.run("create", self.id, self.written(name, config), self.written("pod", self.config)).strip()
        self.run("start", made)
        return made

    def exec(self, container: str, *words: str, status: int = 0) -> str:
        # crictl prints line feeds of its own behind.
        return self.run("exec", "-s", container, *words, status=status).rstrip("\n") + "\n"

    def prints(self, container: str) -> str:
        """The text that a container prints, when it has ended."""
        until("the container ends", lambda: json.loads(self.run("inspect", container))["status"]["state"] == "CONTAINER_EXITED")
        return self.run("logs", container)

    def address(self) -> str:
        return str(json.loads(self.run("inspectp", self.id))["status"]["network"]["ip"])


def until(what: str, holds: Callable[[], bool]) -> None:
    due = time.monotonic() + 30
    while not holds():
        if time.monotonic() > due:
            raise Failed(f"it takes too long until {what}")
        time.sleep(0.05)


def equals(found: object, expected: object, what: str = "") -> None:
    if found != expected:
        raise Failed(f"{what}: {found!r}, expected {expected!r}")


@contextmanager
def pod(crictl: list[str], top: Path, name: str, **security: Any) -> Iterator[Pod]:
    folder = top / name
    folder.mkdir()
    made = Pod(crictl, folder, **security)
    try:
        yield made
    finally:
        made.run("rmp", "-f", made.id)


def fs_group(crictl: list[str], top: Path) -> None:
    """A kubelet gives a volume to the group and lets new files in it belong to it, and the containers get the group."""
    with pod(crictl, top, "fsgroup", supplemental_groups=[GROUP]) as here:
        volume = here.folder / "volume"
        volume.mkdir()
        (volume / "given").write_text("given\n")
        for path in (volume, volume / "given"):
            os.chown(path, 0, GROUP)
        volume.chmod(0o2775)
        (volume / "given").chmod(0o660)
        user = {"run_as_user": {"value": 1000}, "run_as_group": {"value": 1000}, "supplemental_groups": [GROUP]}
        made = here.container("sh", "-c", "id; cat /data/given; echo more >>/data/given; echo x >/data/new; mkdir /data/dir; stat -c '%u %g %a' /data/new", mounts=((volume, "/data", False),), **user)
        said = here.prints(made)
        for part in (f",{GROUP}", "given", f"1000 {GROUP} 644"):
            if part not in said:
                raise Failed(f"{part!r} is not in {said!r}")
        equals((volume / "given").read_text(), "given\nmore\n")
        of_new = (volume / "dir").stat()
        equals((of_new.st_uid, of_new.st_gid, bool(of_new.st_mode & stat.S_ISGID)), (1000, GROUP, True), "a new directory")
        other = here.container("sh", "-c", "cat /data/given || echo refused", mounts=((volume, "/data", False),), run_as_user={"value": 1001}, run_as_group={"value": 1001})
        equals("refused" in here.prints(other), True, "a container without the group")


def projected_volume(crictl: list[str], top: Path) -> None:
    """Links lead to a directory that is replaced as a whole: containers see the new contents, and cannot change them."""
    with pod(crictl, top, "projected") as here:
        volume = here.folder / "projected"
        volume.mkdir()

        def project(version: str) -> None:
            (volume / f"..{version}").mkdir()
            (volume / f"..{version}/token").write_text(f"{version}\n")
            (volume / "..data_tmp").symlink_to(f"..{version}")
            (volume / "..data_tmp").rename(volume / "..data")
            if not (volume / "token").is_symlink():
                (volume / "token").symlink_to("..data/token")

        project("first")
        made = here.container("sleep", "1000", mounts=((volume, "/var/run/secrets/kubernetes.io/serviceaccount", True),))
        path = "/var/run/secrets/kubernetes.io/serviceaccount/token"
        equals(here.exec(made, "cat", path), "first\n")
        project("second")
        equals(here.exec(made, "cat", path), "second\n", "after it was replaced")
        equals(here.exec(made, "sh", "-c", f"echo x 2>/dev/null >{path} || echo refused"), "refused\n")


def probes_by_commands(crictl: list[str], top: Path) -> None:
    with pod(crictl, top, "commands") as here:
        made = here.container("sh", "-c", "sleep 1000")
        here.exec(made, "test", "-e", "/tmp/healthy", status=1)
        here.exec(made, "touch", "/tmp/healthy")
        here.exec(made, "test", "-e", "/tmp/healthy")
        # A probe that takes too long fails, and leaves no process behind.
        here.run("exec", "-s", "--timeout", "1", made, "sleep", "987", status=1)
        until("the late probe has ended", lambda: "sleep 987" not in here.exec(made, "ps"))


def probes_by_tcp_and_http(crictl: list[str], top: Path) -> None:
    """A kubelet is on the host, and asks the pod by its address."""
    with pod(crictl, top, "network") as here:
        address = here.address()
        if not address:
            raise Skipped("the pod has no address")

        def connects() -> bool:
            try:
                with socket.create_connection((address, 8080), timeout=2):
                    return True
            except OSError:
                return False

        equals(connects(), False, "before there is a server")
        here.container("httpd", "-f", "-p", "8080", "-h", "/www")
        until("the port is open", connects)
        with urllib.request.urlopen(f"http://{address}:8080/", timeout=10) as answer:
            equals(answer.status, 200)
        try:
            urllib.request.urlopen(f"http://{address}:8080/missing", timeout=10)
            raise Failed("a page that is missing is found")
        except urllib.error.HTTPError as why:
            equals(why.code, 404)


def run_as_non_root(crictl: list[str], top: Path) -> None:
    """The user of the container is none of root's: no id, no capability, and no way to either."""
    user = {"run_as_user": {"value": 1000}, "run_as_group": {"value": 1000}, "no_new_privs": True, "capabilities": {"drop_capabilities": ["ALL"]}}
    with pod(crictl, top, "nonroot") as here:
        made = here.container("sh", "-c", "id -u; grep -E 'Cap(Eff|Prm|Bnd|Amb)' /proc/self/status; echo x >/etc/x || echo refused; /bin/privileges", **user)
        said = here.prints(made)
        equals(said.split("\n")[0], "1000")
        equals([line.split()[1] for line in said.splitlines() if line.startswith("Cap")], ["0" * 16] * 4, "capabilities")
        for part in ("refused", "1000"):
            if part not in said:
                raise Failed(f"{part!r} is not in {said!r}")
        image = json.loads(here.run("inspecti", containerd.IMAGE))
        equals(image["status"].get("username", ""), "", "the user of the image, which a kubelet looks at")


def read_only_root(crictl: list[str], top: Path) -> None:
    """Only volumes can be changed: an emptyDir, and the termination log."""
    with pod(crictl, top, "readonly") as here:
        volume, log = here.folder / "empty", here.folder / "termination"
        volume.mkdir()
        log.write_text("")
        script = "for p in / /etc /tmp /bin; do touch $p/x 2>/dev/null && echo $p; done; echo kept >/scratch/file; echo why >/dev/termination-log"
        made = here.container("sh", "-c", script, mounts=((volume, "/scratch", False), (log, "/dev/termination-log", False)), readonly_rootfs=True)
        equals(here.prints(made), "")
        equals(((volume / "file").read_text(), log.read_text()), ("kept\n", "why\n"))


def shared_by_the_pod(crictl: list[str], top: Path) -> None:
    """Containers of a pod have its host name, its network and its shared memory."""
    with pod(crictl, top, "shared") as here:
        first, second = here.container("sleep", "1000"), here.container("sleep", "1000")
        equals([here.exec(one, "hostname") for one in (first, second)], ["of-the-pod\n"] * 2)
        here.exec(first, "sh", "-c", "echo shared >/dev/shm/of-the-pod; httpd -p 127.0.0.1:9000 -h /www")
        equals(here.exec(second, "cat", "/dev/shm/of-the-pod"), "shared\n")
        equals(here.exec(second, "sh", "-c", "wget -q -O - http://127.0.0.1:9000/"), "Welcome to nginx!\n")


CASES = [fs_group, projected_volume, probes_by_commands, probes_by_tcp_and_http, run_as_non_root, read_only_root, shared_by_the_pod]


def run(table: Table, only: str = "") -> None:
    source = install.module(install.CRI_TOOLS)
    crictl = install.build(source, ["go", "build"], install.BUILT / "crictl", "./cmd/crictl")
    with containerd.daemon({containerd.IMAGE: {}}) as here, tempfile.TemporaryDirectory(prefix="lind-kubelet-") as made:
        command = [str(crictl), "--config", "/dev/null", "--runtime-endpoint", f"unix://{here.socket}", "--image-endpoint", f"unix://{here.socket}", "--timeout", f"{SECONDS}s"]
        for case in CASES:
            if only in case.__name__:
                table.case(SUITE, case.__name__, case, command, Path(made))
