"""Container engines with directories of their own, and lind-oci as their runtime."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from world import OCI, SECONDS, TOP, Failed, Skipped, World


def run(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=4 * SECONDS, check=False, **options)


class Podman:
    """podman with a storage of its own, and lind-oci as its runtime."""

    def __init__(self, folder: Path) -> None:
        self.options = ["--root", folder / "storage", "--runroot", folder / "run", "--tmpdir", folder / "tmp", "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs"]

    def __call__(self, *words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return run("podman", *self.options, "--runtime", OCI, *words, **options)

    def load(self, archive: Path) -> None:
        said = self("load", "-i", archive)
        if said.returncode:
            raise Failed(f"podman load: {said.stderr}")


@contextmanager
def podman(world: World) -> Iterator[Podman]:
    if not shutil.which("podman"):
        raise Skipped("podman is missing: apt-get install podman")
    folder = world.folder / f"podman{world.number}"
    world.number += 1
    folder.mkdir()
    engine = Podman(folder)
    try:
        yield engine
    finally:
        engine("rm", "--all", "--force")
        engine("rmi", "--all", "--force")


@contextmanager
def containerd(world: World) -> Iterator[list[str | Path]]:
    """The beginning of lines of ctr, for a containerd of our own."""
    if not shutil.which("containerd") or not shutil.which("ctr"):
        raise Skipped("containerd is missing: apt-get install containerd")
    folder = world.folder / "containerd"
    folder.mkdir()
    (folder / "config.toml").write_text(
        f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
        f'[grpc]\naddress = "{folder}/sock"\n'
    )
    shims = TOP / "deploy/runtime-class-manager"
    (folder / "lib/lind/runc").mkdir(parents=True)
    (folder / "lib/lind/runc/runc").symlink_to(OCI)
    env = os.environ | {"PATH": f"{shims}:{os.environ['PATH']}", "LIND_PREFIX": str(folder)}
    line = ["ctr", "--address", folder / "sock", "--namespace", "tests"]
    with server(folder, ["containerd", "--config", folder / "config.toml"], env, [*line, "version"]):
        yield line


@contextmanager
def docker(world: World) -> Iterator[list[str | Path]]:
    """The beginning of lines of docker, for a dockerd of our own."""
    if not shutil.which("dockerd") or not shutil.which("docker"):
        raise Skipped("dockerd is missing: apt-get install docker.io")
    folder = world.folder / "dockerd"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/runc").symlink_to(OCI)
    settings = {
        "data-root": f"{folder}/data", "exec-root": f"{folder}/exec", "pidfile": f"{folder}/pid", "hosts": [f"unix://{folder}/sock"],
        "iptables": False, "bridge": "none", "storage-driver": "vfs", "runtimes": {"lind": {"path": str(OCI)}}, "default-runtime": "lind",
    }
    (folder / "daemon.json").write_text(json.dumps(settings))
    env = os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
    line = ["docker", "--host", f"unix://{folder}/sock"]
    with server(folder, ["dockerd", "--config-file", folder / "daemon.json"], env, [*line, "info"]):
        yield line


@contextmanager
def server(folder: Path, line: list[str | Path], env: dict[str, str], asks: list[str | Path]) -> Iterator[None]:
    """A server, once it answers. Its mounts go with it."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
    try:
        due = time.monotonic() + SECONDS
        while run(*asks).returncode:
            if process.poll() is not None or time.monotonic() > due:
                raise Failed(f"{line[0]}: {(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)
        for mount in sorted((line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if str(folder) in line), reverse=True):
            run("umount", "--lazy", mount)
