"""Files of a session, by its protocol and its commands: as a command in it would see them, and no more."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import threading
from pathlib import Path

from second import connect, refused
from session_client import Refused, Session
from sessions import listed, start, until
from world import BOOT, SECONDS, World, holds, same

TOOL = "/tool/command"


def read(session: Session, path: object, **keys: object) -> tuple[bytes, dict]:
    session.send(do="read", path=path, **keys)
    parts = list(session.events("done"))
    return b"".join(body for _, body in parts), parts[-1][0]


def names(session: Session, path: object, **keys: object) -> tuple[list, bool]:
    session.send(do="list_files", path=path, **keys)
    parts = list(session.events("done"))
    return sorted((entry["name"] for message, _ in parts for entry in message.get("entries", [])), key=str), parts[-1][0]["more"]


def owned(world: World, path: Path) -> Path:
    if world.user is not None:
        os.chown(path, world.user, world.user, follow_symlinks=False)
    return path


def give(world: World, *trees: Path) -> None:
    if world.user is not None:
        subprocess.run(["chown", "-R", str(world.user), *trees], check=True)


def files_are_written_and_read(world: World) -> None:
    start(world)
    session = connect(world)
    same("write", session.ask("write", b"some text", path="sub/dir/a", parents=True, mode=0o640), {"done": True, "written": 9})
    file = world.project / "sub" / "dir" / "a"
    same("there", (file.read_bytes(), file.stat().st_mode & 0o7777), (b"some text", 0o640))
    same("range", read(session, "sub/dir/a", **{"from": 5, "count": 3})[0], b"tex")
    data, end = read(session, f"{world.project}/sub/dir/a")
    same("read", (data, end["more"], end["stat"]["size"], end["stat"]["mode"]), (b"some text", False, 9, 0o640))
    same("more", read(session, "sub/dir/a", count=4)[1]["more"], True)
    session.ask("write", b"other", path="sub/dir/a")
    same("the mode stays", (file.read_bytes(), file.stat().st_mode & 0o7777), (b"other", 0o640))
    session.ask("append", b" end", path="sub/dir/a")
    same("append", file.read_bytes(), b"other end")
    refused("new", lambda: session.ask("write", b"x", path="sub/dir/a", create=True), "exists", "EEXIST")
    session.ask("write", b"x", path="sub/dir/new", create=True)
    much = os.urandom(3_000_000)
    session.send(much[:1_000_000], do="write", path="much", more=True)
    session.send(much[1_000_000:], more=False)
    same("pieces", session.receive()[0]["written"], len(much))
    same("all", read(session, "much")[0] == much, True)
    session.send(b"half", do="write", path="much", more=True)
    session.send(abort=True)
    refused("given up", lambda: session.receive(), "given up", "ECANCELED")
    same("as before", (world.project / "much").read_bytes() == much, True)
    same("nothing is left", [path.name for path in world.project.iterdir() if path.name.startswith("lind-write")], [])
    refused("missing", lambda: read(session, "none"), "none: No such file", "ENOENT")
    refused("a directory", lambda: read(session, "sub"), "sub", "EISDIR")


def directories_and_names(world: World) -> None:
    start(world)
    session = connect(world)
    session.ask("mkdir", path="d/e/f", parents=True)
    session.ask("mkdir", path="d/e/f", parents=True)
    refused("again", lambda: session.ask("mkdir", path="d"), "exists", "EEXIST")
    odd = list(b"odd\xff\n")
    session.ask("write", b"1", path=[*b"d/", *odd])
    session.ask("link", path="d/link", target="e")
    same("names", names(session, "d"), ([odd, "e", "link"], False))
    same("below", names(session, "d", recursive=True)[0], [odd, "e", "e/f", "link"])
    same("so deep", names(session, "d", recursive=True, depth=1)[0], [odd, "e", "link"])
    same("so many", (len(names(session, "d", count=2)[0]), names(session, "d", count=2)[1], names(session, "d", count=3)[1]), (2, True, False))
    stat = session.ask("stat", path="d/link")["stat"]
    same("link", (stat["type"], stat["target"]), ("link", "e"))
    same("followed", session.ask("stat", path="d/link", follow=True)["stat"]["type"], "directory")
    session.ask("rename", path="d/e", to="moved")
    refused("onto another", lambda: session.ask("rename", path="moved", to="d/link", create=True), "exists", "EEXIST")
    session.ask("write", b"2", path="moved/f/x", mode=0o755)
    done = session.ask("copy", path="moved", to="copied", recursive=True)
    same("copied", (done["count"], read(session, "copied/f/x")[0], (world.project / "copied/f/x").stat().st_mode & 0o777), (3, b"2", 0o755))
    refused("into itself", lambda: session.ask("copy", path="moved", to="moved/f/y", recursive=True), "Invalid", "EINVAL")
    refused("not empty", lambda: session.ask("remove", path="copied"), "not empty", "ENOTEMPTY")
    session.ask("remove", path="copied", recursive=True)
    refused("gone", lambda: session.ask("remove", path="copied"), "No such file", "ENOENT")
    session.ask("remove", path="copied", missing_ok=True)
    for wrong in ("/", "..", "d/."):
        refused(wrong, lambda wrong=wrong: session.ask("remove", path=wrong, recursive=True), "", "EINVAL")
    same("all is there", (world.project / "kept").read_text(), "kept")


def files_are_those_of_a_command(world: World) -> None:
    """The sandbox's own, and an overlay's; nothing outside, also not through links; and its policy holds."""
    start(world, "-v", f"{world.folder}/secret:/mnt/secret:ro")
    session = connect(world)
    refused("outside", lambda: read(session, f"{world.home}/x"), "No such file", "ENOENT")
    try:
        session.ask("write", b"", path=f"{world.folder}/new")
    except Refused:
        pass
    same("not the host's", (world.folder / "new").exists(), False)
    session.ask("link", path="out", target=str(world.folder / "secret"))
    refused("a link out", lambda: read(session, "out"), "No such file", "ENOENT")
    session.ask("link", path="up", target="../../../../../../../../etc/shadow")
    try:
        data = read(session, "up")[0]
    except Refused:
        data = b""
    same("above", data == (Path("/etc/shadow").read_bytes() if os.geteuid() == 0 else None), False)
    refused("read-only", lambda: session.ask("write", b"", path="/mnt/secret"), "Read-only", "EROFS")
    refused("protected", lambda: session.ask("write", b"#!", path=".git/hooks/pre-commit"), "Read-only", "EROFS")
    refused("renamed over", lambda: session.ask("rename", path="kept", to=".envrc"), "Read-only", "EROFS")
    same("still there", (world.project / "kept").read_text(), "kept")
    session.ask("write", b"own", path="/tmp/own")
    same("its own /tmp", session.run(TOOL, "text", "/tmp/own")[1], b"own")
    same("not the host's", Path("/tmp/own").exists(), False)


def an_overlay_has_its_own_files(world: World) -> None:
    world.boot("session", "start", "one", "-v", ".:overlay=files")
    session = connect(world)
    session.ask("write", b"changed", path="kept")
    session.ask("write", b"new", path="new", create=True)
    same("seen", (read(session, "kept")[0], "new" in names(session, ".")[0]), (b"changed", True))
    same("below", ((world.project / "kept").read_text(), (world.project / "new").exists()), ("kept", False))
    world.boot("session", "stop", "one")
    same("diff", world.boot("diff", "files").stdout, "M kept\nA new\n")


def what_is_not_a_file(world: World) -> None:
    """Nothing waits for a fifo or a device; a sparse file does not fill memory or the disk."""
    start(world)
    session = connect(world)
    os.mkfifo(world.project / "fifo")
    owned(world, world.project / "fifo")
    for verb in ("read", "write", "append"):
        refused(verb, lambda verb=verb: session.ask(verb, b"", path="fifo"), "not a regular file", "ENXIO")
    same("left out", session.ask("copy", path="fifo", to="c")["skipped"], ["fifo"])
    refused("a device", lambda: read(session, "/dev/zero"), "not a regular file", "ENXIO")
    with (world.project / "sparse").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(1 << 30)
        file.write(b"x")
    owned(world, world.project / "sparse")
    data, end = read(session, "sparse", count=10, **{"from": (1 << 30) - 1})
    same("a part", (data, end["more"]), (b"\0x" + bytes(8), True))
    session.ask("copy", path="sparse", to="copy")
    found = (world.project / "copy").stat()
    same("holes stay", (found.st_size, found.st_blocks < 10_000), (1 << 40, True))
    session.send(do="tar", path="sparse", count=1_000_000)
    refused("a tar of it", lambda: list(session.events("done")), "more than 1000000 bytes", "EFBIG")
    same("goes on", session.ask("hello")["version"], 2)


def huge_directories(world: World) -> None:
    start(world)
    session = connect(world)
    many = world.project / "many"
    many.mkdir()
    for number in range(5000):
        (many / f"{number}").touch()
    deep = world.project / "deep"
    (deep / "/".join(["d"] * 150)).mkdir(parents=True)
    give(world, many, deep)
    same("cut", (len(names(session, "many", count=100)[0]), names(session, "many", count=100)[1]), (100, True))
    same("all", len(names(session, "many", count=6000)[0]), 5000)
    same("deep", len(names(session, "deep", recursive=True)[0]), 128)
    session.ask("remove", path="many", recursive=True)
    same("removed", many.exists(), False)
    refused("too deep", lambda: session.ask("remove", path="deep", recursive=True), "", "ELOOP")


def a_race_with_links(world: World) -> None:
    """While somebody turns a directory into a link and back, nothing beside it goes."""
    start(world)
    session = connect(world)
    keep = owned(world, make(world.project / "keep"))
    for number in range(50):
        (keep / f"{number}").write_text("x")
    victim = world.project / "victim"
    done = threading.Event()

    def turn() -> None:
        while not done.is_set():
            try:
                victim.mkdir()
                (victim / "f").write_text("y")
                victim.rename(world.project / "aside")
                victim.symlink_to("keep")
                victim.unlink()
                (world.project / "aside" / "f").unlink(missing_ok=True)
                (world.project / "aside").rmdir()
            except OSError:
                subprocess.run(["rm", "-rf", str(victim), str(world.project / "aside")], check=False)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        for _ in range(300):
            try:
                session.ask("remove", path="victim", recursive=True)
            except Refused:
                pass
    finally:
        done.set()
        thread.join()
    same("beside it", len(list(keep.iterdir())), 50)


def what_goes_meanwhile_is_left_out(world: World) -> None:
    """A tar and a copy go on without a file that is not there any more, and count it."""
    start(world)
    session = connect(world)
    many = make(world.project / "many")
    for number in range(20):
        with (many / f"{number}").open("wb") as file:
            file.truncate(64 << 20)
    give(world, many)
    # The tar waits for its reader in the first file, and knows the names of the others.
    session.send(do="tar", path="many", count=4 << 30)
    message, data = session.receive()
    first = data[:100].rstrip(b"\0").decode()
    for file in many.iterdir():
        if file.name != first:
            file.unlink()
    parts = [(message, data), *session.events("done")]
    end = parts[-1][0]
    same("tar", (end["count"], end["skips"], sorted([first, *end["skipped"]])), (1, 19, sorted(str(number) for number in range(20))))
    same("its size", sum(len(body) for _, body in parts), (64 << 20) + 3 * 512)
    refused("named itself", lambda: session.ask("copy", path="none", to="copied"), "No such file", "ENOENT")

    names = world.home / "names"
    stopped = threading.Event()

    def come_and_go() -> None:
        while not stopped.is_set():
            for number in range(100):
                place = many / f"x{number}"
                match number % 3:
                    case 0:
                        place.write_text("x")
                    case 1:
                        place.symlink_to("kept")
                    case _:
                        place.mkdir()
                owned(world, place)
            for number in range(100):
                place = many / f"x{number}"
                place.rmdir() if number % 3 == 2 else place.unlink()

    (many / first).unlink()
    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for number in range(60):
            session.ask("copy", path="many", to=f"/tmp/{number}", recursive=True)
        for number in range(10):
            for words in (("one:many", f"{names}{number}"), ("many", f"one:/tmp/in{number}")):
                done = world.boot("session", "cp", *words)
                same(f"{words} {done.stderr}", done.returncode, 0)
    finally:
        stopped.set()
        thread.join()


def make(path: Path) -> Path:
    path.mkdir()
    return path


def packed(members: list[tuple[str, bytes | None, str]]) -> bytes:
    """A tar; a member with None for its bytes is a link to the third, or a directory."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data, target in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o640
            if data is not None:
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
                continue
            info.type = tarfile.SYMTYPE if target else tarfile.DIRTYPE
            info.linkname = target
            tar.addfile(info)
    return out.getvalue()


def tars_go_in_and_out(world: World) -> None:
    start(world)
    session = connect(world)
    long = "n" * 120 + "/" + "m" * 120
    tar = packed([("d/", None, ""), ("d/a", b"text" * 500, ""), ("d/l", None, "a"), (long, b"long", ""), ("d/uml\u00e4ut", b"", "")])
    done = session.ask("untar", tar, path="in", parents=True)
    same("in", (done["count"], (world.project / "in/d/a").read_bytes(), os.readlink(world.project / "in/d/l")), (5, b"text" * 500, "a"))
    same("mode", (world.project / "in/d/a").stat().st_mode & 0o777, 0o640)
    session.send(do="tar", path="in")
    data = b"".join(body for _, body in session.events("done"))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        same("out", sorted(tar.getnames()), sorted(["d", "d/a", "d/l", "d/uml\u00e4ut", "n" * 120, long]))
        same("bytes", tar.extractfile("d/a").read(), b"text" * 500)
        same("long", tar.extractfile(long).read(), b"long")
    session.send(do="tar", path="in/d/a")
    with tarfile.open(fileobj=io.BytesIO(b"".join(body for _, body in session.events("done")))) as tar:
        same("one file", tar.getnames(), ["a"])


def hostile_tars(world: World) -> None:
    start(world)
    session = connect(world)
    make_owned = owned(world, make(world.project / "in"))
    (world.project / "beside").write_text("as it was")
    owned(world, world.project / "beside")
    for what, members in [("..", [("../beside", b"x", "")]), ("absolute", [(f"{world.project}/beside", b"x", "")]), ("inside", [("a/../../beside", b"x", "")]),
                          ("through a link", [("l", None, ".."), ("l/beside", b"x", "")]), ("a link that is there", [("l/new", b"x", "")]),
                          ("far", [("l2", None, "/"), ("l2/tmp/x", b"x", "")])]:
        try:
            session.ask("untar", packed(members), path="in")
        except Refused as why:
            if why.errno not in ("EINVAL", "ENOTDIR"):
                raise
        else:
            raise ValueError(f"{what}: was accepted")
    same("beside", ((world.project / "beside").read_text(), (world.project / "new").exists()), ("as it was", False))
    for wrong in (b"x" * 1024, packed([("a", b"y" * 3000, "")])[:1500]):
        refused("no tar", lambda wrong=wrong: session.ask("untar", wrong, path="in"), "not a tar", "EINVAL")
    same("nothing half is left", [path.name for path in make_owned.iterdir() if path.name.startswith("lind-write")], [])
    refused("no directory", lambda: session.ask("untar", b"", path="none"), "none", "ENOENT")


def changes_are_told(world: World) -> None:
    start(world)
    watching, session = connect(world), connect(world)
    watching.send(do="watch", path=".", recursive=True)
    same("begins", watching.receive()[0]["watching"], True)
    session.ask("mkdir", path="sub")
    seen = watching.receive()[0]
    same("event", (seen["event"], seen["name"], seen["directory"]), ("created", "sub", True))
    session.run(TOOL, "text", "kept")
    until("a directory is watched", lambda: told(session, watching))
    watching.send(do="end")
    while "done" not in watching.receive()[0]:
        pass
    same("the connection is free", watching.ask("hello")["version"], 2)
    refused("missing", lambda: watching.ask("watch", path="none"), "No such file", "ENOENT")


def told(session: Session, watching: Session) -> bool:
    session.ask("write", b"x", path="sub/file")
    while True:
        message = watching.receive()[0]
        same("of files that are being written nothing is told", message["name"].startswith("sub/lind-write"), False)
        if message["event"] == "moved_to" and message["name"] == "sub/file":
            return True


def many_at_once(world: World) -> None:
    """Requests run beside one another and beside commands, and a client that leaves ends its own."""
    start(world)
    watching = [connect(world) for _ in range(16)]
    for session in watching:
        session.send(do="watch", path=".")
        session.receive()
    session = connect(world)
    refused("too many", lambda: session.ask("stat", path="."), "more than 16")
    for other in watching:
        other.socket.close()
        other.stream.close()
    until("there is room again", lambda: has_room(session))
    same("no command", listed(world)[0]["commands"] if world.user is None else session.ask("list")["commands"], [])


def has_room(session: Session) -> bool:
    try:
        return session.ask("stat", path=".")["stat"]["type"] == "directory"
    except Refused:
        return False


def commands_on_files(world: World) -> None:
    start(world)

    def session(*words: str, given: bytes = b"", status: int = 0) -> bytes:
        done = subprocess.run([BOOT, "session", *words], cwd=world.project, env=world.known, user=world.user, group=world.user, input=given,
                              capture_output=True, timeout=SECONDS, check=False)
        same(f"{words}: {done.stderr.decode()}", done.returncode, status)
        return done.stdout if status == 0 else done.stderr

    session("write", "-p", "-m", "600", "one", "d/a", given=b"text")
    same("cat", session("cat", "one", "d/a", "kept"), b"textkept")
    session("write", "--append", "one", "d/a", given=b"!")
    same("ls", session("ls", "one", "d"), b"a\n")
    holds("ls -l", session("ls", "-l", "one", "d").decode(), "-0600")
    same("ls -R", session("ls", "-R", "one", "d"), b"a\n")
    holds("stat", session("stat", "--json", "one", "d/a").decode(), '"size":5')
    session("mkdir", "-p", "one", "/tmp/x/y")
    session("mv", "one", "d/a", "d/b")
    session("rm", "-r", "one", "/tmp/x")
    holds("rm", session("rm", "one", "/tmp/x", status=125).decode(), "/tmp/x: No such file")
    session("rm", "-f", "one", "/tmp/x")
    tree = world.home / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "f").write_text("inner")
    (tree / "sub" / "l").symlink_to("f")
    give(world, tree)
    session("cp", str(tree), "one:/tmp")
    same("in", session("cat", "one", "/tmp/tree/sub/l"), b"inner")
    session("cp", str(tree / "sub" / "f"), "one:/tmp/g")
    connect(world).ask("link", path="/tmp/tree/out", target="/etc/passwd")
    back = world.home / "back"
    session("cp", "one:/tmp/tree", str(back))
    same("out", ((back / "sub" / "f").read_text(), os.readlink(back / "sub" / "l"), (back / "out").is_symlink()), ("inner", "f", False))
    for kind, (words, copied) in {"in": ((f"{tree}/.", "one:/tmp/tree"), None), "out": (("one:/tmp/tree/.", str(back)), back)}.items():
        session("cp", *words)
        found = sorted(os.listdir(copied)) if copied else session("ls", "one", "/tmp/tree").decode().split()
        same(f"{kind}: the files, and not the directory", found, ["sub"] if copied else ["out", "sub"])
    session("cp", "one:/tmp/g", str(world.home))
    same("a file", (world.home / "g").read_text(), "inner")
    tar = session("cp", "one:/tmp/tree/sub", "-")
    with tarfile.open(fileobj=io.BytesIO(tar)) as members:
        same("tar", sorted(members.getnames()), ["f", "l"])
    session("cp", "-", "one:/tmp/again", given=tar)
    same("untar", session("cat", "one", "/tmp/again/f"), b"inner")
    holds("neither", session("cp", "a", "b", status=125).decode(), "SESSION:PATH")
    number = session("exec", "-d", "one", TOOL, "wait").decode().strip()
    holds("ps", session("ps", "one").decode(), "detached")
    until("it is ready", lambda: any(command["output"] for command in connect(world).ask("list")["commands"]))
    session("kill", "-s", "TERM", "one", number)
    session("wait", "one", number, status=128 + 15)
    same("gone", session("ps", "one").decode().count("\n"), 1)
    holds("all", session("ps", "-a", "one").decode(), "signal 15")
    shown = subprocess.run([BOOT, "session", "attach", "one", number], cwd=world.project, env=world.known, user=world.user, group=world.user,
                           capture_output=True, timeout=SECONDS, check=False)
    same("attach", (shown.returncode, shown.stdout), (128 + 15, b"ready\n"))


def links_of_commands_lead_nowhere(world: World) -> None:
    """`session cp` opens files of the host by names in a volume, where a command can have made links."""
    start(world)
    secret = world.home / "secret"
    secret.mkdir()
    (secret / "key").write_text("a key")
    connect(world).ask("link", path="out", target=str(secret))
    connect(world).ask("link", path="key", target=str(secret / "key"))

    def session(*words: str, status: int = 0) -> str:
        done = subprocess.run([BOOT, "session", *words], cwd=world.project, env=world.known, user=world.user, group=world.user, capture_output=True,
                              timeout=SECONDS, check=False, text=True)
        same(f"{words}: {done.stderr}", done.returncode, status)
        return done.stderr

    connect(world).ask("write", b"new", path="/tmp/f")
    for words in [("out/key", "one:/tmp/x"), ("key", "one:/tmp/x"), ("out", "one:/tmp/x"), ("one:/tmp/f", "out/key"), ("one:/tmp/f", "out"), ("one:/tmp/f", "key")]:
        holds(f"{words}", session("cp", *words, status=125), "symbolic link")
    same("it is as before", ([f.name for f in secret.iterdir()], (secret / "key").read_text()), (["key"], "a key"))
    # In a directory that is copied, a link stays a link.
    session("cp", ".", "one:/tmp/copy")
    same("link", os.fsdecode(connect(world).ask("stat", path="/tmp/copy/key")["stat"]["target"]), str(secret / "key"))
    # With a/x, the link a/q would lead out of the copy.
    connect(world).ask("mkdir", path="/tmp/tree/a", parents=True)
    connect(world).ask("link", path="/tmp/tree/a/x", target="..")
    connect(world).ask("link", path="/tmp/tree/a/q", target="x/../../z")
    holds("left out", session("cp", "one:/tmp/tree", str(world.home)), "a/q: left out")
    same("copied", sorted(os.listdir(world.home / "tree/a")), ["x"])


def many_parts_at_once_arrive(world: World) -> None:
    start(world)
    session = connect(world)
    session.socket.settimeout(SECONDS)
    parts = [b"0123456789abcdef" * 65536] * 10 + [b"the end"]
    # Parts that were read while there was no room for them must not wait for a further message.
    for number in range(60):
        session.send(do="write", path="/tmp/much", more=True)
        for i, part in enumerate(parts):
            session.send(part, more=i < len(parts) - 1)
        same(f"write {number}", session.receive()[0]["written"], sum(map(len, parts)))
    same("all of it", read(session, "/tmp/much")[0] == b"".join(parts), True)


TESTS = [files_are_written_and_read, many_parts_at_once_arrive, directories_and_names, files_are_those_of_a_command, an_overlay_has_its_own_files, what_is_not_a_file,
         huge_directories, a_race_with_links, what_goes_meanwhile_is_left_out, tars_go_in_and_out, hostile_tars, changes_are_told, many_at_once, commands_on_files, links_of_commands_lead_nowhere]
