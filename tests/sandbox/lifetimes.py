"""`session start --die-with-parent`: sessions that end with the process that has started them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from sessions import begin, listed, start, until
from world import BOOT, SECONDS, Failed, World, holds, same

# Starts a session on a thread that ends, and waits.
STARTER = """
import subprocess, sys, threading, time
done = []
start = lambda: done.append(subprocess.run(sys.argv[1:], capture_output=True, text=True))
thread = threading.Thread(target=start)
thread.start()
thread.join()
print(done[0].stdout, end="", flush=True)
print(done[0].stderr, end="", file=sys.stderr, flush=True)
time.sleep(600)
"""


def starter(world: World, *options: str, name: str = "one") -> subprocess.Popen[str]:
    line = [str(BOOT), "session", "start", name, "--json", "-v", ".", "-v", f"{world.folder}/tool:/tool:ro", *options]
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    return subprocess.Popen([python, "-c", STARTER, *line], cwd=world.project, env=world.known, user=world.user, group=world.user,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_running(path: str) -> bool:
    """Whether a session listens on its socket."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True


def left(world: World) -> list[str]:
    return sorted(os.listdir(world.runtime / "lind"))


def a_session_ends_with_its_starter(world: World) -> None:
    """However it ends; not with the thread that has started it, and no other session."""
    start(world, name="other")
    for number in (signal.SIGKILL, signal.SIGTERM):
        with starter(world, "--die-with-parent") as child:
            about = json.loads(child.stdout.readline())
            time.sleep(0.3)
            command = begin(world, "catch")
            same("runs", sorted(session["name"] for session in listed(world)), ["one", "other"])
            child.send_signal(number)
            child.wait(SECONDS)
            until("the session has ended", lambda: not is_running(about["socket"]))
            same("and its command", command.wait(SECONDS) in (125, 128 + 9), True)
    same("the other one goes on", [session["name"] for session in listed(world)], ["other"])
    same("nothing is left", left(world), ["other.log", "other.sock"])


def a_session_ends_with_a_process(world: World) -> None:
    with subprocess.Popen(["sleep", "600"]) as other:
        start(world, f"--die-with-parent={other.pid}")
        path = listed(world)[0]["socket"]
        other.kill()
        other.wait()
        until("the session has ended", lambda: not is_running(path))
    done = world.boot("session", "start", "one", f"--die-with-parent={other.pid}")
    same("ended before", done.returncode, 125)
    holds("ended before", done.stderr, "--die-with-parent: cannot watch process")
    for wrong in ("0", "-1", "x"):
        same(wrong, world.boot("session", "start", "one", f"--die-with-parent={wrong}").returncode, 125)


def where_a_session_is(world: World) -> None:
    done = world.boot("session", "start", "one", "--json", "-v", ".")
    about = json.loads(done.stdout)
    same("keys", sorted(about), ["log", "name", "pid", "socket"])
    found = listed(world)[0]
    same("as ls says", (found["pid"], found["socket"]), (about["pid"], about["socket"]))
    same("the log", about["log"], str(world.runtime / "lind" / "one.log"))
    own = os.geteuid()
    with socket.socket(socket.AF_UNIX) as client:
        if world.user is not None:
            os.seteuid(world.user)
        try:
            client.connect(about["socket"])
        finally:
            os.seteuid(own)
    same("explained", "line" in json.loads(world.boot("session", "start", "two", "--explain", "--json").stdout), True)


def what_ended_sessions_left_goes(world: World) -> None:
    """When the next one starts; a log that says something stays."""
    for name in ("one", "two"):
        start(world, name=name)
    log = world.runtime / "lind" / "two.log"
    with log.open("a") as file:
        file.write("a line\n")
    sessions = listed(world)
    for session in sessions:
        os.kill(session["pid"], signal.SIGKILL)
    until("they have ended", lambda: not any(is_running(session["socket"]) for session in sessions))
    start(world, name="three")
    same("left", left(world), ["three.log", "three.sock", "two.log"])
    same("logs", world.boot("session", "logs", "two").stdout, "a line\n")
    done = world.boot("session", "logs", "one")
    same("no log", done.returncode, 125)
    holds("no log", done.stderr, "no log of session one")
    same("stop", world.boot("session", "stop", "three").returncode, 0)
    if "three.sock" in left(world) or "three.log" in left(world):
        raise Failed(f"left: {left(world)}")


def processes_of(name: str) -> list[str]:
    """The processes with this word on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if name.encode() in words and b"session" in words:
            found.append(path.parent.name)
    return found


def a_start_that_is_interrupted_leaves_nothing(world: World) -> None:
    """Whenever the signal comes: before the session is there, while it starts, or just when it is ready."""
    name = f"interrupted-{os.getpid()}"
    for step in range(16):
        child = world.begin("session", "start", name, "-v", ".", *(("--mounts=kernel",) if step % 4 == 3 else ()))
        time.sleep(step * 0.006)
        child.send_signal((signal.SIGTERM, signal.SIGINT)[step % 2])
        _, said = child.communicate(timeout=SECONDS)
        if child.returncode == 0:
            same("stop", world.boot("session", "stop", name).returncode, 0)
        else:
            same(f"{step}: {said}", child.returncode in (-signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGINT), True)
        until(f"{step}: processes end", lambda: processes_of(name) == [])
        folder = world.runtime / "lind"
        until(f"{step}: files go", lambda: not folder.exists() or os.listdir(folder) == [])


TESTS = [a_start_that_is_interrupted_leaves_nothing, a_session_ends_with_its_starter, a_session_ends_with_a_process, where_a_session_is, what_ended_sessions_left_goes]
