"""Where a workload runs: on a copy of the directory, or on an overlay over the directory itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from bench.building import last_line
from bench.model import Missing, environment, found, in_image, need_boot

POLICY = Path(__file__).resolve().parents[3] / "tests" / "benchmarks" / "overlay" / "policy.toml"
IMAGE_PYTHON = "python3"
# Settings that a tool must not take from the machine it runs on. The list ends with settings of
# git: in a sandbox the directory may belong to another user.
SETTINGS = {"LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*", "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e",
            "GIT_COMMITTER_NAME": "n", "GIT_COMMITTER_EMAIL": "e", "PYTHONDONTWRITEBYTECODE": "1"}


def settings() -> dict[str, str]:
    return environment(SETTINGS)


def size_of(path: Path) -> tuple[int, int]:
    """Bytes and allocated bytes of a file, or of all files in a directory."""
    files = [path, *path.rglob("*")] if path.is_dir() else [path] if path.exists() else []
    stats = [file.lstat() for file in files]
    return sum(st.st_size for st in stats), sum(st.st_blocks * 512 for st in stats)


class Children:
    """The programs that do the work: in C or in Python, for the host and for a cage."""

    def __init__(self, kind: str, native: Path, cage: Path, script: Path, layers: Path | None = None) -> None:
        self.kind, self.native, self.cage, self.script = kind, native, cage, script
        # The program that times snapshots in a cage, without the start of one.
        self.layers = layers

    def for_host(self) -> list[str]:
        return [str(self.native)] if self.kind == "c" else [found("python3"), "-I", str(self.script)]

    def for_cage(self) -> list[str]:
        return [str(self.cage)] if self.kind == "c" else [IMAGE_PYTHON, "-I", f"/overlay-bench/{self.script.name}"]


class Column:
    """The bare command, in a copy of the directory."""

    name = "bare"

    def __init__(self, children: Children) -> None:
        self.children = children
        self.directory = self.place = Path()

    def check(self) -> None:
        """Raises Missing if this column cannot run here."""

    def git(self) -> str:
        return found("git")

    def open(self, lower: Path, place: Path) -> None:
        """Before a round: a copy that is on the disk already, so that an fsync of the workload does not write the copy."""
        self.place, self.directory = place, place / lower.name
        subprocess.run(["cp", "-a", str(lower), str(self.directory)], check=True)
        os.sync()

    def command(self, words: list[str]) -> list[str]:
        return [*self.children.for_host(), *words]

    def growth(self) -> tuple[int, int] | None:
        return None


class Cage(Column):
    """`lind-boot run` on a copy of the directory."""

    name = "cage"

    def __init__(self, children: Children, boot: Path, image: Path) -> None:
        super().__init__(children)
        self.boot, self.image = boot, image

    def check(self) -> None:
        need_boot(self.boot)
        if self.children.kind == "python":
            in_image(self.image, IMAGE_PYTHON)

    def git(self) -> str:
        return f"/bin/{in_image(self.image, 'git')}"

    def volume(self) -> str:
        return str(self.directory)

    def command(self, words: list[str]) -> list[str]:
        settings = [word for name, value in SETTINGS.items() for word in ("-e", f"{name}={value}")]
        tools = [] if self.children.kind == "c" else ["-v", f"{self.children.script.parent}:/overlay-bench:ro"]
        options = ["--image", str(self.image), "--policy", str(POLICY), "-v", self.volume(), "-w", str(self.directory), *tools, *settings]
        return [str(self.boot), "run", *options, "--", *self.children.for_cage(), *words]


class Overlay(Cage):
    """`lind-boot run` on an overlay over the directory, with a state of its own for each round."""

    name = "cage with overlay"

    def check(self) -> None:
        super().check()
        done = subprocess.run([str(self.boot), "run", "--help"], capture_output=True, text=True, check=False)
        if "overlay" not in done.stdout:
            raise Missing("this lind-boot has no overlays")

    def open(self, lower: Path, place: Path) -> None:
        self.place, self.directory = place, lower

    def volume(self) -> str:
        return f"{self.directory}:overlay={self.state}"

    @property
    def state(self) -> Path:
        return self.place / "state.db"

    @property
    def database(self) -> Path:
        return self.state

    def growth(self) -> tuple[int, int] | None:
        sizes = [size_of(file) for file in self.place.iterdir()]
        return sum(size[0] for size in sizes), sum(size[1] for size in sizes)


class OverlayDirectory(Overlay):
    """`lind-boot run` on an overlay whose state is a directory, in which blocks of large files are in files of their own."""

    name = "cage with overlay-dir"

    def volume(self) -> str:
        return f"{super().volume()}/"

    @property
    def state(self) -> Path:
        return self.place / "state"

    @property
    def database(self) -> Path:
        return self.state / "state.db"


class Overlayfs(Column):
    """The kernel's overlayfs, in a mount namespace of its own; for an ordinary user also in a user namespace."""

    name = "overlayfs"
    mount = 'mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work$3" "$2/merged"'
    after = ""
    options = ",userxattr" if os.geteuid() else ""

    def open(self, lower: Path, place: Path) -> None:
        self.place, self.lower, self.directory = place, lower, lower
        for name in ("upper", "work", "merged"):
            (place / name).mkdir(exist_ok=True)

    def command(self, words: list[str]) -> list[str]:
        namespaces = ["--mount", *(["--user", "--map-root-user"] if os.geteuid() else [])]
        script = f'set -e; {self.mount}; cd "$2/merged"; shift 3; status=0; "$@" || status=$?; {self.after} exit $status'
        inside = [found("sh"), "-c", script, "sh", str(self.lower), str(self.place), self.options]
        return [found("unshare"), *namespaces, *inside, *super().command(words)]

    def check(self) -> None:
        found("unshare")

    def tried(self, place: Path) -> None:
        """Raises Missing if it does not mount."""
        lower = place / "lower"
        lower.mkdir()
        self.open(lower, place)
        command = self.command([])
        done = subprocess.run([*command[: command.index(self.options) + 1], found("true")], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"{self.name} does not mount here: {last_line(done.stderr)}")

    def growth(self) -> tuple[int, int] | None:
        return size_of(self.place / "upper")


class FuseOverlayfs(Overlayfs):
    """An overlay by fuse-overlayfs, in a process of its own."""

    name = "fuse-overlayfs"
    mount = 'fuse-overlayfs -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work$3" "$2/merged"'
    after = 'cd /; umount "$2" 2>/dev/null || true;'
    options = ""

    def check(self) -> None:
        super().check()
        found("fuse-overlayfs")


def every_column(children: Children, boot: Path, image: Path) -> list[Column]:
    ours = [Cage(children, boot, image), Overlay(children, boot, image), OverlayDirectory(children, boot, image)]
    return [Column(children), *ours, Overlayfs(children), FuseOverlayfs(children)]
