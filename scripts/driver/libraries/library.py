"""A shared library: an archive of ar whose first member says what the library is, and whose others are its objects."""

from __future__ import annotations

import os

from driver.libraries import archive
from driver.libraries.objects import BITCODE, Object
from driver.place import Fail

ABOUT = "lind.library"
# The most bytes that a name of a library may have, which is what a directory's entry may.
LONGEST = 255


class Library:
    """A library, read or about to be written."""

    def __init__(self, soname: str, needed: list[str], cxx: bool, members: list[tuple[str, bytes]]) -> None:
        self.soname = checked(soname)
        self.needed = [checked(name) for name in needed]
        self.cxx = cxx  # whether it needs the C++ library
        self.members = members
        self.digest = ""
        self.path = ""  # where it was read
        self.origin = ""  # where it was when it was joined to a program

    def about(self) -> str:
        lines = [f"soname {self.soname}", *(f"needed {name}" for name in self.needed), *(["c++"] if self.cxx else [])]
        return "\n".join(lines) + "\n"

    def encoded(self) -> list[tuple[str, bytes]]:
        """The members, with the one that says what the library is. dlopen reads its first lines."""
        self.digest = self.computed()
        about = f"digest {self.digest}\n{self.about()}"
        return [(ABOUT, about.encode(errors="surrogateescape")), *self.members]

    def computed(self) -> str:
        """The digest of what the library says of itself and of its objects."""
        import hashlib

        digest = hashlib.sha256(self.about().encode(errors="surrogateescape"))
        for _, body in self.members:
            digest.update(f"{len(body)}\n".encode() + body)
        return digest.hexdigest()

    def objects(self) -> list[Object]:
        return [Object(f"{self.path or self.soname}({name})", body) for name, body in self.members]


def checked(name: str) -> str:
    """A name of a library, which is put into files of lines."""
    if not name or len(name.encode(errors="surrogateescape")) > LONGEST or "/" in name or not name.isprintable():
        raise Fail(f"{name!r} is not a name for a library: it is empty, too long, or has a slash or a character that cannot be printed")
    return name


def is_library(path: str) -> bool:
    """Whether a file is a library. A tool may have put a list of symbols in front of its members."""
    return archive.is_archive(path) and ABOUT in archive.first_names(path)


def read(path: str) -> Library:
    """Reads a library, or fails."""
    members = list(archive.members(path))
    about = next((body for name, body in members if name == ABOUT), None)
    if about is None:
        raise Fail(f"{path}: not a shared library for cages: `lind-cc -shared` makes them")
    words: dict[str, list[str]] = {}
    for line in about.decode(errors="surrogateescape").splitlines():
        key, _, value = line.partition(" ")
        words.setdefault(key, []).append(value)
    if len(words.get("soname", [])) != 1 or len(words.get("digest", [])) != 1:
        raise Fail(f"{path}: the library does not say its name")
    objects = [(name, body) for name, body in members if name != ABOUT]
    library = Library(words["soname"][0], words.get("needed", []), "c++" in words, objects)
    library.digest = library.computed()
    if words["digest"][0] != library.digest:
        raise Fail(f"{path}: the library was changed after it was made: make it again")
    library.path = library.origin = os.path.realpath(path)
    for name, body in objects:
        if body.startswith(BITCODE):
            raise Fail(f"{path}({name}): an object of -flto")
    return library
