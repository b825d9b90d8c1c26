"""Installs the engines and the suites of `make oci-test`: Debian's packages, and Go modules that are built here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from table import Skipped

TOP = Path(__file__).resolve().parents[3]
BUILT = TOP / "build" / "oci-test"
PACKAGES = ["podman", "containerd", "runc", "crun", "umoci", "buildah", "containernetworking-plugins", "slirp4netns", "iptables", "uidmap", "fuse-overlayfs", "strace"]
RUNTIME_TOOLS = "github.com/opencontainers/runtime-tools@v0.9.1-0.20251114084447-edf4cb3d2116"
CRI_TOOLS = "sigs.k8s.io/cri-tools@v1.34.0"


def packages() -> None:
    """Debian's packages, those that are missing. None of them may start a service."""
    if os.geteuid() != 0:
        raise Skipped("not root, so no packages are installed")
    query = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *PACKAGES]
    there = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    missing = [name for name in PACKAGES if f"{name} installed" not in there]
    if missing:
        done = subprocess.run([TOP / "scripts/setup.sh", *missing], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"cannot install {' '.join(missing)}: {done.stderr.strip()}")


def module(module: str) -> Path:
    """The sources of a Go module, in a directory of our own: they cannot be built where Go keeps them."""
    if not shutil.which("go"):
        raise Skipped("no Go, which builds the suite")
    place = BUILT / "src" / module.replace("/", "_")
    if not place.is_dir():
        done = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"cannot get {module}: {done.stdout.strip()[-200:]}")
        half = place.with_name("half")
        shutil.rmtree(half, ignore_errors=True)
        shutil.copytree(json.loads(done.stdout)["Dir"], half, copy_function=shutil.copyfile, ignore=shutil.ignore_patterns("vendor"))
        for path in [half, *half.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        half.rename(place)
    return place


def build(source: Path, command: list[str], made: Path, package: str) -> Path:
    """A program of a module, built unless it is there."""
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOFLAGS": "-buildvcs=false -mod=mod", "CGO_ENABLED": "0"}
        done = subprocess.run([*command, "-o", made, package], cwd=source, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Skipped(f"cannot build {made.name}: {done.stderr.strip()[-400:]}")
    return made


def validation() -> Path:
    """The directory of runtime-tools' validation programs."""
    source, made = module(RUNTIME_TOOLS), BUILT / "validation"
    for folder in sorted((source / "validation").iterdir()):
        if folder.is_dir() and folder.name != "util":
            build(source, ["go", "build"], made / folder.name, f"./validation/{folder.name}")
    return made
