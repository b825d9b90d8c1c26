"""The root file system of the test's containers, a shell and its tools compiled for cages, and images with it."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

from install import BUILT, TOP
from table import Skipped

OCI = TOP / "target" / "release" / "lind-oci"
IMAGE = "localhost/lind-test"
ETC = {
    "passwd": "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\nwww-data:x:33:33:www:/:/bin/sh\ndefault-user:x:1000:1000::/:/bin/sh\nuser:x:1001:1001:user:/home/user:/bin/sh\n",
    "group": "root:x:0:\nwww-data:x:33:\ndefault-user:x:1000:\nuser:x:1001:\ngroup-defined-in-image:x:50000:default-user\n",
    "hosts": "127.0.0.1 localhost\n",
}


@cache
def tree() -> Path:
    """The directory of the root file system: busybox with a link for each of its commands, and bash."""
    source, made = TOP / "lindfs" / "bin", BUILT / "root"
    if not (source / "busybox").exists():
        raise Skipped("no busybox in lindfs/bin: run make tools")
    shutil.rmtree(made, ignore_errors=True)
    for folder in ("bin", "etc", "tmp", "dev", "proc", "sys", "home/user", "usr", "www"):
        (made / folder).mkdir(parents=True, exist_ok=True)
    (made / "tmp").chmod(0o1777)
    (made / "usr/bin").symlink_to("../bin")
    for name in ("busybox", "bash"):
        shutil.copy(source / name, made / "bin" / name)
    # Tests expect the words of busybox, whatever else was built.
    listed = subprocess.run([OCI.with_name("lind-boot"), "/bin/busybox", "--list"], cwd=TOP, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if name != "busybox":
            # Not a symbolic link: a path that is masked would be busybox itself.
            (made / "bin" / name).hardlink_to(made / "bin/busybox")
    for name, text in ETC.items():
        (made / "etc" / name).write_text(text)
    shutil.copy(compiled("privileges"), made / "bin/privileges")
    (made / "bin/privileges").chmod(0o4755)
    (made / "www/index.html").write_text("Welcome to nginx!\n")
    return made


def copy(to: Path) -> None:
    """Copies the tree with its links."""
    subprocess.run(["cp", "-a", tree(), to], check=True)


def tree_with_hooks() -> Path:
    """The same with programs of the host in /bin, which hooks run there; the container's are in /usr/bin, which comes first in PATH."""
    made = BUILT / "root-with-hooks"
    shutil.rmtree(made, ignore_errors=True)
    copy(made)
    (made / "usr/bin").unlink()
    (made / "bin").rename(made / "usr/bin")
    (made / "bin").mkdir()
    for name in ("sh", "false"):
        # Run by the host, from a directory of the host.
        (made / "bin" / name).write_text(f'#!/bin/sh\nexec /bin/{name} "$@"\n')
        (made / "bin" / name).chmod(0o755)
    return made


def archive(path: Path, root: Path | None = None) -> None:
    """A root as an archive, which is compressed if its name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file, tarfile.open(fileobj=file, mode="w:gz" if path.suffix == ".gz" else "w") as made:
        made.add(root or tree(), ".", filter=owned_by_root)


def owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


@cache
def compiled(name: str) -> Path:
    """A program of this directory, compiled for cages."""
    made = BUILT / f"{name}.cwasm"
    made.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([TOP / "scripts/lind_compile", "-O1", "-o", made, Path(__file__).with_name(f"{name}.c")], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"cannot compile {name}.c: {done.stderr}")
    return made


def image(images: dict[str, dict[str, Any]], path: Path) -> Path:
    """An archive of images with the one root: their names, and what their configurations have besides."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as made:
        made.add(tree(), ".", filter=owned_by_root)
    diff = hashlib.sha256(layer.getvalue()).hexdigest()
    with tarfile.open(path, "w") as made:
        put(made, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        of_layer = blob(made, gzip.compress(layer.getvalue(), 1, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
        index = []
        for name, config in images.items():
            configured = {"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/bin"], "Cmd": ["sh"], **config}, "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]}}
            of_config = blob(made, json.dumps(configured).encode(), "application/vnd.oci.image.config.v1+json")
            manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": of_config, "layers": [of_layer]}
            entry = blob(made, json.dumps(manifest).encode(), manifest["mediaType"])
            index.append({**entry, "annotations": {"io.containerd.image.name": name}, "platform": {"architecture": "amd64", "os": "linux"}})
        put(made, "index.json", json.dumps({"schemaVersion": 2, "manifests": index}).encode())
    return path


def put(made: tarfile.TarFile, name: str, text: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(text)
    made.addfile(entry, io.BytesIO(text))


def blob(made: tarfile.TarFile, text: bytes, kind: str) -> dict[str, Any]:
    digest = hashlib.sha256(text).hexdigest()
    if f"blobs/sha256/{digest}" not in made.getnames():
        put(made, f"blobs/sha256/{digest}", text)
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(text)}
