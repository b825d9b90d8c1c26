"""Shared parts of the tests of sandboxes: a project with files beside it that must not be reached, programs to run, and the run of the tests."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

TOP = Path(__file__).resolve().parents[2]
BOOT = TOP / "target" / "release" / "lind-boot"
SECONDS = 180
# The longest test takes a tenth of this on two idle processors.
TEST_SECONDS = 400
NOBODY = 65534


class Failed(Exception):
    """The reason of a failure."""


class Skipped(Exception):
    """Cannot be tested here."""


@functools.cache
def compiled(program: str) -> Path:
    """A program of this folder, compiled once."""
    source = Path(__file__).with_name(f"{program}.c")
    out = Path(tempfile.mkdtemp(prefix="lind-sandbox-programs-")) / f"{program}.wasm"
    atexit.register(shutil.rmtree, out.parent, ignore_errors=True)
    subprocess.run([TOP / "scripts" / "lind_compile", "-O1", "-o", out, source], check=True, capture_output=True)
    return out


@functools.cache
def compiled_code(user: int | None) -> Path:
    """Where this user's key and compiled code are, in all worlds: what is compiled once need not be again."""
    folder = Path(tempfile.mkdtemp(prefix="lind-sandbox-code-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if user is not None:
        os.chown(folder, user, user)
    return folder


class World:
    """A project, with files beside it that must not be reached."""

    def __init__(self, folder: Path, user: int | None) -> None:
        self.folder, self.project, self.home, self.user = folder, folder / "project", folder / "home", user
        (self.project / ".git" / "hooks").mkdir(parents=True)
        self.home.mkdir()
        self.runtime = folder / "runtime"
        self.runtime.mkdir()
        (folder / "secret").write_text("secret")
        (self.project / "kept").write_text("kept")
        for program in ["probe", "command", "edit"]:
            shutil.copy(compiled(program), folder / "tool" / f"{program}.wasm")
        if user is not None:
            for path in [folder, *folder.rglob("*")]:
                os.chown(path, user, user)

    @property
    def known(self) -> dict[str, str]:
        """The environment that lind-boot is run in."""
        code = compiled_code(self.user)
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.runtime),
                "XDG_DATA_HOME": str(code / "data"), "XDG_CACHE_HOME": str(code / "cache")}

    def boot(self, *words: str, cwd: Path | None = None, stdin: object = subprocess.DEVNULL,
             **environment: str) -> subprocess.CompletedProcess[str]:
        """`lind-boot` with these words, from the project."""
        return subprocess.run([BOOT, *words], cwd=cwd or self.project, env=self.known | environment, user=self.user, group=self.user,
                              stdin=stdin, capture_output=True, text=True, errors="surrogateescape", timeout=SECONDS, check=False)

    def begin(self, *words: str, **more: object) -> subprocess.Popen[str]:
        """`lind-boot` with these words, which goes on."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
        return subprocess.Popen([BOOT, *words], cwd=self.project, env=self.known, user=self.user, group=self.user, text=True, **pipes)

    def end(self) -> None:
        """Ends what sessions are left."""
        for session in json.loads(self.boot("session", "ls", "--json").stdout or "[]"):
            self.boot("session", "stop", session["name"])

    def run(self, *words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """`lind-boot run` with these words, from the project."""
        return self.boot("run", *words, cwd=cwd, **environment)

    def reaches_the_checkout(self) -> bool:
        """Whether the user may run what is in it."""
        command = ["test", "-x", str(BOOT), "-a", "-r", str(TOP / "build" / "grates" / "net_grate.cwasm")]
        return subprocess.run(command, user=self.user, group=self.user, check=False).returncode == 0

    def probe(self, *words: str, options: tuple[str, ...] = ("-v", ".")) -> list[str]:
        """The lines that the probe prints."""
        done = self.run(*options, str(self.folder / "tool" / "probe"), *words)
        if done.returncode != 7:
            raise Failed(f"status {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.splitlines()


def needs_tools() -> None:
    """Skips what a shell and its tools take part in, where the image has none."""
    for name in ("bash", "busybox"):
        if not any((TOP / "lindfs" / "bin" / f"{name}{suffix}").exists() for suffix in ("", ".cwasm", ".wasm")):
            raise Skipped(f"the port of {name} is not built: make ports PORT={name}")


def same(what: str, got: object, expected: object) -> None:
    if got != expected:
        raise Failed(f"{what}: {got!r}, expected {expected!r}")


def holds(what: str, text: str, part: str) -> None:
    if part not in text:
        raise Failed(f"{what}: {part!r} is not in {text!r}")


def users() -> list[tuple[str, int | None]]:
    return [("root", None), ("user", NOBODY)] if os.geteuid() == 0 else [("user", None)]


def hangs(_signal: int, frame: FrameType | None) -> None:
    """Ends a test that has not ended in time, and says where it was."""
    where = [f"{Path(call.filename).name}:{call.lineno} {call.name}" for call in traceback.extract_stack(frame)[-4:]]
    raise Failed(f"still running after {TEST_SECONDS} s, at {', '.join(where)}")


def one(name: str, user: int | None, test: Callable[[World], None]) -> str:
    """Runs a test in a world of its own; whether it passed, failed or was skipped."""
    folder = Path(tempfile.mkdtemp(prefix="lind-sandbox-"))
    folder.chmod(0o755)
    (folder / "tool").mkdir()
    try:
        world = World(folder, user)
        if not world.reaches_the_checkout():
            raise Skipped("the checkout cannot be read by others")
        signal.alarm(TEST_SECONDS)
        try:
            test(world)
        finally:
            signal.alarm(0)
            world.end()
        return "passed"
    except Skipped as why:
        print(f"SKIP {name}: {test.__name__}: {why}")
        return "skipped"
    except (Failed, OSError, ValueError, KeyError, IndexError, subprocess.SubprocessError) as why:
        print(f"FAIL {name}: {test.__name__}: {why}")
        return "failed"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_all(tests: list[Callable[[World], None]]) -> int:
    """Runs all, or those whose names are on the command line."""
    signal.signal(signal.SIGALRM, hangs)
    # A shell that starts the tests in its background makes them ignore these.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    tests = [test for test in tests if test.__name__ in sys.argv[1:] or not sys.argv[1:]]
    ends = [one(name, user, test) for name, user in users() for test in tests]
    print(", ".join(f"{ends.count(end)} {end}" for end in ["passed", "failed", "skipped"]))
    return "failed" in ends
