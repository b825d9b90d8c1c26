"""The three builds of a program: in a cage, from the same source for Linux, and Debian's own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from bench.model import REPOSITORY, Missing, need_boot
from bench.sandbox.columns import Column
from bench.sandbox.model import Wish

CAGE, NATIVE, DEBIAN = "cage", "same source", "Debian's"


@dataclasses.dataclass(frozen=True)
class Program:
    """A port, its program in the tree that was built for Linux and in the image, and Debian's file and package of the same version."""

    port: str
    built: str
    image: str
    debian: str = ""
    package: str = ""


PROGRAMS = {
    "python": Program("python", "python", "python3.11", "python3.11", "python3.11"),
    "lua": Program("lua", "src/lua", "lua", "lua5.4", "lua5.4"),
    "sqlite3": Program("sqlite3", "sqlite3", "sqlite3", "sqlite3", "sqlite3"),
    # Debian 12 does not package it.
    "quickjs": Program("quickjs", "qjs", "qjs"),
    "bash": Program("bash", "bash", "bash", "bash", "bash"),
    "gawk": Program("gawk", "gawk", "gawk", "gawk", "gawk"),
    "gzip": Program("gzip", "gzip", "gzip", "gzip", "gzip"),
    "git": Program("git", "git", "git", "git", "git"),
}


class Debian(Column):
    """Debian's program: built with profiles and link-time optimisation if the package does so."""

    name = DEBIAN

    def tool(self, name: str) -> str:
        program = PROGRAMS[name]
        path = Path("/usr/bin") / program.debian
        if not program.debian or not path.exists():
            raise Missing(f"Debian's {program.package or name} is not installed")
        return str(path)

    def version(self) -> str:
        return ""


class Native(Debian):
    """The program that `ports/build.sh --native` builds from the port's source."""

    name = NATIVE

    def tool(self, name: str) -> str:
        program = PROGRAMS[name]
        path = REPOSITORY / "build/ports" / program.port / "native/source" / program.built
        if not path.exists():
            raise Missing(f"not built: ports/build.sh --native {program.port}")
        if path.is_symlink():
            raise Missing(f"the port of {program.port} takes the machine's own on Linux")
        return str(path)


class Cage(Debian):
    """The port itself. The workspace is in the image, so that nothing has to be mounted."""

    name = CAGE

    def __init__(self, boot: Path, image: Path) -> None:
        self.boot, self.image = boot, image

    def check(self) -> None:
        need_boot(self.boot)

    def tool(self, name: str) -> str:
        program = PROGRAMS[name]
        if not (self.image / "bin" / program.image).exists():
            raise Missing(f"not in the image: make ports PORT={program.port}")
        return f"/bin/{program.image}"

    def command(self, wish: Wish) -> list[str]:
        inside = f"/{wish.workspace.relative_to(self.image)}"
        return [str(self.boot), "--root", str(self.image), "--cwd", inside, "-e", "LANG=C", *self.inner(wish)]


def every_column(boot: Path, image: Path) -> list[Column]:
    return [Debian(), Native(), Cage(boot, image)]
