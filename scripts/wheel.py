#!/usr/bin/env python3
"""Builds the wheels of the Python package: the runner, the grates, an image, and their code, compiled.

    scripts/wheel.py [--out DIR] [--full] [PORT...]     the ports of the image; those of BASIC if none is named

With --full also the wheel lind-sandbox-image-full, with the ports of `agent`. Ports that are not built are built first. Wheels
cannot hold links, so an image is a tar, which the runner unpacks when it is first used. zstd compresses it and the code. The same tree gives the same
bytes: times are SOURCE_DATE_EPOCH, or that of the last commit.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
WORK = TOP / "build" / "wheel"
BASIC = "busybox bash lind-why coreutils diffutils findutils gawk grep sed patch make tzdata curl git jq ripgrep python".split()
# Programs that no command of BASIC runs: those of libraries that others need, and those of git that
# serve, or send by mail. Their code would be a fifth of the wheel.
UNUSED = """bin/bzip2recover bin/infocmp bin/minigzip bin/openssl bin/scalar bin/sqlite3 bin/tic bin/xzdec bin/git-shell
    libexec/git-core/git-daemon libexec/git-core/git-http-backend libexec/git-core/git-http-fetch libexec/git-core/git-imap-send
    libexec/git-core/git-shell libexec/git-core/scalar""".split()
# The directory of scripts/install.sh.
CODE = TOP / "build" / "code"
GIT = ["git", "-c", "safe.directory=*"]
# Files of the skeleton that keep its directories, and a file of the build.
LEFT_OUT = (".gitignore", ".keep", "install.lock")
# How code and images are compressed. The runner decompresses with a window of so many bytes.
PACKING = ["zstd", "-q", "-19", "--long=27", "-T2", "-c"]
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
    for unused in UNUSED if ports == BASIC else []:
        (root / unused).unlink()
    wanted.write_text(" ".join(ports))
    return root


def contents(root: Path) -> list[Path]:
    """The files of an image that are packed, directories before what is in them."""
    return [path for path in sorted(root.rglob("*")) if path.name not in LEFT_OUT and path.suffix != ".cwasm"]


def archive_of(root: Path) -> bytes:
    """A tar of an image."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in contents(root):
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
    return made.getvalue()


def packed(data: bytes) -> bytes:
    """Compresses code or an image as the runner decompresses it, unless that has been done."""
    kept = WORK / "packed" / f"{hashlib.sha256(data).hexdigest()}.zst"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        new = kept.with_suffix(".new")
        new.write_bytes(subprocess.run(PACKING, input=data, stdout=subprocess.PIPE, check=True).stdout)
        new.rename(kept)
    return kept.read_bytes()


def pack(root: Path, images: Path, name: str) -> None:
    """Packs an image."""
    images.mkdir(parents=True)
    data = packed(archive_of(root))
    (images / f"{name}.tar.zst").write_bytes(data)
    (images / f"{name}.id").write_text(hashlib.sha256(data).hexdigest()[:32] + "\n")


def deliver(*modules: Path) -> list[str]:
    """Compiles modules into a directory that is kept. The hashes of the modules."""
    built = TOP / "target" / "release" / "lind-boot"
    subprocess.run([built, "warm", "--deliver", CODE, *modules], check=True)
    return [line.split()[0] for line in (CODE / "list").read_text().splitlines()]


def put(sources: list[str], bundle: Path, every: Path) -> None:
    """Packs code into a bundle, and into the directory of all packed code."""
    folder = bundle / "lib" / "lind" / "code"
    folder.mkdir(parents=True)
    for source in sources:
        (folder / f"{source}.packed").write_bytes(packed((CODE / f"{source}.code").read_bytes()))
        os.link(folder / f"{source}.packed", every / f"{source}.packed")


def seal(every: Path, *modules: Path) -> Path:
    """The runner of the wheel, which trusts the packed code of these modules."""
    runner = WORK / "lind-boot"
    built = TOP / "target" / "release" / "lind-boot"
    subprocess.run(["install", "-m", "755", "-s", built, runner], check=True)
    subprocess.run([built, "warm", "--deliver", CODE, "--packed", every, "--seal", runner, *modules], check=True)
    return runner


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
    # A wheel of a few ports leaves the image of the usual one, which scripts/sdk_test.py uses too.
    grates, base = new("grates"), image("base" if options.ports == BASIC else "few", options.ports)
    for grate in (TOP / "build" / "grates").glob("*.wasm"):
        shutil.copy(grate, grates)
    code, every, modules = deliver(grates, base), new("every"), [grates, base]
    if options.full:
        full = image("full", ["agent"])
        modules.append(full)
        more = [source for source in deliver(*modules) if source not in code]
        bundle = new("full-bundle")
        put(more, bundle, every)
        pack(full, bundle / "images", "full")
        build(TOP / "python" / "image-full", out, bundle)
    bundle = new("bundle")
    put(code, bundle, every)
    (bundle / "bin").mkdir()
    shutil.copy(seal(every, *modules), bundle / "bin" / "lind-boot")
    shutil.copy(CODE / "list", bundle / "lib" / "lind" / "code")
    pack(base, bundle / "images", "base")
    shutil.copytree(grates, bundle / "lib" / "lind" / "grates")
    build(TOP / "python", out, bundle)
    return 0


if __name__ == "__main__":
    sys.exit(main())
