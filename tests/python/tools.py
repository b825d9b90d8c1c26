"""The tools that python/requirements.txt pins, in build/python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PACKAGE = TOP / "python"
TOOLS = TOP / "build" / "python" / f"{sys.version_info.major}.{sys.version_info.minor}"


def get_tools() -> bool:
    """Whether the tools are there, after installing them if need be."""
    wanted, installed = PACKAGE / "requirements.txt", TOOLS / "installed.txt"
    if installed.exists() and installed.read_text() == wanted.read_text():
        return True
    command = [sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "--upgrade", "--root-user-action=ignore", "--disable-pip-version-check",
               "--target", TOOLS, "-r", wanted]
    if subprocess.run(command, check=False).returncode:
        return False
    installed.write_text(wanted.read_text())
    return True
