"""The sandboxes: how each is made, runs a command, and gets a file."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from bench.building import last_line
from bench.model import REPOSITORY, Failed, NotOffered, environment, found, in_image, need_boot
from bench.sandbox.columns import BASE, WORKSPACE, Container

SECONDS = 120
# A program whose output is known.
ANSWER = "print(6*7)"
# Writes standard input to the file that $1 names.
WRITE = ("sh", "-c", 'cat >"$1"', "sh")


class Box:
    """A sandbox with a directory of the host that its commands can change. This one does not confine."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace

    def run(self, words: Sequence[str]) -> bytes:
        """The output of a command; raises Failed."""
        return output(self.outside(words, self.workspace))

    def write(self, name: str, data: bytes) -> None:
        """Writes a file of the directory."""
        (self.workspace / name).write_bytes(data)

    def outside(self, words: Sequence[str], directory: Path) -> list[str]:
        """The host's command that runs one in the sandbox, in the directory."""
        del directory
        return [found(words[0]), *words[1:]]


def output(command: Sequence[str], data: bytes = b"", directory: Path | None = None) -> bytes:
    try:
        done = subprocess.run(command, cwd=directory, env=environment({"LANG": "C"}), input=data, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"still running after {SECONDS} s") from error
    if done.returncode:
        raise Failed(f"exit status {done.returncode} of {command[0]}: {last_line(done.stderr.decode(errors='replace'))}")
    return done.stdout


class Column:
    """The bare command."""

    name = "bare"

    def check(self) -> None:
        """Raises Missing if this column cannot run here."""

    @contextlib.contextmanager
    def sandbox(self, workspace: Path) -> Iterator[Box]:
        """A new sandbox, which ends with the context."""
        yield Box(workspace)

    def first(self, home: Path) -> bytes:
        """The output of a Python program, of a user with this empty home; raises NotOffered."""
        return output([found("python3"), "-c", ANSWER], directory=home)


class BubblewrapBox(Box):
    """Bubblewrap keeps no sandbox between commands: each command makes its own."""

    def outside(self, words: Sequence[str], directory: Path) -> list[str]:
        return [found("bwrap"), *BASE, "--tmpfs", "/tmp", "--unshare-all", "--die-with-parent", "--new-session", "--bind", str(directory), WORKSPACE,
                "--chdir", WORKSPACE, *super().outside(words, directory)]

    def write(self, name: str, data: bytes) -> None:
        output(self.outside([*WRITE, name], self.workspace), data)


class Bubblewrap(Column):
    """Bubblewrap with all namespaces and the tools of the host."""

    name = "bwrap"

    def check(self) -> None:
        found("bwrap")

    @contextlib.contextmanager
    def sandbox(self, workspace: Path) -> Iterator[Box]:
        yield BubblewrapBox(workspace)

    def first(self, home: Path) -> bytes:
        raise NotOffered


class ContainerBox(Box):
    """A container that sleeps; its commands are those of `docker exec`."""

    def __init__(self, workspace: Path, program: str, container: str) -> None:
        super().__init__(workspace)
        self.program, self.container = program, container

    def outside(self, words: Sequence[str], directory: Path) -> list[str]:
        del directory
        return [self.program, "exec", "-i", self.container, *words]

    def write(self, name: str, data: bytes) -> None:
        output(self.outside([*WRITE, name], self.workspace), data)


class Containers(Column):
    """Docker or podman, with an image that is there."""

    def __init__(self, program: str, image: str) -> None:
        self.name, self.image = program, image

    def check(self) -> None:
        Container(self.name, self.image).check()

    @contextlib.contextmanager
    def sandbox(self, workspace: Path) -> Iterator[Box]:
        program, container = found(self.name), f"bench-{uuid.uuid4().hex}"
        words = ["-d", "--rm", "--pull=never", "--network=none", "--name", container, "-v", f"{workspace}:{WORKSPACE}", "-w", WORKSPACE]
        output([program, "run", *words, self.image, "sleep", "1000"])
        try:
            yield ContainerBox(workspace, program, container)
        finally:
            output([program, "kill", container])

    def first(self, home: Path) -> bytes:
        raise NotOffered


class LindBox(Box):
    """A sandbox of the package."""

    def __init__(self, workspace: Path, sandbox: object) -> None:
        super().__init__(workspace)
        self.sandbox = sandbox

    def run(self, words: Sequence[str]) -> bytes:
        result = self.sandbox.run(words, timeout=SECONDS)
        if result.exit_code:
            raise Failed(f"exit status {result.exit_code}: {last_line(result.stderr)}")
        return result.stdout_bytes

    def write(self, name: str, data: bytes) -> None:
        self.sandbox.files.write(name, data)


class Lind(Column):
    """The package of this checkout, under the policy `agent`."""

    name = "lind"

    def __init__(self, boot: Path, image: Path) -> None:
        self.boot, self.image = boot, image
        self.installed: tempfile.TemporaryDirectory[str] | None = None

    def first(self, home: Path) -> bytes:
        known = {"HOME": str(home), "PYTHONPATH": self.site(), "XDG_RUNTIME_DIR": str(home), "PATH": os.environ["PATH"]}
        words = [sys.executable, "-c", f"import lind; print(lind.run(['python3', '-c', '{ANSWER}']).stdout, end='')"]
        done = subprocess.run(words, cwd=home, env=known, capture_output=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise Failed(last_line(done.stderr.decode(errors="replace")))
        return done.stdout

    def site(self) -> str:
        """Where the wheel in dist is installed, by the first call; raises NotOffered if there is none."""
        wheels = sorted((REPOSITORY / "dist").glob("lind_sandbox-*.whl"))
        if not wheels:
            raise NotOffered
        if self.installed is None:
            self.installed = tempfile.TemporaryDirectory(prefix="packagebench.")
            words = ["install", "-q", "--no-index", "--root-user-action=ignore", "--disable-pip-version-check", "--target", self.installed.name]
            output([sys.executable, "-m", "pip", *words, str(wheels[-1])])
        return self.installed.name

    def check(self) -> None:
        need_boot(self.boot)
        in_image(self.image, "true")

    def package(self) -> ModuleType:
        os.environ["LIND_BOOT"] = str(self.boot)
        source = str(REPOSITORY / "python/src")
        if source not in sys.path:
            sys.path.insert(0, source)
        import lind

        return lind

    @contextlib.contextmanager
    def sandbox(self, workspace: Path) -> Iterator[Box]:
        lind = self.package()
        try:
            with lind.Sandbox(volumes={workspace: "rw"}, workdir=workspace, image=self.image) as sandbox:
                yield LindBox(workspace, sandbox)
        except lind.LindError as error:
            raise Failed(str(error)) from error


def every_column(boot: Path, image: Path, container_image: str) -> list[Column]:
    return [Column(), Lind(boot, image), Bubblewrap(), Containers("docker", container_image), Containers("podman", container_image)]
