"""The cache of compiled code: listing, removing, a limit, compiling ahead, and the progress on a terminal meanwhile."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

from world import BOOT, SECONDS, Failed, Skipped, World, ends

DAYS = 24 * 60 * 60


def home(world: World, name: str) -> str:
    folder = world.folder / name
    folder.mkdir()
    return str(folder)


def listed(world: World, home: str) -> dict:
    return json.loads(world.run(str(BOOT), "cache", "ls", "--json", HOME=home).stdout)


def code(world: World, home: str) -> list[str]:
    return [file["name"] for file in listed(world, home)["files"] if file["what"] == "code"]


def small_modules(world: World, count: int) -> list[Path]:
    """Modules that differ."""
    folder = world.folder / "modules"
    folder.mkdir(exist_ok=True)
    whole = (world.root / "seven.wasm").read_bytes()
    made = []
    for number in range(count):
        name = b"n%03d" % number
        path = folder / f"{number}.wasm"
        # A custom section of that name, with nothing in it.
        path.write_bytes(whole + bytes([0, len(name) + 1, len(name)]) + name)
        made.append(path)
    return made


def warms_and_lists(world: World) -> None:
    where = home(world, "warm")
    modules = small_modules(world, 5)
    (modules[0].parent / "notes.txt").write_text("no program")
    done = world.run(str(BOOT), "warm", str(modules[0].parent), str(modules[0]), HOME=where)
    ends(done, 0)
    if "5 compiled" not in done.stdout or len(code(world, where)) != 5 or done.stderr:
        raise Failed(f"{done.stdout} {done.stderr} {code(world, where)}")
    done = world.run(str(BOOT), "warm", str(modules[0].parent), HOME=where)
    if "0 compiled" not in done.stdout or "5 were ready" not in done.stdout:
        raise Failed(done.stdout)
    # A name of the root; and what is wrong is said for each, and the rest is compiled.
    done = world.run(str(BOOT), "warm", "--root", str(world.root), "seven", HOME=where)
    ends(done, 0)
    bad = world.folder / "bad.wasm"
    bad.write_bytes(b"\0asm\1\0\0\0broken")
    done = world.run(str(BOOT), "warm", str(bad), str(world.root / "seven.wasm"), HOME=where)
    ends(done, 125, "bad.wasm", "programs could not be compiled")
    ends(world.run(str(BOOT), "warm", "no-such-program", HOME=where), 125, "no-such-program: neither a file nor a grate nor a program of")
    said = world.run(str(BOOT), "cache", "ls", HOME=where).stdout
    if not re.search(r"KiB  used +just now  code +[0-9a-f]{64}-[0-9a-f]{16}\.cwasm\n", said) or " of 2.0 GiB in " not in said:
        raise Failed(said)


def cleans(world: World) -> None:
    where = home(world, "clean")
    modules = small_modules(world, 3)
    world.run(str(BOOT), "warm", *map(str, modules), HOME=where)
    cache = Path(where, ".cache", "lind")
    other = cache / f"{'0' * 64}-{'1' * 16}.cwasm"
    other.write_bytes(b"of another version")
    unfinished = [cache / f".x.cwasm.{number}.ThreadId(1)" for number in (1, 2)]
    for path in unfinished:
        path.write_bytes(b"half")
    os.utime(unfinished[0], (0, 0))
    done = world.run(str(BOOT), "cache", "clean", HOME=where)
    if "removed 2 of " not in done.stdout or other.exists() or unfinished[0].exists() or not unfinished[1].exists() or len(code(world, where)) != 3:
        raise Failed(f"{done.stdout} {sorted(cache.iterdir())}")
    oldest = cache / code(world, where)[0]
    os.utime(oldest, (time.time() - 10 * DAYS,) * 2)
    world.run(str(BOOT), "cache", "clean", "--older", "30", HOME=where)
    if not oldest.exists():
        raise Failed("it was younger")
    world.run(str(BOOT), "cache", "clean", "--older", "9", HOME=where)
    if oldest.exists() or len(code(world, where)) != 2:
        raise Failed(f"{sorted(cache.iterdir())}")
    ends(world.run(str(BOOT), "cache", "clean", "--all", HOME=where), 0)
    if any(cache.iterdir()):
        raise Failed(f"{sorted(cache.iterdir())}")
    ends(world.run(str(BOOT), "cache", "clean", "--all", "--older", "3", HOME=where), 125, "cannot be used with")
    # A file that was removed is made again.
    ends(world.boot("seven.wasm", HOME=where), 7)


def stays_within_its_limit(world: World) -> None:
    where = home(world, "limit")
    modules = small_modules(world, 6)
    world.run(str(BOOT), "warm", str(modules[0]), HOME=where)
    size = listed(world, where)["size"]
    limit = str(3 * size + size // 2)
    for module in modules:
        world.run(str(BOOT), "warm", str(module), HOME=where, LIND_CACHE_SIZE=limit)
        time.sleep(0.02)
    found = listed(world, where)
    if found["size"] > int(limit) or len(code(world, where)) != 3:
        raise Failed(f"{found}")
    # Nothing is kept, and everything runs.
    empty = home(world, "empty")
    ends(world.boot("seven.wasm", HOME=empty, LIND_CACHE_SIZE="0"), 7)
    if code(world, empty):
        raise Failed("something was kept")
    ends(world.boot("seven.wasm", HOME=empty, LIND_CACHE_SIZE="lots"), 125, "LIND_CACHE_SIZE=lots: must be a size")


def one_processor() -> None:
    """Runs on one processor, so that the time to compile does not depend on how many there are."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def at_a_terminal(world: World, where: str, *words: str) -> str:
    """The output of a run on a terminal that is its standard error."""
    ours, theirs = pty.openpty()
    command = [str(BOOT), *words]
    with subprocess.Popen(command, env={**world.environment, "HOME": where}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
                          preexec_fn=one_processor) as running:
        os.close(theirs)
        said, end = b"", time.monotonic() + SECONDS
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    said += os.read(ours, 4096)
                except OSError:
                    break
        if running.poll() is None and time.monotonic() >= end:
            running.kill()
        running.wait(SECONDS)
    os.close(ours)
    return said.decode()


def a_terminal_is_told(world: World) -> None:
    """Of what takes longer than a second, and the line is gone at the end."""
    where = home(world, "terminal")
    folder = world.folder / "big"
    folder.mkdir()
    many = folder / "many.wasm"
    many.write_bytes(many_functions(6000))
    said = at_a_terminal(world, where, "--root", str(folder), "many.wasm")
    lines = re.findall(r"\r\x1b\[Kcompiling many\.wasm: (\d+) %", said)
    if not lines or not said.endswith("\r\x1b[K") or [int(line) for line in lines] != sorted(map(int, lines)):
        raise Failed(f"{said!r}")
    if at_a_terminal(world, where, "--root", str(folder), "many.wasm"):
        raise Failed("it says something when nothing is compiled")
    (folder / "again.wasm").write_bytes(many.read_bytes() + b"\0\2\1x")
    done = world.run(str(BOOT), "--root", str(folder), "again.wasm", HOME=where)
    if done.stderr not in ("", "lind-boot: compiling again.wasm, once\n"):
        raise Failed(f"without a terminal: {done.stderr!r}")


def notes_of_what_others_own(world: World) -> None:
    """A program that is root's is not read from end to end at each start of another user either."""
    if os.geteuid() != 0:
        raise Skipped("not root")
    found = {}
    (world.root / "owned.wasm").write_bytes((world.root / "seven.wasm").read_bytes() + b"\0\2\1o")
    for user, mode in ((None, 0o644), (12345, 0o644), (12345, 0o666)):
        (world.root / "owned.wasm").chmod(mode)
        folder = Path(home(world, f"notes-{user}-{mode:o}"))
        if user is not None:
            os.chown(folder, user, user)
        for _ in range(3):
            time.sleep(0.05)
            done = subprocess.run([BOOT, "--root", world.root, "owned.wasm"], env={**world.environment, "HOME": str(folder)}, user=user, group=user,
                                  extra_groups=[] if user else None, capture_output=True, text=True, timeout=SECONDS, check=False)
            ends(done, 7)
        found[user, mode] = len(list((folder / ".cache" / "lind").glob("**/*.note")))
    # On a filesystem where nothing is noted, root's module is not noted either.
    if found[12345, 0o644] != found[None, 0o644]:
        raise Failed(f"{found}")
    # A file that the user's guests might write is noted only with a lease, and no lease can be had
    # here.
    if found[12345, 0o666]:
        raise Failed(f"{found}")


TWICE = """#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	char *argv[] = { "many", 0 };
	for (int i = 0; i < 2; i++)
		if (!fork())
			_exit(execv("/many.wasm", argv) ? 3 : 4);
	for (int status; wait(&status) > 0;)
		if (status)
			return 1;
	return 0;
}
"""


def one_module_is_compiled_once(world: World) -> None:
    """Also for two programs that begin with it at the same time."""
    where, folder = home(world, "once"), world.folder / "once-root"
    folder.mkdir()
    (world.folder / "twice.c").write_text(TWICE)
    world.run("scripts/lind_compile", "-o", str(folder / "twice.cwasm"), str(world.folder / "twice.c"))
    world.run(str(BOOT), "warm", str(folder / "twice.wasm"), HOME=where)
    (folder / "many.wasm").write_bytes(many_functions(6000))
    (folder / "many.wasm").chmod(0o755)
    began = time.monotonic()
    said = at_a_terminal(world, where, "--root", str(folder), "twice.wasm")
    if time.monotonic() - began > SECONDS / 2:
        raise Failed("it hangs")
    if "compiling /many.wasm: " not in said or " more: " in said:
        raise Failed(f"{said!r}")


def many_functions(count: int) -> bytes:
    """A module with so many functions that take the compiler a while."""
    def number(n: int) -> bytes:
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + number(n >> 7)

    def section(kind: int, *parts: bytes) -> bytes:
        return bytes([kind]) + number(len(b"".join(parts))) + b"".join(parts)

    step = b"\x20\x00\x41\x07\x6c\x41\x03\x6a\x21\x00\x20\x00\x41\x05\x73\x24\x00" * 60
    body = b"\x01\x01\x7f" + step + b"\x0b"
    bodies = number(len(body)) + body
    start = b"\x02\x00\x0b"
    return b"".join([
        b"\0asm\1\0\0\0", section(1, b"\x02\x60\0\0\x60\x01\x7f\0"), section(3, number(count + 1), b"\1" + b"\0" * count),
        section(5, b"\x01\x01", number(65536), number(65536)), section(6, b"\x01\x7f\x01\x41\0\x0b"),
        section(7, b"\x02\x06memory\x02\0\x06_start\0\0"), section(10, number(count + 1), start, bodies * count),
    ])


TESTS = [warms_and_lists, cleans, stays_within_its_limit, a_terminal_is_told, one_module_is_compiled_once, notes_of_what_others_own]
