"""The tools that tests/deploy/requirements.txt pins, and kustomize, in build/deploy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TOOLS = TOP / "build" / "deploy" / f"{sys.version_info.major}.{sys.version_info.minor}"
KUSTOMIZE = "sigs.k8s.io/kustomize/kustomize/v5@v5.7.1"


def get_tools() -> bool:
    """Whether the packages are there, after installing them if need be."""
    wanted, installed = Path(__file__).with_name("requirements.txt"), TOOLS / "installed.txt"
    if not (installed.exists() and installed.read_text() == wanted.read_text()):
        command = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "--upgrade", "--root-user-action=ignore",
                   "--disable-pip-version-check", "--target", str(TOOLS), "-r", str(wanted)]
        if subprocess.run(command, check=False).returncode:
            return False
        installed.write_text(wanted.read_text())
    sys.path.insert(0, str(TOOLS))
    return True


def kustomize() -> Path | None:
    """The program, after building it if need be. None without Go."""
    program = TOP / "build" / "deploy" / KUSTOMIZE.rpartition("@")[2] / "kustomize"
    if not program.exists():
        if not shutil.which("go"):
            return None
        program.parent.mkdir(parents=True, exist_ok=True)
        if subprocess.run(["go", "install", KUSTOMIZE], env=os.environ | {"GOBIN": str(program.parent)}, check=False).returncode:
            return None
    return program
