"""The overlays of a session: `session diff`, `apply`, `discard`, `snapshot` and `rollback`, and the messages `hold` and `release`."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

from second import connect, refused, until_ready
from session_client import Session
from sessions import listed, until
from world import SECONDS, Failed, World, holds, same

TOOL = "/tool/command"


def start(world: World, *options: str) -> Session:
    done = world.boot("session", "start", "one", "-v", f"{world.project}:overlay=one", "-v", f"{world.folder}/tool:/tool:ro", "-w", str(world.project),
                      *options)
    if done.returncode:
        raise Failed(f"start: {done.returncode} {done.stderr}")
    return connect(world)


def verb(world: World, *words: str, status: int = 0) -> str:
    """The output of a command on the state."""
    done = world.boot("session", words[0], "one", *words[1:])
    same(f"{words}: status, {done.stderr!r}", done.returncode, status)
    return done.stdout + done.stderr


def seen(session: Session, path: str) -> bytes | None:
    """The start of a file, as a command reads it."""
    ended, out, _ = session.run(TOOL, "text", path)
    return out if ended["status"] == 0 else None


def whole(session: Session, path: str) -> bytes:
    session.send(do="read", path=path, count=1 << 30)
    return b"".join(body for _, body in session.events("done"))


def write(session: Session, path: str, text: bytes) -> None:
    session.ask("write", text, path=path, parents=True)


def changes_are_shown(world: World) -> None:
    session = start(world)
    same("none", verb(world, "diff"), "")
    write(session, "kept", b"other\n")
    write(session, "new/file", b"text\n")
    same("names", verb(world, "diff").splitlines(), ["M kept", "A new/", "A new/file"])
    same("one path", verb(world, "diff", "new").splitlines(), ["A new/", "A new/file"])
    same("a path of the host", verb(world, "diff", str(world.project / "kept")).splitlines(), ["M kept"])
    same("left out", verb(world, "diff", "--exclude", "new").splitlines(), ["M kept"])
    holds("patch", verb(world, "diff", "--patch", "kept"), "+other")
    found = json.loads(verb(world, "diff", "--json"))
    same("objects", [(change["kind"], change["path"], change["type"]) for change in found],
         [("M", "kept", "file"), ("A", "new", "directory"), ("A", "new/file", "file")])
    holds("no such change", verb(world, "diff", "nothing", status=1), "no such change")
    same("the directory is as it was", ((world.project / "kept").read_text(), (world.project / "new").exists()), ("kept", False))
    same("and commands go on", (seen(session, "kept"), seen(session, "new/file")), (b"other\n", b"text\n"))
    write(session, "later", b"x")
    same("later changes", verb(world, "diff", "later").splitlines(), ["A later"])
    same("no session", world.boot("session", "diff", "two").returncode, 125)


def changes_are_applied(world: World) -> None:
    session = start(world)
    write(session, "kept", b"other\n")
    write(session, "new/file", b"text\n")
    write(session, "stays", b"here\n")
    holds("only said", verb(world, "apply", "--dry-run"), "new/file")
    same("nothing done", (world.project / "new").exists(), False)
    verb(world, "apply", "kept", "new")
    same("in the directory", ((world.project / "kept").read_text(), (world.project / "new" / "file").read_text()), ("other\n", "text\n"))
    same("the rest is a change", verb(world, "diff").splitlines(), ["A stays"])
    same("commands see the same", [seen(session, path) for path in ("kept", "new/file", "stays")], [b"other\n", b"text\n", b"here\n"])
    write(session, "new/file", b"again\n")
    write(session, "new/second", b"2\n")
    same("changed again", verb(world, "diff").splitlines(), ["M new/file", "A new/second", "A stays"])
    (world.project / "new" / "file").write_text("of the host\n")
    holds("a conflict", verb(world, "apply", status=1), "new/file")
    same("nothing of it", ((world.project / "new" / "file").read_text(), (world.project / "stays").exists()), ("of the host\n", False))
    verb(world, "apply", "--force")
    same("by force", ((world.project / "new" / "file").read_text(), verb(world, "diff")), ("again\n", ""))
    session.ask("remove", path="kept")
    verb(world, "apply")
    same("removed", ((world.project / "kept").exists(), seen(session, "kept")), (False, None))
    same("stop", world.boot("session", "stop", "one").returncode, 0)
    same("the state is whole", world.boot("diff", "one").stdout, "")


def changes_are_discarded(world: World) -> None:
    session = start(world)
    write(session, "kept", b"other\n")
    write(session, "new/file", b"text\n")
    verb(world, "discard", "new")
    same("the others stay", (seen(session, "kept"), seen(session, "new/file")), (b"other\n", None))
    verb(world, "discard")
    same("all", (seen(session, "kept"), verb(world, "diff")), (b"kept", ""))
    write(session, "new/file", b"once more\n")
    same("made again", (seen(session, "new/file"), verb(world, "diff").splitlines()), (b"once more\n", ["A new/", "A new/file"]))


def snapshots_come_back(world: World) -> None:
    session = start(world)
    write(session, "kept", b"first\n")
    write(session, "deep/er/file", b"one\n")
    verb(world, "snapshot", "a")
    holds("twice", verb(world, "snapshot", "a", status=1), "already")
    write(session, "kept", b"second\n")
    session.ask("remove", path="deep", recursive=True)
    write(session, "deep", b"a file now\n")
    session.ask("rename", path="kept", to="moved")
    verb(world, "snapshot", "b")
    write(session, "more", b"3\n")
    same("now", [seen(session, path) for path in ("kept", "moved", "deep", "more")], [None, b"second\n", b"a file now\n", b"3\n"])
    verb(world, "rollback", "a")
    same("the first", [seen(session, path) for path in ("kept", "moved", "deep/er/file", "more")], [b"first\n", None, b"one\n", None])
    verb(world, "rollback", "b")
    same("the second", [seen(session, path) for path in ("kept", "moved", "deep", "more")], [None, b"second\n", b"a file now\n", None])
    holds("unknown", verb(world, "rollback", "c", status=1), "no snapshot")
    write(session, "moved", b"fourth\n")
    same("goes on", (seen(session, "moved"), verb(world, "diff", "moved").splitlines()), (b"fourth\n", ["A moved"]))
    same("stop", world.boot("session", "stop", "one").returncode, 0)
    same("kept", (world.project / "kept").read_text(), "kept")
    verb_ = world.boot("run", "-v", f"{world.project}:overlay=one", "-w", str(world.project), str(world.folder / "tool" / "command"), "text", "moved")
    same("the next run", verb_.stdout, "fourth\n")


def large_files_come_back(world: World) -> None:
    """Of several blocks, some of which are from below."""
    below = bytes(range(256)) * 2048
    (world.project / "large").write_bytes(below)
    if world.user is not None:
        os.chown(world.project / "large", world.user, world.user)
    session = start(world)
    session.ask("write", b"X" * 5000, path="large", atomic=False)
    first = whole(session, "large")
    verb(world, "snapshot", "a")
    session.ask("append", b"Y" * 100_000, path="large")
    second = whole(session, "large")
    same("longer", (len(second), first != second), (len(first) + 100_000, True))
    verb(world, "rollback", "a")
    same("rolled back", whole(session, "large") == first, True)
    verb(world, "discard")
    same("discarded", whole(session, "large") == below, True)


def programs_keep_what_they_hold(world: World) -> None:
    """A working directory stays one; a file that was changed here and is open is not taken away."""
    session, other = start(world), connect(world)
    write(session, "sub/file", b"first\n")
    verb(world, "snapshot", "a")
    write(session, "sub/file", b"second\n")
    other.send(do="exec", argv=[TOOL, "wait"], workdir=str(world.project / "sub"), stdin=True)
    until_ready(other)
    verb(world, "rollback", "a")
    same("in its directory", seen(session, "sub/file"), b"first\n")
    verb(world, "apply")
    same("which is the directory's now", seen(session, "sub/file"), b"first\n")
    write(session, "sub/more", b"x\n")
    same("and goes on", verb(world, "diff").splitlines(), ["A sub/more"])
    holder = connect(world)
    holder.send(do="exec", argv=[TOOL, "line"], stdin=True, workdir=str(world.project))
    number = holder.receive()[0]["started"]["id"]
    same("runs", number in [command["id"] for command in listed(world)[0]["commands"]], True)
    verb(world, "discard")
    same("gone", seen(session, "sub/more"), None)


def open_files_are_not_taken_away(world: World) -> None:
    session, reader = start(world), connect(world)
    write(session, "log", b"line\n")
    reader.send(do="exec", argv=[TOOL, "hold", "log"], stdin=True)
    until_ready(reader)
    for words in (("apply",), ("discard",), ("rollback", "a")):
        holds(f"{words}", verb(world, *words, status=125), "log was changed here, and a program has it open")
    same("seen all the same", (verb(world, "diff").splitlines(), verb(world, "snapshot", "a")), (["A log"], ""))
    same("as it was", seen(session, "log"), b"line\n")
    reader.send(do="input", close=True)
    list(reader.events())
    verb(world, "apply")
    same("then it is applied", (world.project / "log").read_text(), "line\n")


def one_has_the_state_at_a_time(world: World) -> None:
    session, first, second = start(world), connect(world), connect(world)
    hello = session.ask("hello")
    same("overlays", [(overlay["volume"], overlay["guest"]) for overlay in hello["overlays"]], [(str(world.project), str(world.project))])
    held = first.ask("hold")
    same("held", (held["held"], held["volume"], Path(held["state"]).name), (True, str(world.project), "one.db"))
    refused("twice", lambda: first.ask("hold"), "has a state already")
    second.send(do="hold", change=True)
    session.send(do="exec", argv=[TOOL, "text", "kept"])
    time.sleep(0.3)
    second.socket.setblocking(False)
    try:
        if second.socket.recv(1):
            raise Failed("two have the state")
    except BlockingIOError:
        pass
    second.socket.settimeout(30)
    same("given back", first.ask("release"), {"done": True})
    same("the next", second.receive()[0]["held"], True)
    refused("nothing to give back", lambda: first.ask("release"), "has no state")
    second.stream.close()
    second.socket.close()
    same("a client that goes gives it back", b"".join(body for _, body in session.events()), b"kept")
    refused("no such overlay", lambda: first.ask("hold", volume="/nowhere"), "no overlay there")
    threads = [threading.Thread(target=verb, args=(world, "diff")) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(5):
        write(session, f"n{number}", b"x")
    for thread in threads:
        thread.join()
    same("none is lost", verb(world, "diff").splitlines(), [f"A n{number}" for number in range(5)])


def a_session_ends_while_its_state_is_lent(world: World) -> None:
    session, borrower = start(world), connect(world)
    write(session, "new", b"x")
    borrower.ask("hold")
    same("stop", world.boot("session", "stop", "one").returncode, 0)
    same("nothing is lost", world.boot("diff", "one").stdout, "A new\n")


def a_borrower_that_is_killed(world: World) -> None:
    """While it applies: the session waits until the state is free."""
    session = start(world)
    for number in range(300):
        write(session, f"d/{number}", os.urandom(100))
    child = world.begin("session", "apply", "one")
    time.sleep(0.05)
    child.kill()
    child.wait(SECONDS)
    same("all is there", len(session.ask("stat", path="d/299")["stat"]), 10 - 1)
    for _ in range(2):
        done = world.boot("session", "apply", "one")
    same("and is applied", (done.returncode, len(os.listdir(world.project / "d"))), (0, 300))
    same("once", verb(world, "diff"), "")


def several_overlays(world: World) -> None:
    other = world.folder / "other"
    other.mkdir()
    if world.user is not None:
        os.chown(other, world.user, world.user)
    session = start(world, "-v", f"{other}:/o:overlay=two")
    write(session, "/o/new", b"x")
    write(session, "mine", b"y")
    holds("which", verb(world, "diff", status=125), "several overlays; name one of ")
    same("of the host", verb(world, "diff", "--volume", str(other)).splitlines(), ["A new"])
    same("the other one", verb(world, "diff", "--volume", str(world.project)).splitlines(), ["A mine"])
    holds("no such", verb(world, "diff", "--volume", str(world.home), status=125), "no overlay there")
    verb(world, "apply", "--volume", str(other))
    same("only there", (os.listdir(other), (world.project / "mine").exists()), (["new"], False))
    same("without one", world.boot("session", "stop", "one").returncode, 0)


def hostile_names(world: World) -> None:
    """Line feeds, escapes, links that lead out, and names that change while they are listed."""
    session = start(world)
    name = "a\nb\x1b[31m"
    write(session, name, b"x")
    session.ask("link", path="out", target=str(world.folder / "secret"))
    session.ask("link", path="up", target="..")
    out = verb(world, "diff")
    same("lines", (len(out.splitlines()), "\x1b" in out), (3, False))
    same("exact in JSON", name in [change["path"] for change in json.loads(verb(world, "diff", "--json"))], True)
    session.send(do="exec", argv=[TOOL, "churn"], stdin=True, detach=True)
    session.receive()
    for _ in range(10):
        verb(world, "diff", "--stat")
    session.ask("signal", all=True, signal="KILL")
    until("it has ended", lambda: not listed(world)[0]["commands"])
    verb(world, "discard", "churn") if "churn" in verb(world, "diff") else None
    (world.folder / "secret").write_text("secret")
    verb(world, "apply")
    same("links are links", (os.readlink(world.project / "out"), os.readlink(world.project / "up")), (str(world.folder / "secret"), ".."))
    same("and nothing else", ((world.folder / "secret").read_text(), (world.project / name).read_bytes()), ("secret", b"x"))


TESTS = [changes_are_shown, changes_are_applied, changes_are_discarded, snapshots_come_back, large_files_come_back, programs_keep_what_they_hold,
         open_files_are_not_taken_away, one_has_the_state_at_a_time, a_session_ends_while_its_state_is_lent, a_borrower_that_is_killed, several_overlays,
         hostile_names]
