"""`lind-boot`, as a command of the environment that the wheel is installed in."""

from __future__ import annotations

import os
import sys

from ._images import find
from ._runtime import program


def main() -> None:
    """Becomes lind-boot, with the image of the wheel as its own."""
    runner, image = program(), find(None)
    if image is not None:
        os.environ.setdefault("LIND_ROOT", image)
    os.execv(runner, [os.fspath(runner), *sys.argv[1:]])


if __name__ == "__main__":
    main()
