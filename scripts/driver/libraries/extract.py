"""Which members of archives are linked: those that define what others want, as a linker takes them."""

from __future__ import annotations

from collections.abc import Iterable

from driver.libraries import archive, objects
from driver.libraries.find import Inputs
from driver.libraries.objects import Object


class Member:
    """A member of an archive."""

    __slots__ = ("body", "name", "origin", "path")

    def __init__(self, path: str, name: str, body: bytes) -> None:
        self.path = path
        self.name = name
        self.body = body
        self.origin = Object(f"{path}({name})", body)


def members(inputs: Inputs, paths: Iterable[str]) -> list[Member]:
    return [Member(path, name, inputs.compiled(f"{path}({name})", body)) for path in paths for name, body in archive.members(path)]


def extracted(of_archives: Iterable[Member], present: Iterable[Object], also: Iterable[str] = ()) -> list[Member]:
    """The members of archives that objects want, and those that these want; and those that define a name of `also`."""
    by_name: dict[str, Member] = {}
    for member in of_archives:
        for symbol in member.origin.symbols:
            if symbol.others_see:
                by_name.setdefault(symbol.name, member)
    taken: list[Member] = []
    known: set[Member] = set()
    defined: set[str] = set()
    wanted = list(also)
    batch = list(present)
    while batch or wanted:
        for origin in batch:
            defined |= {symbol.name for symbol in origin.symbols if symbol.others_see}
            wanted += [symbol.name for symbol in origin.symbols if symbol.flags & (objects.UNDEFINED | objects.WEAK) == objects.UNDEFINED]
        found = dict.fromkeys(by_name[name] for name in wanted if name not in defined and name in by_name)
        new = [member for member in found if member not in known]
        known.update(new)
        taken += new
        batch, wanted = [member.origin for member in new], []
    return taken
