"""Tests without a home directory, or without space in it: files are kept elsewhere or not at all,
and programs run. And where the starter's limits leave no room for a program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from world import BOOT, SECONDS, Failed, World, ends

UNKEPT = "lind-boot: compiled code cannot be kept ("
# The user database of this run: it says where home is.
DATABASE = 'printf "x:x:%s:0::%s:/bin/sh\\n" "$(id -u)" "$LISTED" >"$ROOT/../passwd"; mount --bind "$ROOT/../passwd" /etc/passwd; '


def without_a_home(world: World) -> None:
    listed = world.folder / "listed"
    listed.mkdir()
    ends(world.in_private(DATABASE + 'unset HOME; "$BOOT" --root "$ROOT" seven.wasm', LISTED=str(listed)), 7)
    kept = [path for path in (".local/share/lind/key", ".cache/lind") if not (listed / path).exists()]
    if kept:
        raise Failed(f"not in the home of the database: {kept}")
    nowhere = world.folder / "nowhere"
    for home in ("unset HOME", 'HOME="$LISTED"', "HOME=relative"):
        ends(world.in_private(f'{DATABASE} {home}; "$BOOT" --root "$ROOT" seven', LISTED=str(nowhere)), 7, UNKEPT)
        # With grates before it.
        ends(world.in_private(f'{DATABASE} {home}; "$BOOT" run --image "$ROOT" -- /seven.wasm', LISTED=str(nowhere)), 7, UNKEPT)
    if nowhere.exists():
        raise Failed("a home that is not there was made")
    places = {"XDG_DATA_HOME": str(world.folder / "data"), "XDG_CACHE_HOME": str(world.folder / "cache")}
    done = world.boot("seven", HOME=None, **places)
    ends(done, 7)
    if UNKEPT in done.stderr:
        raise Failed(done.stderr)


RUNS = """#include <unistd.h>
int main(int argc, char **argv)
{
	char byte;
	write(1, "ready\\n", 6);
	read(0, &byte, 1);
	execv(argv[1], argv + 1);
	return argc;
}
"""


def another_key_while_it_runs(world: World) -> None:
    """Code that is compiled from then on is signed by the new key, which the runner learns."""
    (world.folder / "runs.c").write_text(RUNS)
    world.run("scripts/lind_compile", "-o", str(world.root / "runs.cwasm"), str(world.folder / "runs.c"))
    (world.root / "late.wasm").write_bytes((world.root / "seven.wasm").read_bytes() + b"\0\5\4late")
    (world.root / "late.wasm").chmod(0o755)
    key = Path(world.home, ".local/share/lind/key")
    before = key.read_bytes()
    command = [str(BOOT), "--root", str(world.root), "runs", "/late.wasm"]
    with subprocess.Popen(command, env=world.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout
        said = running.stdout.readline()
        replaced(key, os.urandom(32))
        rest, complaints = running.communicate(b".", timeout=SECONDS)
    replaced(key, before)
    for name in ("late.wasm", "runs.wasm", "runs.cwasm"):
        (world.root / name).unlink()
    if (said, rest, complaints, running.returncode) != (b"ready\n", b"", b"", 7):
        raise Failed(f"{said!r} {rest!r} {complaints!r} {running.returncode}")


def replaced(key: Path, contents: bytes) -> None:
    key.unlink()
    key.write_bytes(contents)
    key.chmod(0o600)


def what_needs_a_key(world: World) -> None:
    """Code that is compiled with a key that is not kept would run nowhere."""
    nowhere = str(world.folder / "nowhere")
    compile_it = '"$BOOT" compile "$ROOT/seven.wasm" -o "$ROOT/../out.cwasm"'
    ends(world.in_private(DATABASE + "unset HOME; " + compile_it, LISTED=nowhere), 125, "cannot use the signing key (", "neither XDG_DATA_HOME nor HOME")
    if (world.folder / "out.cwasm").exists():
        raise Failed("it was compiled")
    # A key that others can read is no reason to go on with another one.
    key = Path(world.home, ".local/share/lind/key")
    key.chmod(0o644)
    ends(world.boot("seven"), 125, "readable by nobody else (chmod 600)")
    key.chmod(0o600)
    # Nor is one that may also be where guests are.
    other = world.folder / "key-of-another-name"
    other.hardlink_to(key)
    ends(world.boot("seven"), 125, "has another name")
    other.unlink()
    ends(world.boot("seven"), 7)
    # With another key, code compiled under the old key does not count any more, and all else goes
    # on.
    before = key.read_bytes()
    key.unlink()
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    ends(world.boot("seven.wasm"), 7)
    key.write_bytes(before)
    ends(world.boot("seven"), 7)


def home_that_cannot_be_written(world: World) -> None:
    nowhere = str(world.folder / "nowhere")
    ends(world.in_private(DATABASE + 'HOME=/proc "$BOOT" --root "$ROOT" seven', LISTED=nowhere), 7, UNKEPT, "cannot make /proc/.local/share/lind")
    # With a key made before, nothing has to be written.
    done = world.in_private('mount -t tmpfs none "$ROOT/bin"; mount --bind "$HOME" "$HOME"; mount -o remount,bind,ro "$HOME"; "$BOOT" --root "$ROOT" seven')
    ends(done, 7)
    if UNKEPT in done.stderr:
        raise Failed(done.stderr)


FULL = 'mount -t tmpfs -o size=4k none "$FULL"; cat /dev/zero >"$FULL/rest" 2>/dev/null || true; '


def full_disk(world: World) -> None:
    full = world.folder / "full"
    full.mkdir(exist_ok=True)
    # No room for the key: nothing half-made stays.
    done = world.in_private(DATABASE + FULL + 'HOME="$FULL"; status=0; "$BOOT" --root "$ROOT" seven || status=$?; find "$FULL" -type f >&2; exit $status',
                            FULL=str(full), LISTED=str(full))
    ends(done, 7, "the key of compiled code", "No space left on device")
    if "key." in done.stderr:
        raise Failed(f"it leaves {done.stderr!r}")
    # No room for the cache: it runs without.
    key = 'mkdir -p "$FULL/.local/share/lind"; cp -p "$HOME/.local/share/lind/key" "$FULL/.local/share/lind"; '
    (world.root / "only.wasm").write_bytes((world.root / "seven.wasm").read_bytes())
    room = 'mount -t tmpfs -o size=8k none "$FULL"; ' + key + 'cat /dev/zero >"$FULL/rest" 2>/dev/null || true; '
    ends(world.in_private(room + 'HOME="$FULL"; "$BOOT" --root "$ROOT" only.wasm', FULL=str(full)), 7)


def limits_of_the_starter(world: World) -> None:
    """A program that does not fit says which limit it is, and how much it takes."""
    boot = f'"{BOOT}" --root "{world.root}"'
    ends(world.run("bash", "-c", f"ulimit -v 4000000; {boot} seven"), 125, "a program needs 4", "but the limit is 3906 MiB: run `ulimit -v unlimited` (--memory")
    ends(world.run("bash", "-c", f"ulimit -v 5000000; {boot} seven"), 7)
    ends(world.run("bash", "-c", f"ulimit -n 20; {boot} seven"), 125, "a program needs 26 open files, but the limit is 20: run `ulimit -n 256` or more")
    ends(world.run("bash", "-c", f"ulimit -n 40; {boot} seven"), 7)
    # Each grate needs room as well.
    behind = f'"{BOOT}" run --image "{world.root}" -- /seven.wasm'
    ends(world.run("bash", "-c", f"ulimit -v 10000000; {behind}"), 125, "a program and 2 grates need 12")
    ends(world.run("bash", "-c", f"ulimit -n 30; {behind}"), 125, "a program and 2 grates need 36 open files")
    ends(world.run("bash", "-c", f"ulimit -v 20000000; ulimit -n 50; {behind}"), 7)
    # The soft limits are raised as far as they may be.
    ends(world.run("bash", "-c", f"ulimit -S -n 10; {boot} seven"), 7)


TESTS = [without_a_home, what_needs_a_key, another_key_while_it_runs, home_that_cannot_be_written, full_disk, limits_of_the_starter]
