"""`lind-boot`, as a command of the environment that the wheel is installed in."""

from __future__ import annotations

import os
import sys

from ._deadline import Deadline
from ._images import find
from ._runtime import program


def main() -> None:
    """Becomes lind-boot."""
    become(sys.argv[1:])


def shell() -> None:
    """Becomes the shell of a project."""
    login = ["-l"] if sys.argv[0].rpartition("/")[2].startswith("-") else []
    become(["sh", *login, *sys.argv[1:]])


def become(words: list[str]) -> None:
    """Becomes lind-boot with these arguments, and the image of the wheel as its own."""
    runner, image = program(), find(None, Deadline(None))
    if image is not None:
        os.environ.setdefault("LIND_ROOT", image)
    os.execv(runner, [os.fspath(runner), *words])


if __name__ == "__main__":
    main()
