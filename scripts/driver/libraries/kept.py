"""PROGRAM.link: what a program was linked from, so that libraries can be joined to it later."""

from __future__ import annotations

import os

from driver.build import Workspace
from driver.libraries import archive, library
from driver.libraries.find import Inputs
from driver.libraries.library import Library
from driver.libraries.names import Part
from driver.options import Request
from driver.place import Fail

SUFFIX = ".link"
# The options of the linker that are used again: none of these names a file that would be written.
OPTIONS = ("-l", "--undefined=", "--export=", "--export-if-defined=", "--wrap=", "--allow-multiple-definition", "--no-gc-sections", "--gc-sections", "--strip-")
ABOUT = "lind.program"
# The fields of a request that a link looks at.
FIELDS = ("nostdlib", "nostartfiles", "cxx_library", "strip", "profile", "grate", "fpcast", "fork", "dynamic")


def beside(output: str) -> str:
    return output.removesuffix(".wasm") + SUFFIX


def keep(request: Request, inputs: Inputs, parts: list[Part], output: str, cxx: bool) -> None:
    """Writes what a program was linked from."""
    import json

    members: list[tuple[str, bytes]] = []

    def add(name: str, body: bytes) -> int:
        members.append((name, body))
        return len(members)

    def file(path: str) -> int:
        return add(os.path.basename(path), archive.with_members(path))

    about = {
        "request": {name: getattr(request, name) for name in FIELDS},
        "cxx": cxx,
        "rest": [word for word in inputs.rest if not word.startswith("-L")],
        **{kind: [file(path) for path in getattr(inputs, kind)] for kind in ("objects", "archives", "whole")},
        "libraries": [{"member": file(part.library.path), "path": part.library.origin, "at_start": part.at_start} for part in parts],
    }
    archive.write(beside(output), [(ABOUT, json.dumps(about).encode()), *members])


class Kept:
    """A program's parts as they were kept, in files of a workspace."""

    def __init__(self, path: str, workspace: Workspace) -> None:
        import json

        self.workspace = workspace
        self.members = list(archive.members(path))
        try:
            about = json.loads(self.members[0][1])
            self.request = Request()
            for name in FIELDS:
                setattr(self.request, name, about["request"][name])
            self.cxx = bool(about["cxx"])
            for word in about["rest"]:
                if not word.startswith(OPTIONS):
                    raise Fail(f"{path}: lind-link does not take the linker's option {word!r} from a file")
            whole = [self.file(number) for number in about["whole"]]
            words = [self.file(number) for number in [*about["objects"], *about["archives"]]]
            self.words = [*words, *(["--whole-archive", *whole, "--no-whole-archive"] if whole else []), *about["rest"]]
            self.libraries = [(self.library(entry["member"], entry["path"]), bool(entry["at_start"])) for entry in about["libraries"]]
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):
            raise Fail(f"{path}: damaged: link the program again with -rdynamic") from None

    def file(self, number: int) -> str:
        name, body = self.members[number]
        target = self.workspace.file(os.path.basename(name))
        with open(target, "wb") as out:
            out.write(body)
        return target

    def library(self, number: int, origin: str) -> Library:
        """A library as it was joined, which remembers where it came from."""
        found = library.read(self.file(number))
        found.origin = origin
        return found
