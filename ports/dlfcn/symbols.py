#!/usr/bin/env python3
"""Writes a table of what archives or objects define, as dl.c searches it: symbols.py PATTERN FILE [PATTERN FILE]... >symbols.s

PATTERN is a regular expression for the names that are taken. A function's type goes with it, which the linker compares."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

VALUES = {0x7F: "i32", 0x7E: "i64", 0x7D: "f32", 0x7C: "f64", 0x7B: "v128", 0x70: "funcref", 0x6F: "externref"}
TYPE, IMPORT, FUNCTION, CUSTOM = 1, 2, 3, 0
SYMBOL_TABLE = 8
OF_FUNCTION, OF_DATA, OF_SECTION = 0, 1, 3
LOCAL, UNDEFINED, EXPLICIT_NAME, THREAD_LOCAL = 0x02, 0x10, 0x40, 0x100


class Reader:
    """Bytes in the encoding of WebAssembly."""

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

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def name(self) -> str:
        return self.take(self.number()).decode()

    def sections(self) -> Iterator[tuple[int, Reader]]:
        while self.at < len(self.data):
            kind = self.number()
            yield kind, Reader(self.take(self.number()))


def members(archive: bytes) -> Iterator[bytes]:
    """The files of an archive of ar, or the one that is none."""
    if not archive.startswith(b"!<arch>"):
        yield archive
        return
    at = 8
    while at + 60 <= len(archive):
        size = int(archive[at + 48 : at + 58])
        yield archive[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


def types_of(section: Reader) -> list[str]:
    """Function types, as the assembler writes them."""
    types = []
    for _ in range(section.number()):
        section.take(1)
        takes, gives = (", ".join(VALUES[byte] for byte in section.take(section.number())) for _ in range(2))
        types.append(f"({takes}) -> ({gives})")
    return types


def imported(section: Reader) -> list[int]:
    """The types of imported functions."""
    found = []
    for _ in range(section.number()):
        section.name()
        section.name()
        kind = section.number()
        if kind == 0:
            found.append(section.number())
        elif kind == 1:
            section.take(1)
            limits(section)
        elif kind == 2:
            limits(section)
        else:
            section.take(1)
            section.number()
    return found


def limits(section: Reader) -> None:
    if section.number() & 1:
        section.number()
    section.number()


def symbols(table: Reader, types: list[str], functions: list[int]) -> Iterator[tuple[str, str]]:
    """Names that are defined for others, with the type of a function or nothing for data."""
    for _ in range(table.number()):
        kind, flags = table.number(), table.number()
        defined = not flags & UNDEFINED
        if kind == OF_DATA:
            name, of_type = table.name(), ""
            if defined:
                table.number(), table.number(), table.number()
        elif kind == OF_SECTION:
            table.number()
            continue
        else:
            index = table.number()
            name = table.name() if defined or flags & EXPLICIT_NAME else ""
            if kind != OF_FUNCTION:
                continue
            of_type = types[functions[index]]
        if defined and not flags & (LOCAL | THREAD_LOCAL):
            yield name, of_type


def defined(module: bytes) -> Iterator[tuple[str, str]]:
    types: list[str] = []
    functions: list[int] = []
    for kind, section in Reader(module[8:]).sections():
        if kind == TYPE:
            types = types_of(section)
        elif kind == IMPORT:
            functions = imported(section)
        elif kind == FUNCTION:
            functions += [section.number() for _ in range(section.number())]
        elif kind == CUSTOM and section.name() == "linking":
            section.number()
            for part, table in Reader(section.data[section.at :]).sections():
                if part == SYMBOL_TABLE:
                    yield from symbols(table, types, functions)


def main(words: list[str]) -> None:
    found: dict[str, str] = {}
    for pattern, file in zip(words[::2], words[1::2], strict=True):
        for member in members(Path(file).read_bytes()):
            if member.startswith(b"\0asm"):
                for name, of_type in defined(member):
                    if re.fullmatch(pattern, name):
                        found.setdefault(name, of_type)
    names = sorted(found, key=str.encode)
    for name in names:
        if found[name]:
            print(f"\t.functype\t{name} {found[name]}")
    print('\t.section .rodata.lind_symbols,"",@\n\t.globl lind_symbols\n\t.p2align 2\nlind_symbols:')
    for number, name in enumerate(names):
        print(f"\t.int32 .Lname{number}\n\t.int32 {name}")
    print(f"\t.size lind_symbols, {8 * len(names)}\n\t.globl lind_symbol_count\n\t.p2align 2\nlind_symbol_count:\n\t.int32 {len(names)}")
    print('\t.size lind_symbol_count, 4\n\t.section .rodata.lind_symbol_names,"S",@')
    for number, name in enumerate(names):
        print(f'.Lname{number}:\n\t.asciz "{name}"\n\t.size .Lname{number}, {len(name) + 1}')


if __name__ == "__main__":
    main(sys.argv[1:])
