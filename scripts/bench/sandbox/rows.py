"""The rows: commands that people put into a sandbox. Each begins with the program itself; a shell runs only where a shell is the tool."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from bench.building import run_tool
from bench.cli import chosen
from bench.model import REPOSITORY, found
from bench.sandbox.model import Row

FILES = 1000
AMORTIZED = (10, 100)
RULES = (10, 100, 1000)
SERVED = b'{"status":"ok"}\n'

CONFIGURE = """#!/bin/sh
# The work of a configure script: many small questions to many small programs.
set -e
rm -rf conf.d
mkdir conf.d
for name in alloca fork mmap poll select socket strdup strlcpy uname vsnprintf; do
    printf 'int %s(void);\\nint main(void) { return 0; }\\n' "$name" >conf.d/$name.c
    if test -s conf.d/$name.c && grep -q "$name" conf.d/$name.c; then
        upper=$(echo "$name" | tr a-z A-Z)
        echo "#define HAVE_$upper 1" >>conf.d/config.h
    fi
done
sed -e 's/HAVE_/USE_/' conf.d/config.h | sort >config.h
rm -rf conf.d
"""
MAKEFILE = "config.h: configure\n\tsh ./configure\n"


def words_of(lines: int) -> str:
    """Text that is the same each time."""
    dice = random.Random(lines)
    return "".join(" ".join("".join(dice.choices("abcdefghij", k=5)) for _ in range(8)) + "\n" for _ in range(lines))


def make_tree(workspace: Path) -> None:
    """1,000 files in 50 directories; every tenth has the word that is looked for."""
    text = words_of(20)
    for i in range(FILES):
        file = workspace / f"d{i % 50}" / f"f{i}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text + ("needle here\n" if i % 10 == 0 else ""))


def make_repository(workspace: Path) -> None:
    """A clean checkout of 1,000 files, one file changed and one unknown."""
    make_tree(workspace)
    git = [found("git"), "-C", str(workspace), "-c", "user.name=a", "-c", "user.email=a@b"]
    for step in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        run_tool([*git, *step], "git")
    (workspace / "d1" / "f1.txt").write_text("changed\n")
    (workspace / "new").write_text("new\n")


def make_policy_files(names: Sequence[str]):
    def make(workspace: Path) -> None:
        for name in names:
            (workspace / name).write_text("kept\n")
    return make


def write_edited(workspace: Path) -> None:
    (workspace / "edited").write_text(words_of(1000))


def remove(*names: str):
    """Removes files and directories before each run."""
    def reset(workspace: Path) -> None:
        for name in names:
            path = workspace / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    return reset


def empty_directory(name: str):
    def reset(workspace: Path) -> None:
        remove(name)(workspace)
        (workspace / name).mkdir()
        os.chmod(workspace / name, 0o777)
    return reset


def text_of(name: str):
    def answer(workspace: Path, printed: bytes) -> object:
        file = workspace / name
        return printed, file.read_bytes() if file.exists() else None
    return answer


def sorted_lines(_: Path, printed: bytes) -> object:
    return sorted(printed.splitlines())


def entries_of(name: str):
    def answer(workspace: Path, _: bytes) -> object:
        return len(list((workspace / name).iterdir()))
    return answer


def plain_rows() -> list[Row]:
    return [
        Row("true", ("true",), expected=b"", here=False),
        Row("echo", ("echo", "hello"), expected=b"hello\n", here=False),
        Row("python", ("python3", "-c", "pass"), expected=b"", here=False),
        Row("node", ("node", "-e", ""), expected=b"", here=False, slow=True),
        Row("qjs", ("qjs", "-e", ""), expected=b"", here=False),
        Row("git-status", ("git", "status", "--porcelain"), make_repository, expected=b" M d1/f1.txt\n?? new\n"),
        Row("grep", ("grep", "-rn", "needle", "."), make_tree, answer=sorted_lines),
        Row("rg", ("rg", "-n", "needle", "."), make_tree, answer=sorted_lines, slow=True),
        Row("sed", ("sed", "-i", "s/abc/xyz/g", "edited"), reset=write_edited, answer=text_of("edited")),
        Row("file-write", ("bash", "-c", "echo hello >out"), reset=remove("out"), answer=text_of("out"), expected=(b"", b"hello\n")),
        Row("file-read", ("cat", "input"), lambda at: (at / "input").write_text(words_of(20000))),
        Row("small-files", ("bash", "-c", f"i=0; while [ $i -lt {FILES} ]; do echo $i >many/$i; i=$((i + 1)); done"),
            reset=empty_directory("many"), answer=entries_of("many"), expected=FILES),
        Row("pipe", ("bash", "-c", "cat input | sort | uniq -c"), lambda at: (at / "input").write_text(words_of(2000)),
            tools=("cat", "sort", "uniq"), answer=lambda _, printed: [line.split() for line in printed.splitlines()]),
        Row("configure", ("make", "-s", "config.h"), make_project, reset=remove("config.h"), answer=text_of("config.h"),
            tools=("sh", "sed", "grep", "sort", "tr")),
        Row("sqlite", ("sqlite3", "db", ".read inserts.sql"), lambda at: (at / "inserts.sql").write_text(inserts()), reset=remove("db", "db-journal"), expected=b"1000|500500\n"),
        Row("curl", ("curl", "-s", "http://127.0.0.1:{port}/"), network=True, here=False, expected=SERVED),
    ]


def make_project(workspace: Path) -> None:
    (workspace / "configure").write_text(CONFIGURE)
    (workspace / "Makefile").write_text(MAKEFILE)


def inserts() -> str:
    lines = [f"INSERT INTO t VALUES({i}, 'name {i}');" for i in range(1, FILES + 1)]
    return "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT); BEGIN; " + " ".join(lines) + " COMMIT; SELECT count(*), sum(id) FROM t;"


def amortized_rows() -> list[Row]:
    """Many commands in one sandbox: the cost of one more."""
    rows = []
    for count in AMORTIZED:
        script = f"i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i + 1)); done"
        rows.append(Row(f"amortized-true-{count}", ("bash", "-c", script), expected=b"", here=False, tools=("true",), slow=count > 10))
    script = "i=0; while [ $i -lt 10 ]; do git status --porcelain >out; i=$((i + 1)); done; cat out"
    return [*rows, Row("amortized-git-status-10", ("bash", "-c", script), make_repository, reset=remove("out"),
                       expected=b" M d1/f1.txt\n?? new\n?? out\n", tools=("git", "cat"))]


def policy_rows() -> list[Row]:
    """Starts under each profile, and a write that is refused by the last of many rules."""
    rows = [Row(f"profile-{file.stem}", ("true",), expected=b"", policy=file.stem)
            for file in sorted((REPOSITORY / "lind-boot" / "policies").glob("*.toml"))]
    for count in RULES:
        names = tuple(f"kept{i}" for i in range(count))
        rows.append(Row(f"deny-{count}", ("bash", "-c", f"echo ran; echo changed 2>/dev/null >{names[-1]} || exit 7"),
                        make_policy_files(names), answer=text_of(names[-1]), expected=(b"ran\n", b"kept\n"), status=7, protect=names, slow=count > 100))
    return rows


def every_row() -> list[Row]:
    return [*plain_rows(), *amortized_rows(), *policy_rows()]


def choose(rows: list[Row], wanted: Sequence[str], network: bool, quick: bool) -> list[Row]:
    """The rows whose names start with these words; without words all but those that only an option turns on."""
    named = chosen("--rows", rows, wanted, "row")
    return [row for row in named if (network or not row.network) and not (quick and row.slow and not wanted)]
