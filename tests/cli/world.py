"""Shared parts of the tests of the command line: a root with one program, a home, and how a run must end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BOOT = TOP / "target" / "release" / "lind-boot"
SECONDS = 180
# Mounts of its own for the command that follows. Its mounts end with it.
PRIVATE = ["unshare", "--mount", "--propagation", "private", "bash", "-ec"]
PROGRAM = "int main(void) { return 7; }\n"


class Failed(Exception):
    """The reason of a failure."""


class Skipped(Exception):
    """Cannot be tested here."""


class World:
    """A root with one program, and a home."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.home = folder, folder / "root", folder / "home"
        (self.root / "bin").mkdir(parents=True)
        self.home.mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        source = folder / "seven.c"
        source.write_text(PROGRAM)
        self.run("scripts/lind_compile", "-o", str(self.root / "seven.cwasm"), str(source))

    def run(self, *command: str, **more: str | None) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in {**self.environment, **more}.items() if value is not None}
        return subprocess.run(command, cwd=TOP, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)

    def boot(self, *words: str, **more: str | None) -> subprocess.CompletedProcess[str]:
        return self.run(str(BOOT), "--root", str(self.root), *words, **more)

    def own_grates(self) -> str:
        """A directory of grates beside the usual one, with ten_grate in it."""
        folder = self.folder / "grates"
        folder.mkdir(exist_ok=True)
        (folder / "ten_grate.wasm").write_bytes((TOP / "build/grates/geteuid_grate.wasm").read_bytes())
        return str(folder)

    def in_private(self, script: str, **more: str | None) -> subprocess.CompletedProcess[str]:
        """A shell script with mounts of its own. $BOOT, $ROOT and $HOME are set."""
        if subprocess.run([*PRIVATE, "true"], capture_output=True, check=False).returncode:
            raise Skipped("no mounts of its own")
        return self.run(*PRIVATE, script, BOOT=str(BOOT), ROOT=str(self.root), **more)


def ends(done: subprocess.CompletedProcess[str], status: int, *said: str) -> None:
    missing = [text for text in said if text not in done.stderr]
    if done.returncode != status or missing:
        raise Failed(f"{' '.join(map(str, done.args))}\n  status {done.returncode}, expected {status}\n  {done.stderr!r}, expected {said}")
