"""`make install` into a place of its own: everything is found from there, by root and by others, with the checkout out of reach."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from world import TOP, Failed, Skipped, World, ends

HELLO = '#include <stdio.h>\nint main(void) { puts("hello from a cage"); return 7; }\n'
NOBODY = 65534
# The bytes behind compiled code in the cache.
SIGNATURE = 64
# The checkout is empty for what follows, as if it had never been there.
HIDDEN = f'mount -t tmpfs -o mode=0700 none "{TOP}"; '
USE = """cd "$WORK"
for command in lind-boot lind-sh lind_compile lind-cc lind-link lind-ldd; do [ "$(command -v $command)" = "$PREFIX/bin/$command" ] || exit 90; done
lind_compile hello.c >/dev/null || exit 91
[ -f hello.wasm ] && [ -f hello.cwasm ] || exit 92
lind-cc -o other.wasm hello.c || exit 93
lind-cc -shared -o libhello.so hello.c && lind-ldd libhello.so >needs || exit 98
[ "$(lind-boot run ./hello)" = "hello from a cage" ] || exit 94
[ "$(lind-boot run --policy untrusted --allow 127.0.0.1:1 ./other.wasm)" = "hello from a cage" ] || exit 95
lind-boot warm "$PREFIX/lib/lind/grates" || exit 96
lind-boot doctor --json >doctor.json || exit 97
"""


def installed(world: World, script: str, user: int | None, prefix: Path) -> subprocess.CompletedProcess[str]:
    """A script with what was installed in front of PATH, and without a checkout."""
    work, home = (world.folder / f"{name}-{user}" for name in ("work", "home"))
    work.mkdir()
    home.mkdir()
    (work / "hello.c").write_text(HELLO)
    if user is not None:
        for path in (work, home, work / "hello.c"):
            os.chown(path, user, user)
    as_user = f"setpriv --reuid {user} --regid {user} --clear-groups " if user is not None else ""
    more = {"WORK": str(work), "HOME": str(home), "PREFIX": str(prefix), "PATH": f"{prefix}/bin:{os.environ['PATH']}", "SCRIPT": script}
    # Not from the checkout, which is away.
    return world.in_private(f'{HIDDEN}cd /; {as_user}sh -uc "$SCRIPT"', **more)


def installs_and_uninstalls(world: World) -> None:
    if os.geteuid() != 0:
        raise Skipped("the checkout cannot be hidden")
    stage = world.folder / "stage"
    prefix = stage / "opt" / "lind"
    (prefix / "bin").mkdir(parents=True)
    other = prefix / "bin" / "other"
    other.write_text("somebody else's")
    make = ["make", "-s", f"DESTDIR={stage}", "PREFIX=/opt/lind"]
    # The first time it compiles what it installs.
    subprocess.run([*make, "install"], cwd=TOP, check=True, capture_output=True)
    # A second time takes the place of the first, and compiles nothing.
    again = world.run(*make, "install")
    ends(again, 0)
    if "\n0 compiled in " not in f"\n{again.stdout}":
        raise Failed(f"compiled again: {again.stdout}")
    brought = {path.read_bytes() for path in (prefix / "lib" / "lind" / "code").glob("*.code")}
    for path in prefix.rglob("*"):
        mode = path.lstat().st_mode
        if not path.is_symlink() and mode & 0o022 and path.name != "tmp":
            raise Failed(f"{path} may be changed by others: {mode:o}")
        if path.is_symlink() and str(TOP) in os.readlink(path):
            raise Failed(f"{path} leads into the checkout")
    for source in prefix.rglob("scripts/driver/**/*.py"):
        compiled = list(source.parent.glob(f"__pycache__/{source.stem}.*.pyc"))
        if len(compiled) != 1 or str(stage).encode() in compiled[0].read_bytes():
            raise Failed(f"{source}: each start of the driver compiles it, or its bytecode names where it was staged: {compiled}")
    for user in (None, NOBODY):
        done = installed(world, USE, user, prefix)
        ends(done, 0)
        cache = (world.folder / f"home-{user}" / ".cache" / "lind").rglob("*")
        if not any(path.is_file() and path.read_bytes()[:-SIGNATURE] in brought for path in cache):
            raise Failed("the code that was installed is not used")
        if str(TOP) in (world.folder / f"work-{user}" / "doctor.json").read_text():
            raise Failed("the doctor found the checkout")
    ends(world.run(*make, "uninstall"), 0)
    left = [path for path in prefix.rglob("*") if not path.is_dir()]
    if left != [other]:
        raise Failed(f"left: {left[:9]}")
    ends(world.run("make", "-s", "PREFIX=relative", "install"), 2, "PREFIX is an absolute path")


TESTS = [installs_and_uninstalls]
