"""Writes the table that dlopen and dlsym read, as C (src/sysroot/include/lind_libraries.h)."""

from __future__ import annotations

import os
from collections.abc import Iterable

from driver import build, place
from driver.libraries import objects
from driver.libraries.names import Entry, Part

TYPES = {0x7F: "int", 0x7E: "long long", 0x7D: "float", 0x7C: "double", 0x7B: "v128"}
HEAD = """\
#include <lind_libraries.h>
typedef int v128 __attribute__((vector_size(16)));
"""


def quoted(name: str) -> str:
    """A string of C. Other characters than plain ones are written by their number, with three digits so that it ends there."""
    data = name.encode(errors="surrogateescape")
    plain = b"".join(bytes([byte]) if 0x20 <= byte < 0x7F and byte not in b'"\\?' else b"\\%03o" % byte for byte in data)
    return f'"{plain.decode()}"'


class Table:
    """The text of a table that grows."""

    def __init__(self) -> None:
        self.lines = [HEAD]
        self.count = 0
        self.declared: dict[str, str] = {}

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def function(self, actual: str, of_type: tuple[bytes, bytes]) -> str | None:
        """Declares a function by its name in the link; None if C has no such type."""
        takes, gives = of_type
        if len(gives) > 1 or any(kind not in TYPES for kind in takes + gives):
            return None
        result = TYPES[gives[0]] if gives else "void"
        arguments = ", ".join(TYPES[kind] for kind in takes) or "void"
        return f"extern {result} @({arguments}) __asm__({quoted(actual)});"

    def address(self, entry: Entry) -> str | None:
        """An expression for what a name means."""
        if entry.actual in self.declared:
            return self.declared[entry.actual]
        name = f"n{len(self.declared)}"
        if entry.kind == objects.OF_FUNCTION:
            line = self.function(entry.actual, entry.of_type)
            if line is None:
                return None
            self.lines.append(line.replace("@", name, 1))
        else:
            words = "_Thread_local " if entry.thread_local else ""
            self.lines.append(f"extern {words}char {name}[] __asm__({quoted(entry.actual)});")
        if entry.thread_local:
            self.lines.append(f"static void *t{name}(void) {{ return {name}; }}")
            name = f"t{name}"
        self.declared[entry.actual] = f"(void *){name}"
        return self.declared[entry.actual]

    def symbols(self, entries: Iterable[Entry]) -> str:
        """An array of names in the order of strcmp, and the two fields of a library that mean it."""
        rows = []
        for entry in sorted(entries, key=lambda entry: entry.name.encode(errors="surrogateescape")):
            address = self.address(entry)
            if address is not None:
                size = "LIND_THREAD_LOCAL" if entry.thread_local else str(entry.size)
                rows.append(f"\t{{{quoted(entry.name)}, {address}, {size}}},")
        self.count += 1
        self.lines += [f"static const struct lind_symbol symbols{self.count}[] = {{", *rows, "\t{0, 0, 0}};"]
        return f"symbols{self.count}, {len(rows)}"


def of_program(program: Iterable[Entry], libc: Iterable[Entry], parts: list[Part]) -> str:
    """The table of a program and its libraries."""
    table = Table()
    indexes = {part: number for number, part in enumerate(parts, 1)}
    table.lines.append(f"static struct lind_library l[{len(parts) + 1}];")
    rows = [f'\t{{"", "", {table.symbols(program)}, c0, d0, s0, 1, 0, 0, 0, 0, 0}},']
    arrays = [array("static struct lind_library *const d0[]", []), array("static struct lind_library *const s0[]", ["l"]), starts(table, 0, [])]
    for part, number in indexes.items():
        symbols = table.symbols(part.exported.values())
        arrays.append(starts(table, number, part.starts))
        arrays.append(array(f"static struct lind_library *const d{number}[]", [f"l + {indexes[other]}" for other in part.needed]))
        arrays.append(array(f"static struct lind_library *const s{number}[]", [f"l + {indexes[other]}" for other in part.scope()]))
        if part.says_caller:
            table.lines.append(caller(part, number))
        rows.append(
            f'\t{{{quoted(part.library.soname)}, "{part.library.digest}", {symbols}, c{number}, d{number}, s{number}, {int(part.at_start)}, 0, 0, 0, 0, 0}},'
        )
    table.lines += [*arrays, f"static struct lind_library l[{len(parts) + 1}] = {{", *rows, "};"]
    table.lines.append(f'struct lind_library __lind_libc = {{"libc.so", "", {table.symbols(libc)}, c0, d0, d0, 1, 0, 0, 0, 0, 0}};')
    table.lines.append(array("struct lind_library *const __lind_libraries[]", [f"l + {number}" for number in range(len(parts) + 1)]))
    table.lines.append(section(parts))
    if any(part.at_start for part in parts):
        # Behind the C++ library's own, before all that a program can have.
        table.lines.append("__attribute__((constructor(101))) static void start(void) { __lind_start_libraries(); }")
    return table.text()


def section(parts: list[Part]) -> str:
    """A section of the module that says which libraries are in it, for people and tools."""
    lines = [f"{part.library.soname} {part.library.digest}{' needed' if part.at_start else ''}\n" for part in parts]
    text = ", ".join(str(byte) for line in lines for byte in line.encode(errors="surrogateescape")) or "10"
    return f'__asm__(".section .custom_section.lind.libraries,\\"\\",@\\n.byte {text}\\n");'


def compiled(text: str, target: str, include: str) -> int:
    """Compiles a table. Functions are only named in it, so it needs neither exceptions nor setjmp."""
    source = f"{target}.c"
    try:
        with open(source, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        options = ["-O1", "-fno-builtin", "-w", "-nostdinc", "-I", include, "-c", source, "-o", target]
        return place.run([place.tool("clang"), *build.TARGET, *build.FEATURES, *options])
    finally:
        if os.path.exists(source):
            os.unlink(source)


def array(declaration: str, entries: list[str]) -> str:
    return f"{declaration} = {{{', '.join([*entries, '0'])}}};"


def starts(table: Table, number: int, of_part: list[tuple[int, str]]) -> str:
    """The constructors of a library, by their priority and then as they were linked."""
    names = []
    for _, actual in sorted(of_part, key=lambda start: start[0]):
        name = f"c{number}_{len(names)}"
        table.lines.append(f"extern void {name}(void) __asm__({quoted(actual)});")
        names.append(name)
    return array(f"static void (*const c{number}[])(void)", names)


def caller(part: Part, number: int) -> str:
    """dlsym as a library calls it: RTLD_NEXT depends on who does."""
    name = quoted(f"dlsym@{part.label}")
    return (
        f"void *caller{number}(void *, const char *) __asm__({name});\n"
        f"void *caller{number}(void *handle, const char *name) {{ return __dlsym(handle, name, l + {number}); }}"
    )
