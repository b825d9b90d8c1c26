"""That what guests name reaches no terminal as it is: messages go through functions that make them fit (src/kernel/text.rs and its use in
stdio.rs, grates/sdk/c/include/lind/text.h). Used by `run`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

RUST = ("src/kernel", "src/engine", "lind-boot/src")
GRATES = "grates"
# Prints that need no function of text, or that make the text fit themselves: file, and why.
RUST_HOME = {"src/kernel/text.rs", "src/kernel/stdio.rs"}
SEVERAL_LINES = {
    "src/engine/signal/trap.rs": "the lines of a backtrace, whose names are shown by backtrace.rs",
    "lind-boot/src/cli/mod.rs": "help, and mistakes in the command line, whose words are shown",
    "lind-boot/src/session/shell/mod.rs": "the lines to add to the list of projects, whose names are shown or quoted",
    "lind-boot/src/launch/mod.rs": "the table of --perf, whose names are shown by perf.rs",
}
ORDERS = {
    "src/engine/code/progress.rs": "takes its own line back",
    "lind-boot/src/tools/cache.rs": "takes the line of progress.rs back",
}
# The bytes of a command's output and of files, as cat(1) would print them.
CONTENTS = {
    "lind-boot/src/session/verbs/attach.rs": "the output of a command, on the standard files of its client",
    "lind-boot/src/session/verbs/files.rs": "the contents of a file, by `session cat`",
}
C_ALLOWED = {
    "grates/sdk/c/core/options.c": "help texts of the grate itself",
    "grates/sdk/c/core/explain.c": "JSON, read by lind-boot; its text() escapes",
    "grates/doctor/doctor.c": "read by lind-boot",
    "grates/sdk/template/client.c": "an example of a program, not of a grate",
    "grates/overlay/verbs/print.c": "the functions that print names of an overlay, by lind/text.h",
    "grates/witness/show.c": "calls as strace prints them: strace/text.c escapes all but ASCII",
}
# The allowed values of a %s: escaped text, or words of ours. A comment marks those where that
# cannot be seen.
OURS = re.compile(r'lind_shown\(|lind_shell_word\(|strerror\(|slash_of\(|\? "[^"]*" : |/\* (?:ours|read by lind-boot) \*/')
ESCAPES = re.compile(r"escape_(?:debug|unicode)\b|is_control\b")
MACROS = re.compile(r"\be?print(?:ln)?!|\bdbg!|(?<!std)io::std(?:out|err)\(\)(?!\s*\.is_terminal)")
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod tests \{.*", re.MULTILINE | re.DOTALL)


def rust(top: Path, folder: str) -> Iterator[str]:
    for path in sorted((top / folder).rglob("*.rs")):
        name = str(path.relative_to(top))
        if name in RUST_HOME or re.search(r"/tests?(/|\.rs)|/examples/|/testing\.rs|/random\.rs", name):
            continue
        text = re.sub(r"^\s*//.*", "", TESTS.sub("", path.read_text()), flags=re.MULTILINE)
        for found in MACROS.findall(text) if name not in CONTENTS else ():
            yield f"{name}: {found}: stdio::say_line and stdio::print say things"
        for found in ESCAPES.findall(text):
            yield f"{name}: {found}: lind_kernel::text makes a text fit for a terminal"
        if "stdio::say(" in text and name not in SEVERAL_LINES:
            yield f"{name}: stdio::say: names in a message stay on its line by stdio::say_line"
        if "stdio::say_as_it_is(" in text and name not in ORDERS:
            yield f"{name}: stdio::say_as_it_is: only for orders to a terminal"
        for line in re.findall(r"(?:writeln!\(|\bprint\(|rows\.push\()[^;]*?;", text, re.DOTALL):
            if re.search(r"\.display\(\)|to_string_lossy\(\)", line) and "shown(" not in line:
                yield f"{name}: {' '.join(line.split())}: a name goes through text::shown"


def statements(text: str) -> Iterator[str]:
    """Statements of C that print, without comments but those that say whose a text is."""
    text = re.sub(r"/\*(?! ours \*/| read by lind-boot \*/).*?\*/", "", text, flags=re.DOTALL)
    for found in re.finditer(r"\b(?:printf|puts|perror|dprintf|vprintf|vdprintf|fprintf|vfprintf|fputs)\(", text):
        statement = " ".join(text[found.start():text.index(";", found.start())].split())
        # Parts of one text.
        yield re.sub(r'(?<!\\)" "(?!,)', "", statement)


def c(top: Path) -> Iterator[str]:
    for path in sorted((top / GRATES).rglob("*.[ch]")):
        name = str(path.relative_to(top))
        if name in C_ALLOWED or "/build/" in name:
            continue
        for statement in statements(path.read_text()):
            if re.match(r"(?:v?fprintf|fputs)\(", statement) and not re.search(r"\bstd(?:out|err)\b", statement):
                continue  # to a file
            texts = len(re.findall(r"%[-*.0-9]*s", statement)) + bool(re.match(r"(?:f?puts|perror)\(", statement) and '"' not in statement)
            if texts > len(OURS.findall(statement)):
                yield f"{name}: {' '.join(statement.split())}: a name goes through lind_shown, or is said to be /* ours */"
        for found in re.findall(r"\bwrite\([12],", path.read_text()):
            if name != "grates/sdk/c/core/options.c":
                yield f"{name}: {found}: lind_log says things"


def wrong(top: Path) -> Iterator[str]:
    for folder in RUST:
        yield from rust(top, folder)
    yield from c(top)
