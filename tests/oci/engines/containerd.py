"""containerd with its stock shim, which calls lind-oci: `ctr`, and the daemon for Kubernetes' tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import rootfs
from table import Failed, Skipped, Table

SUITE = "ctr"
IMAGE = "localhost/lind-test:latest"
SECONDS = 90
CONFIGURED = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
address = "{folder}/sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "localhost/lind-test:latest"
disable_tcp_service = true
stream_server_address = "127.0.0.1"
stream_server_port = "0"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{folder}/cni"
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "lind"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.lind]
runtime_type = "io.containerd.runc.v2"
pod_annotations = ["run.lind.*"]
container_annotations = ["run.lind.*"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.lind.options]
BinaryName = "{oci}"
"""
BRIDGE = {
    "cniVersion": "0.4.0", "name": "lind-test",
    "plugins": [
        {"type": "bridge", "bridge": "lindtest0", "isGateway": True, "ipMasq": True, "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.213.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ],
}


class Daemon:
    """A containerd of our own, with its files in one directory."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket = folder, folder / "sock"

    def ctr(self, *words: str, status: int = 0, namespace: str = "test", **options: Any) -> str:
        command = ["ctr", "-a", str(self.socket), "-n", namespace, *words]
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **options)
        if done.returncode != status:
            raise Failed(f"ctr {' '.join(words)}: status {done.returncode}, expected {status}\n{done.stderr}\n{done.stdout}")
        return done.stdout if status == 0 else done.stdout + done.stderr

    def run(self, name: str, *words: str, options: tuple[str, ...] = (), status: int = 0, **more: Any) -> str:
        place = ("--runtime", "io.containerd.runc.v2", "--runc-binary", str(rootfs.OCI))
        return self.ctr("run", *place, *options, IMAGE, name, *words, status=status, **more)


@contextmanager
def daemon(images: dict[str, dict[str, Any]]) -> Iterator[Daemon]:
    """Runs containerd with these images, and ends it with all that it has started."""
    if not shutil.which("containerd"):
        raise Skipped("no containerd")
    with tempfile.TemporaryDirectory(prefix="lind-containerd-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "cni").mkdir()
        (folder / "cni/10-lind.conflist").write_text(json.dumps(BRIDGE))
        configured = folder / "config.toml"
        configured.write_text(CONFIGURED.format(folder=folder, oci=rootfs.OCI))
        with (folder / "log").open("wb") as log:
            running = subprocess.Popen(["containerd", "--config", str(configured)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        here = Daemon(folder)
        try:
            until_ready(here, running)
            archive = rootfs.image(images, folder / "images.tar")
            for namespace in ("test", "k8s.io"):
                here.ctr("image", "import", str(archive), namespace=namespace)
            yield here
        finally:
            end(here, running)


def until_ready(here: Daemon, running: subprocess.Popen[bytes]) -> None:
    due = time.monotonic() + 30
    while subprocess.run(["ctr", "-a", str(here.socket), "version"], capture_output=True, check=False).returncode:
        if time.monotonic() > due or running.poll() is not None:
            raise Skipped(f"containerd does not start here: {(here.folder / 'log').read_text()[-500:]}")
        time.sleep(0.1)


def end(here: Daemon, running: subprocess.Popen[bytes]) -> None:
    """Ends the tasks, the shims and the daemon, and unmounts what is left, also if the daemon does not answer."""
    try:
        if running.poll() is None:
            end_tasks(here)
    except (subprocess.TimeoutExpired, OSError):
        pass
    finally:
        end_daemon(running)
        end_rest(here)


def end_tasks(here: Daemon) -> None:
    for namespace in ("test", "k8s.io"):
        ctr = ["ctr", "-a", str(here.socket), "-n", namespace, "task"]
        listed = subprocess.run([*ctr, "ls", "-q"], capture_output=True, text=True, check=False, timeout=60)
        for name in listed.stdout.split():
            subprocess.run([*ctr, "rm", "-f", name], capture_output=True, check=False, timeout=60)


def end_daemon(running: subprocess.Popen[bytes]) -> None:
    running.terminate()
    try:
        running.wait(timeout=30)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def end_rest(here: Daemon) -> None:
    for line in Path("/proc/mounts").read_text().splitlines()[::-1]:
        place = line.split()[1]
        if place.startswith(f"{here.folder}/"):
            subprocess.run(["umount", "-l", place], capture_output=True, check=False)
    for entry in Path("/proc").iterdir():
        # Shims outlive their daemon.
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if words and b"containerd-shim" in words[0] and str(here.socket).encode() in words:
            with suppress(ProcessLookupError):
                os.kill(int(entry.name), signal.SIGKILL)
    for link in re.findall(r"lindtest0", subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=False).stdout)[:1]:
        subprocess.run(["ip", "link", "del", link], capture_output=True, check=False)


def equals(found: object, expected: object, what: str = "") -> None:
    if found != expected:
        raise Failed(f"{what}: {found!r}, expected {expected!r}")


def run_prints(here: Daemon) -> None:
    equals(here.run("prints", "echo", "hello", options=("--rm",)), "hello\n")
    here.run("fails", "sh", "-c", "exit 7", options=("--rm",), status=7)


def life(here: Daemon) -> None:
    here.run("life", "sleep", "1000", options=("-d",))
    if "life" not in here.ctr("task", "ls"):
        raise Failed("the task is not listed")
    equals(here.ctr("task", "exec", "--exec-id", "one", "life", "echo", "inside"), "inside\n")
    here.ctr("task", "exec", "--exec-id", "two", "life", "sh", "-c", "exit 5", status=5)
    if len(here.ctr("task", "ps", "life").splitlines()) < 2:
        raise Failed("no processes")
    here.ctr("task", "pause", "life")
    if "PAUSED" not in here.ctr("task", "ls"):
        raise Failed(here.ctr("task", "ls"))
    here.ctr("task", "resume", "life")
    if "memory" not in here.ctr("task", "metrics", "life"):
        raise Failed("no metrics")
    here.ctr("task", "kill", "-s", "KILL", "life")
    until_stopped(here, "life")
    here.ctr("task", "rm", "life")
    here.ctr("container", "rm", "life")


def until_stopped(here: Daemon, name: str) -> None:
    due = time.monotonic() + 30
    while not any(line.split()[0] == name and "STOPPED" in line for line in here.ctr("task", "ls").splitlines()[1:]):
        if time.monotonic() > due:
            raise Failed(here.ctr("task", "ls"))
        time.sleep(0.05)


def limits(here: Daemon) -> None:
    found = here.run("limits", "sh", "-c", "cat /sys/fs/cgroup/memory.max", options=("--rm", "--memory-limit", str(300 << 20)))
    equals(found, f"{300 << 20}\n")


def mounts(here: Daemon) -> None:
    place = here.folder / "mounted"
    place.mkdir()
    here.run("mounts", "sh", "-c", "echo made >/data/file", options=("--rm", "--mount", f"type=bind,src={place},dst=/data,options=rbind:rw"))
    equals((place / "file").read_text(), "made\n")
    found = here.run("fixed", "sh", "-c", "echo no >/etc/x || echo refused", options=("--rm", "--read-only"))
    equals(found.splitlines()[-1:], ["refused"])


def identity(here: Daemon) -> None:
    equals(here.run("identity", "sh", "-c", "echo $A; pwd", options=("--rm", "--env", "A=b", "--cwd", "/tmp")), "b\n/tmp\n")


def default_seccomp(here: Daemon) -> None:
    equals(here.run("seccomp", "echo", "hello", options=("--rm", "--seccomp")), "hello\n")


def the_death_of_the_shim(here: Daemon) -> None:
    """The container ends with its shim, or is cleaned up by the daemon: nothing of it runs on."""
    here.run("orphan", "sleep", "1000", options=("-d",))
    pid = int(next(line.split()[1] for line in here.ctr("task", "ls").splitlines() if line.startswith("orphan")))
    shim = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(shim, signal.SIGKILL)
    due = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
        if time.monotonic() > due:
            raise Failed(f"process {pid} still runs")
        time.sleep(0.05)
    here.ctr("container", "rm", "orphan")


TASKS = 1000


def traces(here: Daemon) -> dict[str, list[str]]:
    """All that a task may leave: shims and runners, mounts, groups, states of the runtime, files of the daemon."""
    top = Path("/sys/fs/cgroup")
    processes = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if str(here.socket).encode() in words and b"containerd-shim" in words:
                processes.append(entry.name)
    return {
        "shims": sorted(processes),
        "mounts": sorted(place for line in Path("/proc/self/mountinfo").read_text().splitlines() if (place := line.split()[4]).startswith(f"{here.folder}/")),
        "groups": sorted(str(path) for pattern in ("test/many*", "*/test/many*") for path in top.glob(pattern)),
        "states": sorted(path.name for path in Path("/run/containerd/runc/test").glob("many*")),
        "tasks": sorted(path.name for path in (here.folder / "state/io.containerd.runtime.v2.task/test").glob("*")),
        "listed": [*here.ctr("task", "ls", "-q").split(), *here.ctr("container", "ls", "-q").split(), *here.ctr("snapshot", "ls").splitlines()],
    }


def many_tasks(here: Daemon) -> None:
    """1,000 tasks, four at a time: each prints what it should, and nothing of them is left."""
    before = traces(here)
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda number: here.run(f"many{number}", "echo", str(number), options=("--rm",)), range(TASKS)))
    equals([number for number, text in enumerate(said) if text != f"{number}\n"], [], "tasks that print something else")
    due = time.monotonic() + 30
    # The last shims end after their tasks.
    while (left := traces(here)) != before:
        if time.monotonic() > due:
            raise Failed(f"left: {[(what, found[:3]) for what, found in left.items() if found != before[what]]}")
        time.sleep(0.1)


CASES = [run_prints, life, limits, mounts, identity, default_seccomp, many_tasks, the_death_of_the_shim]


def run(table: Table, only: str = "") -> None:
    with daemon({IMAGE: {}}) as here:
        for case in CASES:
            if only in case.__name__:
                table.case(SUITE, case.__name__, case, here)
