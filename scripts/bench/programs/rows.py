"""The work that the programs do. A file of tests/benchmarks/programs is a row; rows with data beside the script are below."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

from bench.building import run_tool
from bench.model import REPOSITORY
from bench.sandbox.model import Row, nothing
from bench.sandbox.rows import remove, words_of

PLACE = REPOSITORY / "tests/benchmarks/programs"
# The words that give each program a script.
WORDS = {
    "python": ("-I", "{}"), "lua": ("{}",), "sqlite3": ("-batch", "db", ".read {}"), "quickjs": ("--std", "{}"), "bash": ("{}",),
    "gawk": ("-f", "{}", "text"),
}
LINES = 60000
COMMITS = 300
GIT = {"user.name": "a", "user.email": "a@b", "init.defaultBranch": "main", "commit.gpgSign": "false", "gc.auto": "0"}


def script_row(file: Path) -> Row:
    program = file.parent.name
    words = (program, *(word.format(file.name) for word in WORDS[program]))
    return Row(f"{program} {file.stem}", words, functools.partial(with_script, file), remove("db", "db-journal") if program == "sqlite3" else nothing)


def with_script(file: Path, workspace: Path) -> None:
    shutil.copy(file, workspace)
    if file.parent.name == "gawk":
        with_text(workspace)


def with_text(workspace: Path) -> None:
    (workspace / "text").write_text(words_of(LINES))


def with_compressed_text(workspace: Path) -> None:
    with_text(workspace)
    run_tool(["/bin/sh", "-c", f"gzip <'{workspace}/text' >'{workspace}/text.gz'"], "gzip")


def with_history(workspace: Path) -> None:
    """A line of commits, each of which changes one of fifty files."""
    git = ["/usr/bin/git", "-C", str(workspace), *(word for name, value in GIT.items() for word in ("-c", f"{name}={value}"))]
    run_tool([*git, "init", "-q"], "git")
    stream = []
    for i in range(COMMITS):
        text = words_of(100 + i % 7).replace("ab", str(i))
        stream.append(f"commit refs/heads/main\ncommitter a <a@b> {1000000000 + i} +0000\ndata 6\nchange\n"
                      f"M 100644 inline d{i % 5}/f{i % 50}\ndata {len(text)}\n{text}\n")
    (workspace / ".git/stream").write_text("".join(stream))
    run_tool(["/bin/sh", "-c", f"git -C '{workspace}' fast-import --quiet <'{workspace}/.git/stream'"], "git fast-import")
    run_tool([*git, "reset", "-q", "--hard", "main"], "git")


def every_row() -> list[Row]:
    scripts = [script_row(file) for program in WORDS for file in sorted((PLACE / program).iterdir()) if file.suffix != ".pyc"]
    return [
        *scripts,
        Row("gzip compress", ("gzip", "-9", "-c", "-n", "text"), with_text),
        Row("gzip decompress", ("gzip", "-d", "-c", "text.gz"), with_compressed_text),
        Row("git log", ("git", "--no-pager", "log", "-p", "--stat"), with_history),
    ]
