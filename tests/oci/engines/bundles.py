"""Bundles for the runtimes alone: the same config.json for lind-oci, crun and runc."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import rootfs
from table import Failed

CONFIG = {
    "ociVersion": "1.0.2",
    "process": {"cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}},
    "root": {"path": "rootfs"},
    "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
    "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts", "network")]},
}


class Runtime:
    """A runtime with a directory of states."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        self.states = folder / f"states-{Path(program).name}"

    def command(self, *words: str | Path) -> list[str]:
        return [self.program, "--root", str(self.states), *map(str, words)]

    def run(self, *words: str | Path, status: int | None = 0) -> str:
        done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        if status is not None and done.returncode != status:
            raise Failed(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stderr}")
        return done.stdout

    def quiet(self, *words: str | Path) -> int:
        """The same without pipes, which a container would keep open."""
        return subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=False).returncode

    def said(self, *words: str | Path) -> str:
        """The messages of a command that fails."""
        done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        return done.stderr.strip()


def bundle(folder: Path, args: list[str], program: Path | None = None) -> Path:
    """A bundle with busybox for cages, or with one program of the host as /bin/program."""
    root = folder / "rootfs"
    if program is None:
        folder.mkdir(parents=True, exist_ok=True)
        rootfs.copy(root)
    else:
        for name in ("bin", "proc", "dev", "sys"):
            (root / name).mkdir(parents=True)
        shutil.copy(program, root / "bin/program")
    config = json.loads(json.dumps(CONFIG))
    config["process"]["args"] = args
    (folder / "config.json").write_text(json.dumps(config))
    return folder
