#!/usr/bin/env python3
"""Builds the tools as OCI images in build/images: base.tar, commands.tar on it, and tools.tar on that, with three layers.

    scripts/image.py [LAYER...]     up to the layer that is named last; all unless one is named: base, commands, tools

Each layer has ports of its own, which are built first. The same tree gives the same bytes: times are SOURCE_DATE_EPOCH, or that of the
last commit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from wheel import LEFT_OUT, TOP, epoch, image

IMAGES = TOP / "build" / "images"
BOOT = TOP / "target" / "release" / "lind-boot"
# The ports of each layer; together they are those of the wheel. A name in /bin that several layers
# have is the one of the upper layer.
LAYERS = {
    "base": "busybox bash".split(),
    "commands": "coreutils diffutils findutils gawk grep sed patch make tzdata curl git jq ripgrep".split(),
    "tools": ["python"],
}
RECIPE = """copy = [{{ from = "{root}", to = "/" }}]
cmd = ["bash"]
workdir = "/root"
env = {{ PATH = "/bin", HOME = "/root" }}
labels = {{ "org.opencontainers.image.title" = "lind/{name}" }}
"""


def build(name: str, base: Path | None) -> Path:
    """The archive of an image, made on another or on nothing."""
    root, archive, recipe = image(f"layer-{name}", LAYERS[name]), IMAGES / f"{name}.tar", IMAGES / f"{name}.toml"
    for path in root.rglob("*"):
        if path.name in LEFT_OUT:
            path.unlink()
    (root / "root").mkdir(exist_ok=True)
    recipe.write_text((f'base = "{base}"\n' if base else "") + RECIPE.format(root=root, name=name))
    known = os.environ | {"SOURCE_DATE_EPOCH": str(epoch())}
    subprocess.run([BOOT, "image", "build", "--tag", f"lind/{name}", "--output", archive, recipe], env=known, check=True)
    # The first container of this user finds the code in the cache.
    subprocess.run([BOOT, "warm", root], check=True)
    return archive


def main() -> int:
    wanted = sys.argv[1:] or [*LAYERS]
    if unknown := [name for name in wanted if name not in LAYERS]:
        print(f"image.py: {unknown[0]}: no such layer; there are: {' '.join(LAYERS)}", file=sys.stderr)
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    (TOP / "build" / "wheel").mkdir(exist_ok=True)
    names, base = [*LAYERS], None
    for name in names[: max(names.index(name) for name in wanted) + 1]:
        base = build(name, base)
    return 0


if __name__ == "__main__":
    sys.exit(main())
