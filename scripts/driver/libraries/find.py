"""Sorts what is linked: objects, archives, shared libraries, and options."""

from __future__ import annotations

import os

from driver import place
from driver.libraries import archive, library
from driver.libraries.library import Library
from driver.libraries.objects import BITCODE
from driver.options import LINKER_AS_NEEDED, Request
from driver.place import Fail


class Inputs:
    """The words of a link."""

    def __init__(self, request: Request, words: list[str]) -> None:
        self.request = request
        self.directories = [word[2:] for word in words if word.startswith("-L") and len(word) > 2]
        self.rest: list[str] = []  # what the linker gets as it is
        self.objects: list[str] = []
        self.archives: list[str] = []
        self.whole: list[str] = []  # archives of which all is linked
        self.libraries: list[Library] = []
        self.plain: list[str] = []  # all of it in its order, with the archives that -l means
        self.spare: set[str] = set()  # digests of the libraries that are needed only if something refers to them
        self.whole_now = self.static_now = self.as_needed_now = False
        for word in words:
            self.word(word)

    def word(self, word: str) -> None:
        if word in ("--whole-archive", "--no-whole-archive"):
            self.whole_now = word == "--whole-archive"
            self.plain.append(word)
        elif word in LINKER_AS_NEEDED:
            self.as_needed_now = word == "--as-needed"
        elif word in ("-Bstatic", "-Bdynamic"):
            self.static_now = word == "-Bstatic"
        elif word.startswith("-l"):
            found = self.library_named(word[2:])
            if found is None:
                self.rest.append(word)
                self.plain.append(word)
            else:
                self.file(found)
        elif word.startswith("-"):
            self.rest.append(word)
            self.plain.append(word)
        else:
            self.file(word)

    def file(self, path: str) -> None:
        self.plain.append(path)
        if not archive.is_archive(path):
            if not os.path.exists(path):
                raise Fail(f"cannot open {path}: no such file")
            self.objects.append(path)
        elif library.is_library(path):
            if self.request.static:
                raise Fail(f"{path}: a shared library, and -static")
            found = library.read(path)
            if all(found.digest != other.digest for other in self.libraries):
                self.libraries.append(found)
                self.spare |= {found.digest} if self.as_needed_now else set()
            elif not self.as_needed_now:
                self.spare.discard(found.digest)
        else:
            (self.whole if self.whole_now else self.archives).append(path)

    def library_named(self, name: str) -> str | None:
        """The file that -lNAME means, if it is in a directory of -L."""
        dynamic = not (self.request.static or self.static_now)
        names = [name[1:]] if name.startswith(":") else [f"lib{name}.so"] * dynamic + [f"lib{name}.a"]
        for directory in self.directories:
            for candidate in names:
                path = os.path.join(directory, candidate)
                if archive.is_archive(path):
                    return path
        return None

    def needed(self, name: str, by: Library) -> Library:
        """The library of a name that another needs."""
        for found in self.libraries:
            if found.soname == name:
                return found
        for directory in [*self.request.run_paths, *self.directories, os.path.dirname(by.path)]:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and library.is_library(path):
                found = library.read(path)
                if found.soname == name:
                    return found
        raise Fail(f"{name}, needed by {by.path or by.soname}, not found: name its directory with -Wl,-rpath-link,DIR or -L DIR")

    def contents(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return self.compiled(path, file.read())

    def compiled(self, name: str, body: bytes) -> bytes:
        """An object, compiled if it is one of -flto: names are changed in objects alone."""
        if not body.startswith(BITCODE):
            return body
        from driver import build

        workspace = build.Workspace()
        try:
            source, target = workspace.file("lto.bc"), workspace.file("lto.o")
            with open(source, "wb") as file:
                file.write(body)
            flags = [*build.compile_flags(False), "-fwasm-exceptions", "-O2", "-w"]
            if place.run([place.tool("clang"), *flags, "-c", "-x", "ir", source, "-o", target]):
                raise Fail(f"{name} did not compile")
            with open(target, "rb") as file:
                return file.read()
        finally:
            workspace.close()
