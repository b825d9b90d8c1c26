"""The stock JavaScript client of E2B, against `lind e2b`: js/e2b.mjs has the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("connectrpc")

from .e2b_server import server

HERE = Path(__file__).resolve().parent / "js"
WORK = Path(__file__).resolve().parents[3] / "build" / "python" / "e2b-js"


def installed() -> Path:
    """The directory with the client, which npm gets as package-lock.json pins it."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed: apt-get install nodejs npm")
    wanted, mark = (HERE / "package-lock.json").read_text(), WORK / "installed.json"
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, WORK)
        done = subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=WORK, check=False)
        if done.returncode:
            pytest.skip("npm cannot get what js/package-lock.json names")
        mark.write_text(wanted)
    shutil.copy(HERE / "e2b.mjs", WORK)
    return WORK


def test_the_client_in_javascript(tmp_path: Path) -> None:
    folder = installed()
    with server(tmp_path) as (_, variables):
        done = subprocess.run(["node", "--test", "e2b.mjs"], cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0 and "# fail 0" in done.stdout and "# pass 7" in done.stdout, done.stdout + done.stderr
