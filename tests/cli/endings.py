"""Tests how the work of lind-boot ends: at a signal while it compiles, and by --timeout, which does not count the time for compiling."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from caches import code, home, many_functions
from processes import family
from world import BOOT, Failed, World, ends

PATIENCE = 10


def compiles(pid: int) -> bool:
    """Whether it has threads that compile: those of a process of its own have that one's name."""
    try:
        threads = [path.read_text() for path in Path("/proc", str(pid), "task").glob("*/comm")]
    except OSError:
        return False
    return "compile\n" in threads or threads.count("lind-compile\n") > 1


def is_ended_by(runner: subprocess.Popen[bytes], number: signal.Signals, way: list[str]) -> None:
    """As soon as it compiles."""
    end = time.monotonic() + 6 * PATIENCE
    while not any(map(compiles, family(runner.pid))):
        if time.monotonic() > end or runner.poll() is not None:
            raise Failed(f"{way} does not compile")
        time.sleep(0.02)
    all_of_it = family(runner.pid)
    runner.send_signal(number)
    try:
        status = runner.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        raise Failed(f"{number.name} does not end {way}") from None
    if status not in (-number, 128 + number):
        raise Failed(f"{number.name}: {way} ended with status {status}")
    end = time.monotonic() + PATIENCE
    while left := [pid for pid in all_of_it if compiles(pid)]:
        if time.monotonic() > end:
            raise Failed(f"{number.name}: of {way} {left} go on")
        time.sleep(0.02)


def ends_while_it_compiles(world: World) -> None:
    """A run ends at once, whichever process compiles and whichever grates it has; all processes end with it, and no file is left half-written."""
    slow = world.folder / "slow" / "bin"
    slow.mkdir(parents=True)
    (slow / "slow.wasm").write_bytes(many_functions(15000))
    (slow / "seven.wasm").write_bytes((world.root / "seven.wasm").read_bytes())
    root, out = str(slow.parent), world.folder / "slow.cwasm"
    ways = [["--root", root, "slow"], ["--root", root, "forward_grate", "forward_grate", "slow"], ["run", "--image", root, "--", "slow"],
            ["run", "--image", root, "--timeout", "1s", "--", "slow"], ["warm", str(slow)], ["compile", "-o", str(out), str(slow / "slow.wasm")]]
    where = home(world, "slow-home")
    # So that all of it is about the program, and not about grates.
    ends(world.boot("forward_grate", "seven.wasm", HOME=where), 7)
    ends(world.run(str(BOOT), "run", "--image", root, "--", "seven.wasm", HOME=where), 7)
    for number, way in [(signal.SIGTERM, way) for way in ways] + [(signal.SIGINT, ways[0]), (signal.SIGINT, ways[2])]:
        with subprocess.Popen([BOOT, *way], env=world.environment | {"HOME": where}, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as runner:
            try:
                is_ended_by(runner, number, way)
            finally:
                runner.kill()
    left = [path.name for path in Path(where, ".cache", "lind").iterdir() if path.name.startswith(".")]
    if left or out.exists():
        raise Failed(f"left: {left}")


def a_session_that_is_being_started_ends(world: World) -> None:
    """Grates are compiled by the process that starts the session, here for a new user."""
    where, runtime = home(world, "session-home"), world.folder / "runtime"
    runtime.mkdir(mode=0o700)
    environment = world.environment | {"HOME": where, "XDG_RUNTIME_DIR": str(runtime)}
    starting = subprocess.Popen([BOOT, "session", "start", "s", "--image", world.root], env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True)
    # The place of the session is there as soon as it has been begun.
    while not list(runtime.glob("**/*.log")) and starting.poll() is None:
        time.sleep(0.01)
    starting.send_signal(signal.SIGINT)
    said = starting.communicate(timeout=PATIENCE)[1]
    if starting.returncode == 128 + signal.SIGINT and "signal 2" not in said:
        raise Failed(said)
    if starting.returncode == 0:
        # It was faster.
        ends(world.run(str(BOOT), "session", "stop", "s", HOME=where, XDG_RUNTIME_DIR=str(runtime)), 0)
    end = time.monotonic() + PATIENCE
    while world.run("pgrep", "-f", f"session serve s --image {world.root}").stdout:
        if time.monotonic() > end:
            raise Failed("the session goes on")
        time.sleep(0.1)


def compiling_is_not_the_commands_time(world: World) -> None:
    """A program that takes longer to compile than --timeout still has all of that time in the first run; and without a terminal a line reports it."""
    where, folder = home(world, "timeout-home"), world.folder / "timeout"
    (folder / "bin").mkdir(parents=True)
    # On one processor it takes seconds.
    (folder / "bin" / "many.wasm").write_bytes(many_functions(12000))
    one = ["taskset", "-c", "0", str(BOOT), "run", "--image", str(folder), "--timeout", "0.3s", "--"]
    began = time.monotonic()
    done = world.run(*one, "many.wasm", HOME=where)
    took = time.monotonic() - began
    ends(done, 0)
    if took > 3 and done.stderr != "lind-boot: compiling /bin/many.wasm, once\n":
        raise Failed(f"{done.stderr!r} after {took} s")
    if done.stderr and "compiling /bin/many.wasm, once" not in done.stderr:
        raise Failed(done.stderr)
    done = world.run(*one, "many.wasm", HOME=where)
    ends(done, 0)
    if done.stderr:
        raise Failed(f"again: {done.stderr}")


def a_session_says_what_it_waits_for(world: World) -> None:
    """A message names what a session waits for: when it is started, and when a program in it has to be compiled."""
    folder, runtime, where = world.folder / "timeout", world.folder / "runtime-2", home(world, "session-home-2")
    runtime.mkdir(mode=0o700)
    known = {"HOME": where, "XDG_RUNTIME_DIR": str(runtime)}
    one = ["taskset", "-c", "0", str(BOOT), "session"]
    done = world.run(*one, "start", "s", "--image", str(folder), **known)
    ends(done, 0)
    wrong = [line for line in done.stderr.splitlines() if not line.startswith("lind-boot: compiling ")]
    try:
        began = time.monotonic()
        first = world.run(*one, "exec", "s", "many.wasm", **known)
        took = time.monotonic() - began
        again = world.run(*one, "exec", "s", "many.wasm", **known)
    finally:
        ends(world.run(*one, "stop", "s", **known), 0)
    ends(first, 0)
    line = "lind-boot: compiling /bin/many.wasm, once\n"
    wrong += [f"{first.stderr!r} after {took} s"] if first.stderr != line and (took > 3 or first.stderr) else []
    ends(again, 0)
    wrong += [again.stderr] if again.stderr else []
    if wrong:
        raise Failed(str(wrong))


def a_session_compiles_what_its_image_has(world: World) -> None:
    """Beside the commands that run, so that one which calls a program later need not wait for it."""
    folder, runtime, where = world.folder / "ahead", world.folder / "runtime-3", world.folder / "session-home-2"
    (folder / "bin").mkdir(parents=True)
    runtime.mkdir(mode=0o700)
    where.mkdir(exist_ok=True)
    for functions in (2, 3):
        (folder / "bin" / f"of-{functions}.wasm").write_bytes(many_functions(functions))
    # Their code has the same names in any cache.
    other = home(world, "ahead-home")
    ends(world.run(str(BOOT), "warm", str(folder), HOME=other), 0)
    names, known = set(code(world, other)), {"HOME": str(where), "XDG_RUNTIME_DIR": str(runtime)}
    ends(world.run(str(BOOT), "session", "start", "s", "--image", str(folder), **known), 0)
    try:
        end = time.monotonic() + 6 * PATIENCE
        while left := names.difference(code(world, str(where))):
            if time.monotonic() > end:
                raise Failed(f"not compiled: {left}")
            time.sleep(0.05)
    finally:
        ends(world.run(str(BOOT), "session", "stop", "s", **known), 0)


TESTS = [ends_while_it_compiles, a_session_that_is_being_started_ends, compiling_is_not_the_commands_time,
         a_session_says_what_it_waits_for, a_session_compiles_what_its_image_has]
