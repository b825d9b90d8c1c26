#!/usr/bin/env python3
"""Builds the wheels of the Python package: the runner, the grates, an image, and their code, compiled.

    scripts/wheel.py [--out DIR] [--full] [PORT...]     the ports of the image; those of BASIC if none is named

With --full also the wheel lind-sandbox-image-full, with the ports of `agent`. Ports that are not built are built first. Wheels
cannot hold links, so an image is a tar, which the package unpacks when it is first used. The same tree gives the same
bytes: times are SOURCE_DATE_EPOCH, or that of the last commit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
WORK = TOP / "build" / "wheel"
BASIC = "busybox bash coreutils diffutils findutils gawk grep sed patch make tzdata curl git jq ripgrep python".split()
# The directory of scripts/install.sh.
CODE = TOP / "build" / "code"
GIT = ["git", "-c", "safe.directory=*"]
# Files of the skeleton that keep its directories, and a file of the build.
LEFT_OUT = (".gitignore", ".keep", "install.lock")
# Larger wheels are reported, in bytes.
MOST = 100_000_000


def epoch() -> int:
    """The time that all files get."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    done = subprocess.run([*GIT, "log", "-1", "--format=%ct"], cwd=TOP, capture_output=True, text=True, check=False)
    return int(done.stdout or 0)


def tools() -> Path:
    """The directory of hatchling, as tests/python/run installs it."""
    sys.path.insert(0, str(TOP / "tests" / "python"))
    from tools import TOOLS, get_tools

    if not get_tools():
        raise SystemExit("wheel.py: pip cannot get what python/requirements.txt names")
    return TOOLS


def image(name: str, ports: list[str]) -> Path:
    """The directory of an image with these ports, which are built if need be."""
    root, wanted = WORK / name, WORK / f"{name}.ports"
    if not wanted.exists() or wanted.read_text() != " ".join(ports):
        shutil.rmtree(root, ignore_errors=True)
    skeleton = subprocess.run([*GIT, "ls-files", "-z", "lindfs"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    for file in filter(None, skeleton.split("\0")):
        target = root / Path(file).relative_to("lindfs")
        if not os.path.lexists(target) and target.name not in LEFT_OUT:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / file, target, follow_symlinks=False)
    (root / "tmp").mkdir(exist_ok=True)
    subprocess.run([TOP / "ports" / "build.sh", "--root", root, *ports], check=True)
    wanted.write_text(" ".join(ports))
    return root


def pack(root: Path, target: Path) -> None:
    """Makes a tar of an image."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            if path.name in LEFT_OUT or path.suffix == ".cwasm":
                continue
            member = archive.gettarinfo(path, str(path.relative_to(root)))
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime = epoch()
            member.mode = 0o1777 if member.name == "tmp" else 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            if member.isfile():
                with path.open("rb") as file:
                    archive.addfile(member, file)
            else:
                archive.addfile(member)
    target.with_suffix(".id").write_text(hashlib.sha256(target.read_bytes()).hexdigest()[:32] + "\n")


def deliver(*modules: Path) -> list[str]:
    """Compiles modules into a directory that is kept, and makes the runner of the wheel trust them. The names of the files."""
    runner = WORK / "lind-boot"
    built = TOP / "target" / "release" / "lind-boot"
    subprocess.run(["install", "-m", "755", "-s", built, runner], check=True)
    subprocess.run([built, "warm", "--deliver", CODE, "--seal", runner, *modules], check=True)
    return [f"{line.split()[0]}.code" for line in (CODE / "list").read_text().splitlines()]


def put(names: list[str], bundle: Path) -> None:
    """Copies code into a bundle."""
    folder = bundle / "lib" / "lind" / "code"
    folder.mkdir(parents=True)
    for name in names:
        shutil.copy(CODE / name, folder)


def new(name: str) -> Path:
    """An empty directory."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def build(project: Path, out: Path, bundle: Path) -> None:
    """Builds the wheel of a project, with these files beside its own."""
    known = os.environ | {"LIND_BUNDLE": str(bundle), "SOURCE_DATE_EPOCH": str(epoch()), "PYTHONPATH": str(tools())}
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", out]
    # It prints the path where it prints its messages.
    wheel = Path(subprocess.run(words, cwd=project, env=known, stderr=subprocess.PIPE, text=True, check=True).stderr.split()[-1])
    size = wheel.stat().st_size
    print(f"{wheel}: {size / 1e6:.1f} MB", flush=True)
    for part, inside in parts(wheel).items():
        print(f"    {part}: {inside / 1e6:.1f} MB", flush=True)
    if size > MOST:
        print(f"wheel.py: {wheel.name} has more than {MOST / 1e6:.0f} MB: fewer ports make it smaller", file=sys.stderr)


def parts(wheel: Path) -> dict[str, int]:
    """The bytes that each directory of a bundle takes in a wheel, and the rest of it."""
    sizes: dict[str, int] = {}
    with zipfile.ZipFile(wheel) as file:
        for member in file.infolist():
            part = str(Path(member.filename).parent).rpartition("/_bundle/")[2] if "/_bundle/" in member.filename else "the package"
            sizes[part] = sizes.get(part, 0) + member.compress_size
    return sizes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ports", nargs="*", metavar="PORT", default=BASIC)
    parser.add_argument("--out", type=Path, default=TOP / "dist", metavar="DIR")
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    grates, base = new("grates"), image("base", options.ports)
    for grate in (TOP / "build" / "grates").glob("*.wasm"):
        shutil.copy(grate, grates)
    code = deliver(grates, base)
    if options.full:
        full = image("full", ["agent"])
        more = [name for name in deliver(grates, base, full) if name not in code]
        bundle = new("full-bundle")
        put(more, bundle)
        pack(full, bundle / "images" / "full.tar")
        build(TOP / "python" / "image-full", out, bundle)
    bundle = new("bundle")
    put([*code, "list"], bundle)
    pack(base, bundle / "images" / "base.tar")
    shutil.copytree(grates, bundle / "lib" / "lind" / "grates")
    (bundle / "bin").mkdir()
    shutil.copy(WORK / "lind-boot", bundle / "bin")
    build(TOP / "python", out, bundle)
    return 0


if __name__ == "__main__":
    sys.exit(main())
