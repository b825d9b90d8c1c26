"""Copies the C sources of the locked crates to the directory named: cargo fetches them and checks them against Cargo.lock."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDERS = {"blake3": "c", "lz4-sys": "liblz4/lib", "monocypher-sys": "Monocypher/src"}


def main() -> None:
    to = Path(sys.argv[1])
    said = subprocess.run(["cargo", "metadata", "--quiet", "--locked", "--format-version", "1", "--filter-platform", "x86_64-unknown-linux-gnu",
                           "--manifest-path", str(HERE / "Cargo.toml")], check=True, capture_output=True, text=True)
    for package in json.loads(said.stdout)["packages"]:
        if folder := FOLDERS.get(package["name"]):
            name = package["name"].removesuffix("-sys")
            shutil.rmtree(to / name, ignore_errors=True)
            shutil.copytree(Path(package["manifest_path"]).parent / folder, to / name)


if __name__ == "__main__":
    main()
