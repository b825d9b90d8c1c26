"""Binds the names of a program and its libraries, so that one link can have all of them.

A definition of a library gets the library's name behind its own, and so does each use. So libraries
do not see each other's names, but where one needs another; and each means itself first. Two kinds
keep their names:

- what C++ defines wherever it is used (inline functions, templates, types' names) and takes for one
  in all of a program;
- weak definitions that the program replaces.

The names of libraries that the program needs are there without the library's name too, as weak
aliases.
"""

from __future__ import annotations

from driver.libraries import objects
from driver.libraries.library import Library
from driver.libraries.objects import Comdat, Object, Symbol

# The kinds of symbols that belong to a library; tags of exceptions are one for all.
NAMED = (objects.OF_FUNCTION, objects.OF_DATA)
# The function whose answer depends on which library calls it.
OF_CALLER = "dlsym"


class Entry:
    """A symbol that dlsym finds."""

    __slots__ = ("actual", "kind", "name", "of_type", "size", "thread_local")

    def __init__(self, origin: Object, symbol: Symbol, actual: str) -> None:
        self.name = symbol.name
        self.actual = actual
        self.kind = symbol.kind
        self.size = symbol.size
        self.thread_local = bool(symbol.flags & objects.THREAD_LOCAL)
        self.of_type = origin.type_of(symbol) if symbol.kind == objects.OF_FUNCTION else None


class Part:
    """A library in a program."""

    def __init__(self, library: Library, label: str, at_start: bool) -> None:
        self.library = library
        self.label = label
        self.at_start = at_start
        self.objects = library.objects()
        self.own: dict[str, str] = {}  # the names that its objects define for each other, and what they become
        self.exported: dict[str, Entry] = {}
        self.starts: list[str] = []
        self.needed: list[Part] = []
        self.says_caller = False

    def scope(self) -> list[Part]:
        """Itself and all that it needs, nearest first."""
        return nearest_first([self])


def nearest_first(parts: list[Part]) -> list[Part]:
    found = list(dict.fromkeys(parts))
    for part in found:
        found += [other for other in part.needed if other not in found]
    return found


class Names:
    """All names of a program with libraries.

    `visible`: what the program's objects define for others. `dynamic`: whether libraries that are
    opened see that. `static`: what the archives define that are linked as well."""

    def __init__(self, parts: list[Part], visible: set[str], dynamic: bool, static: set[str]) -> None:
        self.parts = parts
        self.visible = visible
        self.dynamic = dynamic
        self.static = static
        self.said: set[str] = set()  # the aliases that the program has for names of libraries
        for part in parts:
            self.define(part)
        for part in parts:
            for origin in part.objects:
                self.apply(part, origin)

    def seen_by(self, part: Part) -> set[str]:
        return self.visible if part.at_start or self.dynamic else set()

    def define(self, part: Part) -> None:
        """Decides what the names of a library become."""
        seen = self.seen_by(part)
        kept: dict[str, bool] = {}
        for origin in part.objects:
            groups = {id(group): is_shared(origin, group) for group in origin.comdats}
            members = origin.groups()
            for symbol in origin.symbols:
                if not symbol.others_see or symbol.kind not in NAMED:
                    continue
                group = members.get(place(symbol))
                shared = group is not None and groups[id(group)]
                replaced = bool(symbol.flags & objects.WEAK) and symbol.name in seen
                kept[symbol.name] = kept.get(symbol.name, True) and (shared or replaced)
        part.own = {name: name if stays else f"{name}@{part.label}" for name, stays in kept.items()}
        for origin in part.objects:
            for symbol in origin.symbols:
                if symbol.exported:
                    part.exported.setdefault(symbol.name, Entry(origin, symbol, part.own[symbol.name]))

    def resolve(self, part: Part, name: str) -> str:
        """The name in the link of what a library means by a name."""
        if name in part.own:
            return part.own[name]
        if name in self.seen_by(part):
            return name
        for other in [*(other for other in self.parts if other.at_start), *part.scope()]:
            if name in other.exported:
                return other.exported[name].actual
        if name == OF_CALLER:
            part.says_caller = True
            return f"{name}@{part.label}"
        if name not in self.static:
            # A library that is opened with RTLD_GLOBAL before this one.
            for other in self.parts:
                if name in other.exported:
                    return other.exported[name].actual
        return name

    def apply(self, part: Part, origin: Object) -> None:
        """Gives an object of a library its names, takes its constructors, and adds aliases."""
        before = {id(symbol): symbol.name for symbol in origin.symbols}
        self.rename_groups(part, origin)
        self.take_starts(part, origin)
        for symbol in origin.symbols:
            if symbol.flags & objects.LOCAL or symbol.kind not in NAMED:
                continue
            name = self.resolve(part, symbol.name)
            if name != symbol.name:
                origin.rename(symbol, name)
        if part.at_start:
            self.add_aliases(part, origin, before)

    def rename_groups(self, part: Part, origin: Object) -> None:
        """A group has the library's name if what is in it has."""
        own = {place(symbol) for symbol in origin.symbols if symbol.others_see and symbol.kind in NAMED and part.own[symbol.name] != symbol.name}
        own |= {place(origin.symbols[index]) for _, index in origin.starts}
        for group in origin.comdats:
            if own.intersection(group.entries):
                group.name = f"{group.name}@{part.label}"

    def take_starts(self, part: Part, origin: Object) -> None:
        """dlopen runs a library's constructors, by names that only it has."""
        for priority, index in origin.starts:
            symbol = origin.symbols[index]
            if symbol.flags & objects.LOCAL:
                symbol.flags = symbol.flags & ~objects.LOCAL | objects.HIDDEN
                symbol.name = f"start.{len(part.starts)}"
                part.own[symbol.name] = f"{symbol.name}@{part.label}"
            part.starts.append((priority, part.own[symbol.name]))
        origin.starts = []

    def add_aliases(self, part: Part, origin: Object, before: dict[int, str]) -> None:
        for symbol in list(origin.symbols):
            name = before[id(symbol)]
            if not symbol.exported or symbol.name == name or name not in part.exported or name in self.said or name in self.visible:
                continue
            self.said.add(name)
            flags = symbol.flags | objects.WEAK
            origin.symbols.append(Symbol(symbol.kind, flags, name, symbol.index, symbol.place, symbol.size))


def place(symbol: Symbol) -> tuple[int, int]:
    kind = objects.IN_COMDAT_DATA if symbol.kind == objects.OF_DATA else objects.IN_COMDAT_FUNCTION
    return kind, symbol.index


def is_shared(origin: Object, group: Comdat) -> bool:
    """Whether a program has the group once, in which C++ puts what it may define in many places. With
    a constructor in it, it belongs to the library, since its data then does."""
    entries = set(group.entries)
    if any(place(origin.symbols[index]) in entries for _, index in origin.starts):
        return False
    return not any(
        symbol.others_see and symbol.flags & objects.HIDDEN and symbol.kind in NAMED and place(symbol) in entries
        for symbol in origin.symbols
    )
