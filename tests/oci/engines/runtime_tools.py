"""The programs of runtime-tools' validation: each drives the runtime by its command line and prints lines of TAP.

The program that they run in containers is for the host; `checks.c` stands for it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import install
import rootfs
from table import Table

SUITE = "runtime-tools"
SECONDS = 120


def failure(program: Path, folder: Path, environment: dict[str, str]) -> str | None:
    """The reason why a program fails."""
    with subprocess.Popen([program], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as running:
        try:
            output, _ = running.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return f"does not end within {SECONDS} s"
    wrong = [line for line in output.splitlines() if re.match(r"\s*not ok", line) and "# TODO" not in line]
    if running.returncode or wrong:
        return "\n".join([*wrong, f"status {running.returncode}", output[-2000:]])
    # Some programs print nothing when all is well.
    silent = (re.search(r"^1\.\.0$", output, re.MULTILINE) or program.name.endswith("_fail")) and '"error":' not in output and "WARNING" not in output
    passed = silent or re.search(r"^\s*ok ", output, re.MULTILINE) or "# SKIP" in output
    return None if passed else f"no test ran\n{output[-2000:]}"


def run(table: Table, only: str = "") -> None:
    programs = install.validation()
    with tempfile.TemporaryDirectory(prefix="lind-oci-test-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        rootfs.archive(folder / "rootfs-amd64.tar.gz", rootfs.tree_with_hooks())
        shutil.copyfile(rootfs.compiled("checks"), folder / "runtimetest")
        states = folder / "states"
        states.mkdir()
        environment = {**os.environ, "RUNTIME": str(Path(__file__).with_name("expected.py")), "LIND_OCI": str(rootfs.OCI), "TMPDIR": str(folder)}
        for program in sorted(programs.iterdir()):
            if only in program.name:
                table.add(SUITE, program.name, failure(program, folder, environment))
