"""The overlays of a session: `session diff`, `apply`, `discard`, `snapshot` and `rollback`, and the messages `hold` and `release`."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from pathlib import Path
from random import Random

from second import connect, refused, until_ready
from session_client import Refused, Session
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
    done = world.boot("session", "diff", "one", "new", LIND_ROOT="/nowhere")
    same("without an image", (done.returncode, done.stdout.splitlines()), (0, ["A new/", "A new/file"]))
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
    same("listed", [line.split()[0] for line in verb(world, "snapshots").splitlines() if line.endswith(" snapshot")], ["a", "b"])
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


def watchers_stay(world: World) -> None:
    """Of directories: they see what is done after a rollback, and do not keep it from being done."""
    session, watcher = start(world), connect(world)
    write(session, "sub/file", b"first\n")
    verb(world, "snapshot", "a")
    write(session, "sub/file", b"second\n")
    watcher.send(do="watch", path="sub")
    same("watches", watcher.receive()[0]["watching"], True)
    for words in (("rollback", "a"), ("apply",)):
        verb(world, *words)
    same("rolled back", seen(session, "sub/file"), b"first\n")
    write(session, "sub/later", b"x")
    while watcher.receive()[0]["name"] != "later":
        pass
    watcher.send(do="anything")
    same("ends", [message for message, _ in watcher.events("done")][-1]["done"], True)


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


def its_grate_ends_with_the_session(world: World) -> None:
    """The thread that waits for requests does not keep it: grates that do not end are killed, and the session fails."""
    serving = world.begin("session", "serve", "one", "-v", f"{world.project}:overlay=one", "-v", f"{world.folder}/tool:/tool:ro")
    until("the session", lambda: world.boot("session", "exec", "one", TOOL, "true").returncode == 0)
    write(connect(world), "new", b"x")
    same("stop", world.boot("session", "stop", "one").returncode, 0)
    said = serving.communicate(timeout=SECONDS)[1]
    same(f"the session, {said!r}", serving.returncode, 0)


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


def listing(session: Session, top: str = ".") -> dict[str, bytes | None]:
    """All files below a directory with their contents, and directories with None."""
    session.send(do="list_files", path=top, recursive=True)
    entries = [entry for message, _ in session.events("done") for entry in message.get("entries", [])]
    return {entry["name"]: None if entry["type"] == "directory" else whole(session, entry["name"]) for entry in entries}


def below(top: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(top)): path.read_bytes() if path.is_file() else None for path in top.rglob("*")}


def change(session: Session, model: dict[str, bytes | None], random: Random) -> None:
    """A random change of a file, in the session and in the model."""
    files, folders = [name for name in model if model[name] is not None], [name for name in model if model[name] is None]
    folder = random.choice(["", *(f"{name}/" for name in folders)])
    name = folder + random.choice("abcdef")
    text = random.randbytes(random.choice([0, 10, 5000, 70_000]))
    match random.choice(["write", "write", "append", "mkdir", "remove", "rename"]):
        case "write" if model.get(name, b"") is not None:
            session.ask("write", text, path=name, atomic=random.random() < 0.5)
            model[name] = text
        case "append" if files:
            name = random.choice(files)
            session.ask("append", text, path=name)
            model[name] = (model[name] or b"") + text
        case "mkdir" if name not in model and name.count("/") < 4:
            session.ask("mkdir", path=name)
            model[name] = None
        case "remove" if model:
            name = random.choice(list(model))
            session.ask("remove", path=name, recursive=True)
            for other in [other for other in model if other == name or other.startswith(f"{name}/")]:
                del model[other]
        case "rename" if model and name not in model:
            old = random.choice(list(model))
            if not name.startswith(f"{old}/"):
                session.ask("rename", path=old, to=name)
                for other in [other for other in model if other == old or other.startswith(f"{old}/")]:
                    model[name + other[len(old):]] = model.pop(other)


def any_order_of_changes(world: World) -> None:
    """Against a model: what commands see after any changes, snapshots, rollbacks, discards and applies."""
    shutil.rmtree(world.project / ".git")
    for folder in ("a", "b/c"):
        (world.project / folder).mkdir(parents=True)
        (world.project / folder / "d").write_bytes(bytes(9000))
    if world.user is not None:
        for path in world.project.rglob("*"):
            os.chown(path, world.user, world.user)
    seed = int(os.environ.get("LIND_TEST_SEED") or int.from_bytes(os.urandom(4), "little"))
    try:
        in_any_order(world, Random(seed))
    except (Failed, Refused) as why:
        raise Failed(f"LIND_TEST_SEED={seed}: {why}") from why


def in_any_order(world: World, random: Random) -> None:
    session = start(world)
    model, snapshots = below(world.project), {}
    for step in range(50):
        for _ in range(random.randrange(6)):
            change(session, model, random)
        match random.choice(["snapshot", "rollback", "rollback", "apply", "discard", "diff"]):
            case "snapshot":
                verb(world, "snapshot", f"s{step}")
                snapshots[f"s{step}"] = dict(model)
            case "rollback" if snapshots:
                label = random.choice(list(snapshots))
                verb(world, "rollback", label)
                model = dict(snapshots[label])
            case "apply":
                verb(world, "apply")
                # A snapshot is one of the changes, and not of the directory.
                snapshots.clear()
                same(f"step {step}: the directory", below(world.project) == model, True)
                same(f"step {step}: no change is left", verb(world, "diff"), "")
            case "discard":
                verb(world, "discard")
                model = below(world.project)
            case "diff":
                verb(world, "diff", "--stat")
        got = listing(session)
        differing = sorted(name for name in {*got, *model} if got.get(name, 0) != model.get(name, 0))
        same(f"step {step}: files that differ", differing, [])


TESTS = [changes_are_shown, changes_are_applied, changes_are_discarded, snapshots_come_back, large_files_come_back, programs_keep_what_they_hold,
         watchers_stay, open_files_are_not_taken_away, one_has_the_state_at_a_time, a_session_ends_while_its_state_is_lent, its_grate_ends_with_the_session, a_borrower_that_is_killed, several_overlays,
         hostile_names, any_order_of_changes]
