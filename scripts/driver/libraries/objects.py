"""Relocatable objects of WebAssembly: what their symbols are, and the same objects with other names.

The format is the linker's (LLVM's tool-conventions, Linking.md). An object keeps its code and data
as they are; only the list of imports and the section `linking` are written again."""

from __future__ import annotations

from collections.abc import Iterator

from driver.place import Fail

MAGIC = b"\0asm\1\0\0\0"
BITCODE = b"BC\xc0\xde"
CUSTOM, TYPE, IMPORT, FUNCTION = 0, 1, 2, 3
INIT_FUNCTIONS, COMDATS, SYMBOLS = 6, 7, 8
OF_FUNCTION, OF_DATA, OF_GLOBAL, OF_SECTION, OF_TAG, OF_TABLE = range(6)
WEAK, LOCAL, HIDDEN, UNDEFINED, EXPLICIT_NAME, THREAD_LOCAL = 0x1, 0x2, 0x4, 0x10, 0x40, 0x100
IN_COMDAT_DATA, IN_COMDAT_FUNCTION = 0, 1


class Reader:
    """Bytes in the encoding of WebAssembly."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError

    def take(self, count: int) -> bytes:
        self.at += count
        if self.at > len(self.data):
            raise IndexError
        return self.data[self.at - count : self.at]

    def name(self) -> str:
        return self.take(self.number()).decode(errors="surrogateescape")

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """The rest, which is a list of a kind, a length and as many bytes."""
        while self.at < len(self.data):
            kind = self.number()
            yield kind, self.take(self.number())


def number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def text(name: str) -> bytes:
    data = name.encode(errors="surrogateescape")
    return number(len(data)) + data


class Symbol:
    """An entry of the table of symbols."""

    __slots__ = ("flags", "index", "kind", "name", "place", "size")

    def __init__(self, kind: int, flags: int, name: str, index: int, place: bytes, size: int) -> None:
        self.kind = kind
        self.flags = flags
        self.name = name
        self.index = index  # of the function or the data segment; data that is not here has none
        self.place = place  # of data: segment, offset and size, as they were read
        self.size = size

    @property
    def defined(self) -> bool:
        return not self.flags & UNDEFINED and self.kind != OF_SECTION

    @property
    def others_see(self) -> bool:
        """Whether other objects can mean this definition."""
        return self.defined and not self.flags & LOCAL

    @property
    def exported(self) -> bool:
        """Whether other parts of a program can mean it."""
        return self.others_see and not self.flags & HIDDEN and self.kind in (OF_FUNCTION, OF_DATA)

    def encoded(self) -> bytes:
        head = number(self.kind) + number(self.flags)
        if self.kind == OF_DATA:
            return head + text(self.name) + self.place
        if self.kind == OF_SECTION:
            return head + number(self.index)
        named = not self.flags & UNDEFINED or self.flags & EXPLICIT_NAME
        return head + number(self.index) + (text(self.name) if named else b"")


class Import:
    """An entry of the list of imports."""

    __slots__ = ("field", "kind", "module", "of_type", "rest")

    def __init__(self, reader: Reader) -> None:
        self.module = reader.name()
        self.field = reader.name()
        self.kind = reader.number()
        begin = reader.at
        self.of_type = -1
        if self.kind == 0:
            self.of_type = reader.number()
        elif self.kind == 1:
            reader.take(1)
            limits(reader)
        elif self.kind == 2:
            limits(reader)
        elif self.kind == 3:
            reader.take(2)
        else:
            reader.take(1)
            reader.number()
        self.rest = reader.data[begin : reader.at]

    def encoded(self) -> bytes:
        return text(self.module) + text(self.field) + number(self.kind) + self.rest


def limits(reader: Reader) -> None:
    if reader.number() & 1:
        reader.number()
    reader.number()


class Comdat:
    """A group of which the linker takes one of those with the same name."""

    __slots__ = ("entries", "flags", "name")

    def __init__(self, reader: Reader) -> None:
        self.name = reader.name()
        self.flags = reader.number()
        self.entries = [(reader.number(), reader.number()) for _ in range(reader.number())]

    def encoded(self) -> bytes:
        entries = b"".join(number(kind) + number(index) for kind, index in self.entries)
        return text(self.name) + number(self.flags) + number(len(self.entries)) + entries


class Object:
    """An object, whose symbols may be changed and then written."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.sections: list[tuple[int, bytes]] = []
        self.imports: list[Import] = []
        self.functions: list[int] = []  # the type of each, with imported ones first
        self.types: list[tuple[bytes, bytes]] = []
        self.symbols: list[Symbol] = []
        self.starts: list[tuple[int, int]] = []  # priority, symbol
        self.comdats: list[Comdat] = []
        if not data.startswith(MAGIC):
            raise Fail(f"{name}: not an object for a cage")
        try:
            self.read(Reader(data[len(MAGIC) :]))
            self.check()
        except (IndexError, KeyError, ValueError):
            raise Fail(f"{name}: the object is damaged") from None

    def read(self, reader: Reader) -> None:
        for kind, body in reader.parts():
            self.sections.append((kind, body))
            part = Reader(body)
            if kind == TYPE:
                self.types = list(function_types(part))
            elif kind == IMPORT:
                self.imports = [Import(part) for _ in range(part.number())]
                self.functions = [entry.of_type for entry in self.imports if entry.kind == OF_FUNCTION]
            elif kind == FUNCTION:
                self.functions += [part.number() for _ in range(part.number())]
            elif kind == CUSTOM and part.name() == "linking":
                part.number()
                self.read_linking(part)

    def check(self) -> None:
        """Raises if an index means nothing."""
        for symbol in self.symbols:
            if symbol.kind == OF_FUNCTION:
                self.type_of(symbol)
            elif symbol.kind > OF_TABLE:
                raise ValueError
            elif symbol.kind not in (OF_DATA, OF_SECTION) and symbol.flags & UNDEFINED:
                self.imported(symbol.kind, symbol.index)
        for _, index in self.starts:
            if self.symbols[index].kind != OF_FUNCTION or not self.symbols[index].defined:
                raise ValueError

    def read_linking(self, reader: Reader) -> None:
        for kind, body in reader.parts():
            part = Reader(body)
            if kind == SYMBOLS:
                self.symbols = [self.symbol(part) for _ in range(part.number())]
            elif kind == INIT_FUNCTIONS:
                self.starts = [(part.number(), part.number()) for _ in range(part.number())]
            elif kind == COMDATS:
                self.comdats = [Comdat(part) for _ in range(part.number())]

    def symbol(self, reader: Reader) -> Symbol:
        kind, flags = reader.number(), reader.number()
        if kind == OF_DATA:
            name, begin = reader.name(), reader.at
            index, size = -1, 0
            if not flags & UNDEFINED:
                index, _, size = reader.number(), reader.number(), reader.number()
            return Symbol(kind, flags, name, index, reader.data[begin : reader.at], size)
        index = reader.number()
        if kind == OF_SECTION:
            return Symbol(kind, flags, "", index, b"", 0)
        if not flags & UNDEFINED or flags & EXPLICIT_NAME:
            return Symbol(kind, flags, reader.name(), index, b"", 0)
        return Symbol(kind, flags, self.imported(kind, index).field, index, b"", 0)

    def imported(self, kind: int, index: int) -> Import:
        """The import that an undefined symbol of this kind means."""
        of_kind = {OF_FUNCTION: 0, OF_TABLE: 1, OF_GLOBAL: 3, OF_TAG: 4}[kind]
        return [entry for entry in self.imports if entry.kind == of_kind][index]

    def type_of(self, symbol: Symbol) -> tuple[bytes, bytes]:
        """The types of a function's arguments and results."""
        return self.types[self.functions[symbol.index]]

    def rename(self, symbol: Symbol, name: str) -> None:
        if symbol.kind != OF_DATA and symbol.flags & UNDEFINED and not symbol.flags & EXPLICIT_NAME:
            self.imported(symbol.kind, symbol.index).field = name
        symbol.name = name

    def groups(self) -> dict[tuple[int, int], Comdat]:
        """The groups by what is in them: a kind, and the index of a function or data segment."""
        return {entry: group for group in self.comdats for entry in group.entries}

    def encoded(self) -> bytes:
        """The object as the linker reads it."""
        out = bytearray(MAGIC)
        for kind, body in self.sections:
            if kind == IMPORT:
                body = number(len(self.imports)) + b"".join(entry.encoded() for entry in self.imports)
            elif kind == CUSTOM and body.startswith(b"\7linking"):
                body = self.linking(Reader(body))
            out += number(kind) + number(len(body)) + body
        return bytes(out)

    def linking(self, reader: Reader) -> bytes:
        reader.name()
        reader.number()
        out = bytearray(reader.data[: reader.at])
        for kind, body in reader.parts():
            if kind == SYMBOLS:
                body = many(symbol.encoded() for symbol in self.symbols)
            elif kind == INIT_FUNCTIONS:
                body = many(number(priority) + number(symbol) for priority, symbol in self.starts)
            elif kind == COMDATS:
                body = many(group.encoded() for group in self.comdats)
            out += number(kind) + number(len(body)) + body
        return bytes(out)


def many(entries: Iterator[bytes]) -> bytes:
    parts = list(entries)
    return number(len(parts)) + b"".join(parts)


def function_types(reader: Reader) -> Iterator[tuple[bytes, bytes]]:
    for _ in range(reader.number()):
        reader.take(1)
        yield reader.take(reader.number()), reader.take(reader.number())
