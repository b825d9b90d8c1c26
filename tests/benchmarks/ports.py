#!/usr/bin/env python3
"""Times programs of ports/ on Linux and in cages.

    tests/benchmarks/ports.py [--rounds N] [-o FILE.json] [--build] [ROW]...    ROW: the beginning of a row's name; none: all rows

The native programs (but python) are built by the same recipes from the same sources with the same -O2, and linked as usual on Linux; --build
makes what is missing (half an hour for all). The two sides of a row take turns, after one run each that is not counted. A value is the
time from starting a program to its end, `lind-boot`'s own start included; rows of the fork pass have processor time instead, since they
compare cages with cages. The table has medians, the ratio of medians, that of processor time (which a busy machine changes less), and
each side's spread, (largest - smallest) / median.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import platform
import random
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
BUILDS = TOP / "build" / "ports"
ROOT = TOP / "lindfs"
GRATES = TOP / "build" / "grates"
RUNNER = TOP / "target" / "release" / "lind-boot"
NATIVE = BUILDS / "native-bin"
PLACE = "tmp/ports-bench"
SECONDS = 300


class Failed(Exception):
    """A row cannot be measured; the text says why and what to do."""


@dataclasses.dataclass(frozen=True)
class Side:
    """One way to run a program: a command, and the environment of the process that is started."""

    command: list[str]
    environment: dict[str, str]
    directory: Path
    stdin: Path = Path(os.devnull)


@dataclasses.dataclass(frozen=True)
class Row:
    """`base` and `mine` make the two sides afresh for each round, without being timed. `limit`: what the ratio should be at most."""

    name: str
    limit: float
    base: Callable[[], Side]
    mine: Callable[[], Side]
    processor_time: bool = False
    same_output: bool = True


@dataclasses.dataclass
class Measured:
    """Milliseconds of each round, and those of the processor."""

    base: list[float] = dataclasses.field(default_factory=list)
    mine: list[float] = dataclasses.field(default_factory=list)
    base_processor: list[float] = dataclasses.field(default_factory=list)
    mine_processor: list[float] = dataclasses.field(default_factory=list)


def ratio(mine: list[float], base: list[float]) -> float:
    return statistics.median(mine) / statistics.median(base)


# Programs


def built(port: str, file: str, side: str) -> Path:
    path = BUILDS / port / side / "source" / file
    if not path.is_file():
        option = {"native": "--native ", "cage": ""}.get(side, f"--fork={side} ")
        raise Failed(f"{port} is not built ({side}): ports/build.sh {option}{port}, or run this with --build")
    return path


def installed(name: str) -> str:
    if not (ROOT / "bin" / name).exists():
        raise Failed(f"no {name} in {ROOT / 'bin'}: ports/build.sh, or run this with --build")
    return f"/bin/{name}"


@functools.cache
def native_bin() -> None:
    """A directory for PATH, as /bin is in the root: dash as sh, coreutils by its links, git."""
    shutil.rmtree(NATIVE, ignore_errors=True)
    NATIVE.mkdir(parents=True)
    for port, file, names in [("dash", "src/dash", ["sh", "dash"]), ("bash", "bash", ["bash"]), ("git", "git", ["git", "git-upload-pack"]),
                              ("coreutils", "src/coreutils", ["cat", "true"]), ("busybox", "busybox", ["busybox"])]:
        path = BUILDS / port / "native" / "source" / file
        for name in names if path.is_file() else []:
            (NATIVE / name).symlink_to(path)


def fresh(name: str) -> Path:
    directory = ROOT / PLACE / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def shared(name: str, text: str) -> str:
    """A file that both sides read; returns its name, seen from their directories."""
    file = ROOT / PLACE / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return f"../{name}"


def native(port: str, file: str, words: list[str], directory: str = "native", **more: str) -> Side:
    native_bin()
    program = built(port, file, "native")
    return Side([str(program), *words], {"PATH": str(NATIVE), "HOME": str(ROOT / PLACE), **more}, ROOT / PLACE / directory)


def cage(words: list[str], directory: str = "cage", grates: tuple[str, ...] = (), **more: str) -> Side:
    if not RUNNER.is_file():
        raise Failed(f"{RUNNER} is not built: make")
    path = ROOT / PLACE / directory
    variables = [word for name, value in {"PATH": "/bin", "HOME": f"/{PLACE}", **more}.items() for word in ("-e", f"{name}={value}")]
    command = [str(RUNNER), "--root", str(ROOT), "--cwd", f"/{PLACE}/{directory}", *variables, *grates, *words]
    return Side(command, {"HOME": os.environ.get("HOME", "/")}, path)


# The scripts for shells.

# They append, and do not truncate: some filesystems then wait for the disk.
KINDS = {
    "builtins": ["x=$((x + 1))", "case $x in *7*) y=seven ;; *) y=$x ;; esac", "[ \"$x\" -gt 10 ] && y=${y#s}", "printf '%s %d\\n' line $x",
                 "set -- a b $x; shift", "read -r a b <words", "f $x $y", "echo \"$y\" >>out"],
    "$(...)": ["v=$(echo $x)", "v=$(f $x; echo end)", "v=$(printf %05d $x)", "v=$(read -r a b <words; echo $b)"],
    "pipes": ["echo $x | read -r y", "printf '%s\\n' a b c | while read -r l; do y=$l; done", "f $x | { read -r a; echo $a; }",
              "{ echo 1; echo 2; } | { read -r a; read -r b; echo $b $a; }"],
    "programs": ["true", "echo $x | cat", "v=$(echo a b c | cat)", "cat words"],
}


def shell_script(kinds: list[str], count: int = 1000) -> str:
    """`count` commands, of each kind as many, in turns; those of KINDS that are several in one line count as one."""
    lines = ["x=0 y=", "f() { echo \"f $1 $2\"; }", "echo one two three >words"]
    for i in range(count):
        kind = KINDS[kinds[i % len(kinds)]]
        lines.append(kind[i // len(kinds) % len(kind)])
    return "\n".join(lines) + "\n"


def shell_rows() -> list[Row]:
    rows = []
    for shell, file in (("dash", "src/dash"), ("bash", "bash")):
        for label, kinds in [("builtins, $(...), pipes", ["builtins", "$(...)", "pipes"]), *((k, [k]) for k in KINDS)]:
            def base(shell=shell, file=file, name=shared_script(kinds)) -> Side:
                fresh("native")
                if "programs" in name:
                    built("coreutils", "src/coreutils", "native")
                return native(shell, file, [name])

            def mine(shell=shell, name=shared_script(kinds)) -> Side:
                fresh("cage")
                installed("cat")
                return cage([installed(shell), name])

            rows.append(Row(f"{shell}: 1,000 commands: {label}", 1.3, base, mine))
    return rows


def shared_script(kinds: list[str]) -> str:
    return shared(f"{'-'.join(kind.strip('$(.)') or 'substitution' for kind in kinds)}.sh", shell_script(kinds))


# git

GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b",
       "GIT_AUTHOR_DATE": "1000000000 +0000", "GIT_COMMITTER_DATE": "1000000000 +0000", "GIT_PAGER": "cat"}
GIT_STEPS = [("init", ["init", "-q", "."]), ("add", ["add", "."]), ("commit", ["commit", "-q", "-m", "all"]), ("status", ["status"]),
             ("log", ["log", "--stat"]), ("clone", ["clone", "-q", ".", "../clone"])]


def tree_of_files(directory: Path) -> None:
    """1,000 files of 1 to 8 KiB of words in 50 directories, the same each time."""
    dice = random.Random(1)
    words = ["".join(dice.choices("abcdefghijklmnop", k=dice.randint(2, 9))) for _ in range(2000)]
    for i in range(1000):
        file = directory / f"d{i % 50 // 10}" / f"e{i % 50}" / f"f{i}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(" ".join(dice.choices(words, k=10)) for _ in range(dice.randint(16, 128))))


def git_sides(directory: str) -> Callable[[list[str]], Side]:
    if directory == "git-native":
        built("git", "git", "native")
        source = str(BUILDS / "git" / "native" / "source")
        return lambda words: native("git", "git", words, "git-native/work", GIT_EXEC_PATH=source,
                                    GIT_TEMPLATE_DIR=f"{source}/templates/blt", **GIT)
    program = installed("git")
    return lambda words: cage([program, *words], "git-cage/work", **GIT)


class GitRows:
    """Each step needs those before it: a round prepares by running them untimed."""

    def __init__(self) -> None:
        self.at = {"git-native": len(GIT_STEPS), "git-cage": len(GIT_STEPS)}

    def side(self, directory: str, step: int) -> Side:
        make = git_sides(directory)
        if self.at[directory] > step:
            fresh(directory)
            (ROOT / PLACE / directory / "work").mkdir()
            tree_of_files(ROOT / PLACE / directory / "work")
            self.at[directory] = 0
        for name, words in GIT_STEPS[self.at[directory]:step]:
            run(make(words), f"git {name}")
        self.at[directory] = step + 1
        return make(GIT_STEPS[step][1])

    def rows(self) -> list[Row]:
        return [Row(f"git {name}, 1,000 files", 2.0, lambda s=step: self.side("git-native", s), lambda s=step: self.side("git-cage", s),
                    same_output=name != "clone") for step, (name, _) in enumerate(GIT_STEPS)]


# python, sqlite


def python_rows() -> list[Row]:
    """The port has no native side: its Linux is the machine's own 3.11, which distributions build with profiles and LTO."""
    def base() -> Side:
        program = Path("/usr/bin/python3.11")
        if not program.exists():
            raise Failed(f"no {program}, which the port is built and compared with")
        fresh("native")
        return Side([str(program), "-c", "pass"], {}, ROOT / PLACE / "native")

    def mine() -> Side:
        fresh("cage")
        return cage([installed("python3"), "-c", "pass"])

    return [Row("python3 -c pass (Linux: the machine's own)", 2.0, base, mine)]


def sqlite_script() -> str:
    """100,000 inserts by statements of their own; every tenth transaction is rolled back, others lose a part to a savepoint."""
    lines = ["CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, number REAL);", "CREATE INDEX by_name ON t(name);"]
    for transaction in range(100):
        lines.append("BEGIN;")
        for i in range(1000):
            if transaction % 7 == 3 and i in (500, 900):
                lines.append("SAVEPOINT s;" if i == 500 else "ROLLBACK TO s; RELEASE s;")
            key = transaction * 1000 + i
            lines.append(f"INSERT INTO t VALUES({key}, 'name {key * 7919 % 100003}', {key / 7});")
        lines.append("ROLLBACK;" if transaction % 10 == 9 else "COMMIT;")
    lines += ["DELETE FROM t WHERE id % 3 = 0;", "VACUUM;", "SELECT count(*), sum(id), sum(length(name)), round(sum(number), 3) FROM t;",
              "SELECT count(*) FROM t WHERE name > 'name 5';", "PRAGMA integrity_check;"]
    return "\n".join(lines) + "\n"


def sqlite_rows() -> list[Row]:
    script = ROOT / PLACE / shared("inserts.sql", sqlite_script())[3:]

    def base() -> Side:
        fresh("native")
        return dataclasses.replace(native("sqlite3", "sqlite3", ["db"]), stdin=script)

    def mine(grates: list[str]) -> Side:
        fresh("cage")
        return dataclasses.replace(cage([installed("sqlite3"), "db"], grates=grates), stdin=script)

    def imfs() -> Side:
        need_grate("imfs")
        return mine(["imfs_grate"])

    return [Row("sqlite3, 100,000 inserts", 1.3, base, lambda: mine([])), Row("sqlite3, 100,000 inserts, imfs", 1.3, base, imfs)]


def need_grate(name: str) -> None:
    if not (GRATES / f"{name}_grate.cwasm").is_file():
        raise Failed(f"no {name} grate in {GRATES}: make")


def strace_rows() -> list[Row]:
    def side(grates: list[str]) -> Side:
        fresh("cage")
        name = shared_script(list(KINDS))
        return cage([installed("bash"), name], grates=grates)

    def traced() -> Side:
        need_grate("strace")
        return side(["strace_grate", "-c", "-o", "summary"])

    return [Row("bash, 1,000 commands, under strace -c", 1.15, lambda: side([]), traced)]


# The fork pass: programs that were linked without it (or, where they never fork, with it), code
# that does not fork.

SHELL_WORK = {
    "functions, case, ${x#a}": """
f() { case $1 in *[13579]) r=odd ;; *0) r=${1#?} ;; *) r=even ;; esac; }
i=0; while [ $i -lt 100000 ]; do f $i; i=$((i + 1)); done; echo $r""",
    "for, set --, case": """
for z in 0 1 2 3 4; do for a in 0 1 2 3 4 5 6 7 8 9; do for b in 0 1 2 3 4 5 6 7 8 9; do for c in 0 1 2 3 4 5 6 7 8 9; do for d in 0 1 2 3 4 5 6 7 8 9; do
set -- $a $b $c $d; case $1$4 in 1?) x=$2 ;; *7) x=$3 ;; *) x= ;; esac; done; done; done; done; done; echo $x $4""",
    "read, string ends": """
i=0; while [ $i -lt 2000 ]; do echo "/a/b$i/c.txt some words"; i=$((i + 1)); done >lines
for r in 1 2 3 4 5; do while read -r p w v; do q=${p##*/}; q=${q%.txt}; d=${p%/*}; printf '%s\\n' "$d" >/dev/null; done <lines; done; echo $q $d $v""",
    "echo, printf": """
i=0; while [ $i -lt 60000 ]; do echo "line $i of many" ; printf '%05d %s\\n' $i x; i=$((i + 1)); done >/dev/null; echo $i""",
}
LUA_WORK = {
    "sort, concat": """local t = {}; for r = 1, 6 do local x = r
for i = 1, 60000 do x = (x * 1103515245 + 12345) % 2147483648; t[i] = x end
table.sort(t); table.sort(t, function(a, b) return a > b end); local s = table.concat(t, ","); print(#s) end""",
    "format, gsub, gmatch": """local n = 0; for i = 1, 60000 do local s = string.format("%d:%s:%5.2f", i, "abc", i / 3)
s = s:gsub("%d+", function(d) return d .. "x" end); for w in s:gmatch("[^:]+") do n = n + #w end end; print(n)""",
    "recursion": "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end; print(fib(31))",
    "coroutines, pcall": """local s = 0; local co = coroutine.wrap(function() while true do for i = 1, 100 do coroutine.yield(i) end end end)
for i = 1, 600000 do s = s + co(); local ok, e = pcall(function() s = s + 1 end) end; print(s)""",
}
SQLITE_WORK = {
    "inserts, index": """CREATE TABLE t(a INTEGER, b TEXT, c REAL); CREATE INDEX i ON t(b);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 120000)
INSERT INTO t SELECT x, 'text ' || (x * 7919 % 100003), x / 3.0 FROM n; SELECT count(*), max(b) FROM t;""",
    "joins, groups": """CREATE TABLE t(a INTEGER PRIMARY KEY, b INTEGER, s TEXT);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 60000) INSERT INTO t SELECT x, x * 31 % 5000, 'n' || x % 100 FROM n;
SELECT count(*), sum(t.a), max(u.s) FROM t JOIN t u ON u.a = t.b; SELECT s, count(*), avg(b) FROM t GROUP BY s ORDER BY 2, 1 LIMIT 5;
SELECT count(*) FROM t WHERE s LIKE '%9%' AND lower(s) || b LIKE 'n%1';""",
}


def fork_rows() -> list[Row]:
    def side(port: str, file: str, variant: str, words: list[str], work: str) -> Side:
        fresh("cage")
        program = ROOT / PLACE / "programs" / f"{port}-{variant}"
        source = built(port, file, variant)
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            program.parent.mkdir(exist_ok=True)
            shutil.copy(source, program)
        shutil.copy(ROOT / PLACE / work, ROOT / PLACE / "cage" / "work")
        return cage([f"/{PLACE}/programs/{program.name}", *words])

    rows = []
    for port, file, variants, words, works, limit in [
        ("dash", "src/dash", ("never", "cage"), ["work"], SHELL_WORK, 1.05), ("bash", "bash", ("never", "cage"), ["work"], SHELL_WORK, 1.05),
        ("busybox", "busybox", ("never", "cage"), ["sh", "work"], SHELL_WORK, 1.05), ("lua", "src/lua", ("never", "always"), ["work"], LUA_WORK, 1.1),
        ("sqlite3", "sqlite3", ("never", "always"), [":memory:", ".read work"], SQLITE_WORK, 1.1),
    ]:
        for label, text in works.items():
            name = shared(f"work-{port}-{'-'.join(label.split()[:1]).strip(',')}", text + "\n")[3:]
            base, mine = (functools.partial(side, port, file, variant, words, name) for variant in variants)
            rows.append(Row(f"fork pass, {port}: {label}", limit, base, mine, processor_time=True))
    return rows


# Running


def run(side: Side, what: str) -> tuple[float, float, bytes]:
    """Milliseconds that a side took, those of the processor, and what it printed."""
    output = ROOT / PLACE / "output"
    with open(side.stdin, "rb") as stdin, open(output, "wb") as out, open(f"{output}.errors", "wb") as errors:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.Popen(side.command, env=side.environment, cwd=side.directory, stdin=stdin, stdout=out, stderr=errors)
        # A wait with a timeout looks only now and then: after 7.5 ms, 15.5, 31.5, and every 50.
        late = threading.Timer(SECONDS, done.kill)
        late.start()
        done.wait()
        late.cancel()
        if time.perf_counter() - start >= SECONDS:
            raise Failed(f"{what}: still running after {SECONDS} s")
        taken, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode:
        said = Path(f"{output}.errors").read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise Failed(f"{what}: status {done.returncode}: {said[0]}; it was: {' '.join(side.command)}")
    return taken * 1000, processor * 1000, output.read_bytes()


def measure(row: Row, rounds: int) -> Measured:
    result = Measured()
    for i in range(rounds + 1):
        base, base_processor, printed = run(row.base(), row.name)
        mine, mine_processor, printed_too = run(row.mine(), row.name)
        if row.same_output and printed != printed_too:
            raise Failed(f"{row.name}: the two sides print different things")
        if i > 0:
            result.base_processor.append(base_processor)
            result.mine_processor.append(mine_processor)
            result.base.append(base_processor if row.processor_time else base)
            result.mine.append(mine_processor if row.processor_time else mine)
    return result


def build_all() -> None:
    for words in ([], ["--native"], ["--fork=never", "dash", "bash", "busybox", "lua", "sqlite3"], ["--fork=always", "lua", "sqlite3"]):
        names = words[1:] or ["dash", "bash", "busybox", "lua", "sqlite3", "git", "coreutils", *(["python"] if not words else [])]
        if subprocess.run([str(TOP / "ports" / "build.sh"), *words[:1], *names], check=False).returncode:
            raise Failed("a port cannot be built; the lines above say why")


def print_table(rows: list[Row], results: dict[str, Measured]) -> None:
    print("| | base, ms | cage, ms | ratio | of processor time | asked | spread |\n|---|---|---|---|---|---|---|")
    for row in rows:
        if row.name not in results:
            continue
        result = results[row.name]
        spread = ", ".join(f"{(max(v) - min(v)) / statistics.median(v):.0%}" for v in (result.base, result.mine))
        ratios = f"{ratio(result.mine, result.base):.2f}x | {ratio(result.mine_processor, result.base_processor):.2f}x"
        print(f"| {row.name} | {statistics.median(result.base):.1f} | {statistics.median(result.mine):.1f} | {ratios} | {row.limit:g}x | {spread} |",
              flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--build", action="store_true")
    options = parser.parse_args()
    failures = []
    try:
        if options.build:
            build_all()
        every = [*shell_rows(), *GitRows().rows(), *python_rows(), *fork_rows(), *strace_rows(), *sqlite_rows()]
        rows = [row for row in every if not options.rows or any(row.name.startswith(p) for p in options.rows)]
        if not rows:
            raise Failed("no such row; there are:\n" + "\n".join(row.name for row in every))
        results: dict[str, Measured] = {}
        for row in rows:
            print(f"Running:  {row.name}", file=sys.stderr, flush=True)
            try:
                results[row.name] = measure(row, options.rounds)
            except Failed as failure:
                failures.append(str(failure))
                print(f"Failed:  {failure}", file=sys.stderr)
        print_table(rows, results)
        if options.out:
            machine = {"system": platform.platform(), "processors": os.cpu_count(), "load": os.getloadavg(), "rounds": options.rounds}
            raw = {"machine": machine, "ms": {name: dataclasses.asdict(result) for name, result in results.items()}}
            options.out.write_text(json.dumps(raw, indent=1) + "\n")
    except Failed as failure:
        failures.append(str(failure))
        print(f"ports.py: {failure}", file=sys.stderr)
    finally:
        shutil.rmtree(ROOT / PLACE, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
