"""Prepares functions that call setjmp, so that a signal handler can jump into the one that was interrupted.

The compiler catches a longjmp around calls, and nothing is caught elsewhere. So whatever may fault in such a function gets a
call in front that faults in its stead, and each turn of a loop makes a call that does nothing, at which a signal is taken
(docs/signals.md). That is done on the compiler's intermediate code, before it lowers setjmp: then it is for the
compiler to keep what is alive at each of these calls.
"""

from __future__ import annotations

import os
import re

from driver.place import run

# src/sysroot/src/setjmp/wasm32/probes.c
PROBES = {
    "poll": "()", "reads": "(ptr, i32)", "writes": "(ptr, i32)", "quotient32": "(i32, i32)", "quotient64": "(i64, i64)",
    "divisor": "(i64)", "memcpy": "(ptr, ptr, i32)", "memmove": "(ptr, ptr, i32)", "memset": "(ptr, i32, i32)",
    "free": "(ptr)", "malloc": "(i32)",
}
SETJMP = re.compile(r"(?:call|invoke) .*@setjmp\(")
LABEL = re.compile(r'^(?:([-\w.$]+)|"([^"]*)"):')
# The instructions that begin a handler of exceptions, and those that leave one. Calls in one would
# have to say in which.
PAD = re.compile(r"  %\S+ = (?:catchswitch|catchpad|cleanuppad) ")
LEAVES_PAD = re.compile(r"  (?:catchret|cleanupret) ")
NESTED_PAD = re.compile(r"  %\S+ = (?:catchswitch|cleanuppad) within %")
TARGETS = re.compile(r'label %(?:([-\w.$]+)|"([^"]*)")')
VALUE = re.compile(r'(?:[%@](?:[-\w.$]+|"[^"]*")|-?\d+\b|null\b|undef\b|poison\b)')
CONSTANT = re.compile(r"(?:getelementptr|inttoptr|addrspacecast)\b[^(]*\(")
SIZES = {"i1": 1, "half": 2, "float": 4, "double": 8, "ptr": 4, "fp128": 16}
OPEN, CLOSE = "([{<", ")]}>"


def recompile(command: list[str], source: list[str], target: str) -> int:
    """Compiles a source again if functions in it call setjmp.

    `command`: the compiler with its options; `source`: the words for the source."""
    code = f"{target}.{os.getpid()}.ll"
    options = without_dependencies(command)
    try:
        # Its warnings were printed the first time.
        status = run([*options, "-w", "-S", "-emit-llvm", *source, "-o", code])
        if status:
            return status
        with open(code, encoding="utf-8", errors="surrogateescape") as file:
            before = file.read()
        after = probed(before)
        if after == before:
            return 0
        with open(code, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(after)
        options = [word for word in options if not word.startswith("-std=")]
        return run([*options, "-c", "-Xclang", "-disable-llvm-passes", "-x", "ir", code, "-o", target])
    finally:
        if os.path.exists(code):
            os.unlink(code)


def without_dependencies(command: list[str]) -> list[str]:
    """The options without those that write lists of headers: these are written already."""
    kept: list[str] = []
    words = iter(command)
    for word in words:
        if word in ("-MF", "-MT", "-MQ"):
            next(words, None)
        elif word not in ("-MD", "-MMD", "-MP"):
            kept.append(word)
    return kept


def probed(text: str) -> str:
    """Adds probes to a module of intermediate code, in the functions that call setjmp."""
    out: list[str] = []
    function: list[str] | None = None
    used: set[str] = set()
    for line in text.split("\n"):
        if function is None:
            out.append(line)
            if line.startswith("define ") and line.endswith("{"):
                function = []
        elif line == "}":
            if any(SETJMP.search(line) for line in function):
                function = Function(function, used).lines()
            out += [*function, line]
            function = None
        else:
            function.append(line)
    for name in sorted(used):
        if not re.search(rf"^declare .*@__lind_{name}\(", text, re.MULTILINE):
            out.append(f"declare {'ptr' if name == 'malloc' else 'void'} @__lind_{name}{PROBES[name]}")
    return "\n".join(out)


class Function:
    """A function that calls setjmp."""

    def __init__(self, lines: list[str], used: set[str]) -> None:
        self.old = lines
        self.used = used
        self.names = 0
        self.handlers = self.blocks_of_handlers()
        self.safe = {m[1] for line in lines if (m := re.match(r"  (%\S+) = alloca ", line))}

    def lines(self) -> list[str]:
        heads = self.loop_heads()
        new = [self.call("poll", "", "")]
        pending = handles = False
        for line in self.old:
            if LABEL.match(line):
                handles = label_of(line) in self.handlers
                pending = label_of(line) in heads and not handles
                new.append(line)
                continue
            if handles:
                new.append(line)
                continue
            if pending and not re.match(r"  %\S+ = phi ", line):
                new.append(self.call("poll", "", debug(line)))
                pending = False
            new += self.instruction(line)
        return new

    def blocks_of_handlers(self) -> set[str]:
        """The blocks that run while an exception is handled. They get no probes."""
        blocks: dict[str, list[str]] = {}
        name = ""
        for line in self.old:
            name = label_of(line) or name
            blocks.setdefault(name, []).append(line)
        nested = any(NESTED_PAD.match(line) for line in self.old)
        handlers: set[str] = set()
        left = [name for name, lines in blocks.items() if any(PAD.match(line) for line in lines)]
        while left:
            name = left.pop()
            if name in handlers or name not in blocks:
                continue
            handlers.add(name)
            # A nested handler goes on in the outer one when it is left: then the following blocks
            # count as well, whether they are handlers or not.
            if nested or not any(LEAVES_PAD.match(line) for line in blocks[name]):
                left += [plain or quoted for line in blocks[name] for plain, quoted in TARGETS.findall(line)]
        return handlers

    def loop_heads(self) -> set[str]:
        """The blocks that a later block in the text branches to. Every loop has one."""
        places = {label_of(line): at for at, line in enumerate(self.old) if LABEL.match(line)}
        heads = set()
        for at, line in enumerate(self.old):
            for plain, quoted in TARGETS.findall(line):
                name = plain or quoted
                if places.get(name, len(self.old)) <= at:
                    heads.add(name)
        return heads

    def call(self, probe: str, arguments: str, where: str) -> str:
        self.used.add(probe)
        return f"  call void @__lind_{probe}({arguments}){where}"

    def instruction(self, line: str) -> list[str]:
        """The lines of a probe."""
        words = re.match(r"  (?:%\S+ = )?((?:tail |musttail |notail )?[a-z]+) (.*)$", line)
        if not words or " addrspace(" in line:
            return [line]
        name, rest = words[1].split()[-1], words[2]
        if name in ("load", "store", "atomicrmw", "cmpxchg"):
            return [*self.access(name, rest, debug(line)), line]
        if name in ("sdiv", "udiv", "srem", "urem"):
            return [*self.division(name, rest, debug(line)), line]
        if name == "call":
            return self.of_call(line)
        return [line]

    def access(self, name: str, rest: str, where: str) -> list[str]:
        rest = re.sub(r"^(?:(?:atomic|volatile|weak) )+", "", rest)
        parts = fields(rest)
        if name == "atomicrmw":
            parts[0] = re.sub(r"^(?:volatile )?\w+ ", "", parts[0])
        pointer_at = 1 if name in ("load", "store") else 0
        if len(parts) < 2 or not parts[pointer_at].startswith("ptr "):
            return []
        pointer = value(parts[pointer_at][4:])
        if not pointer or self.is_safe(pointer):
            return []
        size = size_of(parts[1 - pointer_at])
        return [self.call("reads" if name == "load" else "writes", f"ptr {pointer}, i32 {size}", where)]

    def is_safe(self, pointer: str) -> bool:
        """Whether the pointer is the address of a variable, which is always mapped."""
        return pointer in self.safe or pointer.startswith("@") or (pointer.startswith("getelementptr") and "ptr @" in pointer)

    def division(self, name: str, rest: str, where: str) -> list[str]:
        found = re.match(r"(?:exact )?(i\d+) (\S+), ([^\s,]+)", rest)
        if not found or re.match(r"-?[1-9]", found[3]):
            return []
        ty, dividend, divisor = found.groups()
        if name == "sdiv" and ty in ("i32", "i64"):
            return [self.call(f"quotient{ty[1:]}", f"{ty} {dividend}, {ty} {divisor}", where)]
        if ty == "i64" or int(ty[1:]) > 64:
            return [self.call("divisor", f"i64 {divisor}", where)] if ty == "i64" else []
        wide, line = self.widened(ty, divisor, "i64")
        return [line, self.call("divisor", f"i64 {wide}", where)]

    def widened(self, ty: str, operand: str, to: str) -> tuple[str, str]:
        self.names += 1
        wide = f"%lind.{self.names}"
        return wide, f"  {wide} = zext {ty} {operand} to {to}"

    def of_call(self, line: str) -> list[str]:
        """A call from which, to the compiler, no jump can come."""
        allocation = re.search(r"@(malloc|free)\(", line)
        if allocation:
            self.used.add(allocation[1])
            return [line.replace(f"@{allocation[1]}(", f"@__lind_{allocation[1]}(", 1)]
        found = re.search(r"call void @llvm\.(memcpy|memmove|memset)\.[.\w]*i32\((.*)\)", line)
        if not found:
            return [line]
        parts = fields(arguments_of(line[found.start(2):]))
        to, what, count = value(strip(parts[0])), strip(parts[1]), parts[2]
        if found[1] != "memset":
            what = value(what)
            if to and what and not (self.is_safe(to) and self.is_safe(what)):
                return [self.call(found[1], f"ptr {to}, ptr {what}, {count}", debug(line))]
        elif to and not self.is_safe(to):
            wide, before = self.widened("i8", what, "i32")
            return [before, self.call("memset", f"ptr {to}, i32 {wide}, {count}", debug(line))]
        return [line]


def label_of(line: str) -> str:
    found = LABEL.match(line)
    return (found[1] or found[2]) if found else ""


def debug(line: str) -> str:
    found = re.search(r", !dbg !\d+", line)
    return found[0] if found else ""


def arguments_of(text: str) -> str:
    """The text up to the parenthesis that is closed but not opened."""
    depth = 0
    for at, sign in enumerate(text):
        depth += (sign in OPEN) - (sign in CLOSE)
        if depth < 0:
            return text[:at]
    return text


def fields(text: str) -> list[str]:
    """Splits a text at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in OPEN) - (sign in CLOSE)
        if sign == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def strip(argument: str) -> str:
    """An argument without its type and attributes."""
    rest = re.sub(r"^(?:ptr|i8|i32) ", "", argument)
    while not VALUE.match(rest) and not CONSTANT.match(rest):
        attribute = re.match(r"(?:align \d+|\w+(?:\([^)]*\))?) ", rest)
        if not attribute:
            return ""
        rest = rest[attribute.end():]
    return rest


def value(text: str) -> str:
    """The value at the beginning of the text."""
    if found := VALUE.match(text):
        return found[0]
    if found := CONSTANT.match(text):
        return text[: found.end()] + arguments_of(text[found.end():]) + ")"
    return ""


def size_of(typed: str) -> int:
    """The size of a type in bytes, with a value behind it or not; 1 for a type of several parts."""
    if found := re.match(r"<(\d+) x (\w+)>", typed):
        return int(found[1]) * size_of(found[2])
    name = typed.split()[0] if typed else ""
    if found := re.match(r"i(\d+)$", name):
        return max(1, int(found[1]) // 8)
    return SIZES.get(name, 1)
