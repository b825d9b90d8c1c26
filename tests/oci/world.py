"""Shared parts of the tests of lind-oci: bundles with one program, and containers of them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
OCI = TOP / "target" / "release" / "lind-oci"
SECONDS = 60
# The end of our containers' names, by which their control groups are told from those of others.
OWN = f"-test-{os.getpid()}"


class Failed(Exception):
    """The reason of a failure."""


class Skipped(Exception):
    """Cannot be tested here."""


def ends(done: subprocess.CompletedProcess[str], status: int, *said: str) -> str:
    """The standard output of a command that ended so, with these texts on standard error."""
    missing = [text for text in said if text not in done.stderr]
    if done.returncode != status or missing:
        raise Failed(f"{' '.join(map(str, done.args))}\n  status {done.returncode}, expected {status}\n  {done.stderr!r}, expected {said}\n  {done.stdout!r}")
    return done.stdout


def equals(found: object, expected: object, what: str = "") -> None:
    if found != expected:
        raise Failed(f"{what}: {found!r}, expected {expected!r}")


def merged(into: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """`into` with the keys of `more`, in objects inside too."""
    for key, value in more.items():
        into[key] = merged(into[key], value) if isinstance(value, dict) and isinstance(into.get(key), dict) else value
    return into


class World:
    """A directory of states, and bundles that share one program."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.states, self.number = folder, folder / "states", 0
        self.program = folder / "guest.cwasm"
        done = subprocess.run([TOP / "scripts/lind_compile", "-O1", "-o", self.program, Path(__file__).with_name("guest.c")], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(done.stderr)

    def bundle(self, *args: str, **more: Any) -> Path:
        """A bundle whose process is the program with these arguments; `more` is merged into config.json."""
        self.number += 1
        bundle = self.folder / f"bundle{self.number}"
        root = bundle / "rootfs"
        (root / "bin").mkdir(parents=True)
        (root / "etc").mkdir()
        (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")
        for suffix in (".cwasm", ".wasm"):
            shutil.copy(self.program.with_suffix(suffix), root / "bin" / f"guest{suffix}")
        config: dict[str, Any] = {
            "ociVersion": "1.0.2",
            "process": {"args": ["guest", *args], "cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
            "root": {"path": "rootfs"},
            "hostname": "box",
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts", "network")]},
        }
        (bundle / "config.json").write_text(json.dumps(merged(config, more)))
        return bundle

    def oci(self, *words: str | Path, stdin: Any = subprocess.DEVNULL, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [str(OCI), "--root", str(self.states), *map(str, words)]
        return subprocess.run(command, stdin=stdin, capture_output=True, text=True, timeout=SECONDS, check=False, **options)

    def state(self, name: str) -> dict[str, Any]:
        return json.loads(ends(self.oci("state", name), 0))

    @contextmanager
    def container(self, bundle: Path, *options: str, start: bool = True) -> Iterator[Container]:
        """A container with its output in a file. It is deleted at the end, whatever has happened."""
        self.number += 1
        container = Container(self, f"c{self.number}{OWN}", bundle)
        try:
            container.create(*options)
            if start:
                ends(self.oci("start", container.name), 0)
            yield container
        finally:
            ends(self.oci("delete", "--force", container.name), 0)
            container.close()


class Container:
    """A container."""

    def __init__(self, world: World, name: str, bundle: Path) -> None:
        self.world, self.name, self.bundle = world, name, bundle
        self.pid_file, self.output = bundle / "pid", bundle / "output"

    def create(self, *options: str) -> None:
        with self.output.open("wb") as output:
            command = [str(OCI), "--root", str(self.world.states), "--log", str(self.bundle / "log"), "--log-format", "json", "create"]
            command += ["--bundle", str(self.bundle), "--pid-file", str(self.pid_file), *options, self.name]
            # The runner is this process's child once `create` has ended: see `subreaper`.
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=SECONDS, check=False)
        if done.returncode:
            raise Failed(f"create: status {done.returncode}: {self.text()}")

    @property
    def pid(self) -> int:
        return int(self.pid_file.read_text())

    def text(self) -> str:
        return self.output.read_text()

    def status(self) -> str:
        return str(self.world.state(self.name)["status"])

    def until(self, text: str) -> None:
        """Waits until it has printed a text."""
        due = time.monotonic() + 20
        while text not in self.text():
            if time.monotonic() > due:
                raise Failed(f"it has printed {self.text()!r}, and not {text!r}")
            time.sleep(0.005)

    def wait(self) -> int:
        """Its exit status, as the subreaper gets it."""
        return reaped(self.pid)

    def exec(self, *words: str, options: tuple[str, ...] = (), **more: Any) -> subprocess.CompletedProcess[str]:
        return self.world.oci("exec", *options, self.name, *words, **more)

    def kill(self, signal: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self.world.oci("kill", *options, self.name, signal)

    def close(self) -> None:
        try:
            os.waitpid(self.pid, os.WNOHANG)
        except (ChildProcessError, OSError, ValueError):
            pass


def reaped(pid: int) -> int:
    """Waits for a process that has fallen to this one, and returns its status as in a shell."""
    due = time.monotonic() + 20
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if time.monotonic() > due:
            raise Failed(f"process {pid} does not end")
        time.sleep(0.002)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def until_gone(pid: int) -> None:
    due = time.monotonic() + 10
    while runs(pid):
        if time.monotonic() > due:
            raise Failed(f"process {pid} is still there")
        time.sleep(0.005)


def subreaper() -> None:
    """Processes that their parents leave become this one's children, as with an engine."""
    import ctypes

    if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0):
        raise Failed("cannot become a subreaper")


def groups() -> list[Path]:
    """The directories of our containers' groups on this host."""
    top = Path("/sys/fs/cgroup")
    return sorted(path for pattern in ("lind-oci/*", "*/lind-oci/*") for path in top.glob(pattern) if path.is_dir() and path.name.endswith(OWN))


def terminal(path: Path) -> socket.socket:
    """A socket that gets the master of a terminal."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    listener.settimeout(20)
    return listener


def master(listener: socket.socket) -> int:
    connection, _ = listener.accept()
    with connection:
        _, files, _, _ = socket.recv_fds(connection, 4096, 1)
    return files[0]


def read_until(fd: int, text: bytes) -> bytes:
    """Reads from a terminal until a text comes."""
    seen = b""
    os.set_blocking(fd, False)
    due = time.monotonic() + 20
    while text not in seen:
        try:
            seen += os.read(fd, 4096)
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:
            break
        if time.monotonic() > due:
            break
    if text not in seen:
        raise Failed(f"the terminal shows {seen!r}, and not {text!r}")
    return seen
