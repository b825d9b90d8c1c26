"""The second version of the protocol of sessions: processes. `session_client.py` is the client."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

from session_client import Refused, Session
from sessions import start, until
from world import SECONDS, Failed, World, holds, same

TOOL = "/tool/command"


def connect(world: World, name: str = "one") -> Session:
    """A connection as the user of the world."""
    own = os.geteuid()
    if world.user is not None:
        os.seteuid(world.user)
    try:
        session = Session(world.runtime / "lind" / f"{name}.sock")
    finally:
        os.seteuid(own)
    session.socket.settimeout(30)
    return session


def refused(what: str, request: Callable[[], object], part: str, errno: str | None = None) -> None:
    try:
        got = request()
    except Refused as why:
        holds(what, str(why), part)
        same(f"{what}: errno", why.errno, errno)
    else:
        raise Failed(f"{what}: {got!r}, expected a refusal")


def until_ready(session: Session, **more: object) -> int:
    """Starts what says that it is ready; its number."""
    id_ = session.receive()[0]["started"]["id"]
    text = b""
    while b"ready" not in text:
        text += session.receive()[1]
    return id_


def versions_are_negotiated(world: World) -> None:
    start(world)
    session = connect(world)
    hello = session.ask("hello")
    same("hello", (hello["version"], hello["versions"], hello["name"]), (2, [1, 2], "one"))
    for verb in ("exec", "attach", "list"):
        same(verb, verb in hello["verbs"], True)
    refused("a verb of later", lambda: session.ask("dance"), "does not know this verb")
    same("goes on", session.ask("list")["commands"], [])
    later = connect(world)
    later.send(lind=3, do="hello")
    try:
        later.receive()
    except Refused:
        pass
    else:
        raise Failed("version 3 is accepted")
    same("and the second afterwards", later.ask("hello")["version"], 2)


def the_first_version_is_as_it_was(world: World) -> None:
    """Bytes that a client of the first version has sent, and the keys of the answers."""
    start(world)
    recorded = [b'3\0\0\0{"lind":1,"do":"exec","argv":["/tool/command"],"events":true}',
                b'\x16\0\0\0{"lind":1,"do":"list"}', b'=\0\0\0{"lind":1,"do":"exec","argv":["/tool/command"],"bytes":4000000}']
    recorded = [len(text[4:]).to_bytes(4, "little") + text[4:] for text in recorded]

    def answers(request: bytes, count: int) -> list[dict]:
        client = connect(world)
        reads, writes = os.pipe()
        with os.fdopen(reads, "rb"), os.fdopen(writes, "wb"):
            socket.send_fds(client.socket, [request], [reads, writes, writes])
        return [json.loads(client.stream.read(int.from_bytes(client.stream.read(4), "little"))) for _ in range(count)]

    started, ended = answers(recorded[0], 2)
    same("started", sorted(started["started"]), ["id", "pid"])
    same("ended", sorted(ended["ended"]), ["signal", "status", "timed_out", "wall"])
    listed = answers(recorded[1], 1)[0]
    same("list", sorted(listed), ["commands", "name", "pid", "seconds"])
    same("its bytes are in no message", answers(recorded[2], 1)[0]["ended"]["status"], 0)


def output_comes_over_pipes(world: World) -> None:
    start(world)
    session = connect(world)
    much = os.urandom(50_000)
    for given in (b"", b"some text\n", much):
        ended, out, error = session.run(TOOL, "copy", stdin=given)
        same("ends", (ended["status"], out, error), (7, given, b"to stderr\n"))
        same("counted", (ended["output"], ended["dropped"]), (len(given) + 10, 0))
    session.send(do="exec", argv=[TOOL, "copy"])
    same("without input", [message.get("output") for message, _ in session.events()], [None, "stderr", None])
    refused("missing", lambda: session.run("no-such-command"), "no-such-command", "ENOENT")
    same("signal", session.run(TOOL, "die", "9")[0]["signal"], 9)


def files_can_be_sent(world: World) -> None:
    start(world)
    session = connect(world)
    reads, writes = os.pipe()
    with os.fdopen(reads, "rb") as out:
        text = json.dumps({"lind": 2, "do": "exec", "argv": [TOOL, "copy"], "files": [1], "stdin": True}).encode()
        socket.send_fds(session.socket, [len(text).to_bytes(4, "little") + text], [writes])
        os.close(writes)
        session.send(b"abc", do="input", close=True)
        messages = [message.get("output") for message, _ in session.events()]
        same("only stderr", [name for name in messages if name], ["stderr"])
        same("stdout", out.read(), b"abc")


def no_more_output_than_wanted(world: World) -> None:
    start(world)
    session = connect(world)
    ended, out, error = session.run(TOOL, "copy", stdin=b"0123456789" * 1000, max_output=15)
    same("cut", (ended["status"], len(out + error), ended["dropped"]), (7, 15, 9995))


def a_slow_reader_loses_nothing(world: World) -> None:
    """The command waits for its client, whatever is kept."""
    start(world)
    with (world.project / "much").open("wb") as file:
        file.write(b"0123456789\n" * 100_000)
    session = connect(world)
    session.send(do="exec", argv=[TOOL, "text", "much"], keep=4096)
    with (world.project / "much").open("rb") as given:
        slow = connect(world)
        text = json.dumps({"lind": 2, "do": "exec", "argv": [TOOL, "copy"], "files": [0], "keep": 4096}).encode()
        socket.send_fds(slow.socket, [len(text).to_bytes(4, "little") + text], [given.fileno()])
    time.sleep(0.5)
    out = b"".join(body for message, body in slow.events() if message.get("output") == "stdout")
    same("all of it", (len(out), out == b"0123456789\n" * 100_000), (1_100_000, True))


def a_detached_command_goes_on(world: World) -> None:
    """It is attached to again, also after its end, and the last bytes of its output are there."""
    start(world)
    first = connect(world)
    first.send(do="exec", argv=[TOOL, "line"], stdin=True, detach=True)
    id_ = first.receive()[0]["started"]["id"]
    same("the connection is free", [command["id"] for command in first.ask("list")["commands"]], [id_])
    first.socket.close()
    second, third = connect(world), connect(world)
    second.send(do="attach", id=id_)
    same("attached", second.receive()[0]["attached"]["id"], id_)
    same("from the start", second.receive()[1], b"ready\n")
    third.send(do="wait", id=id_)
    same("input", connect(world).ask("input", b"word\n", id=id_), {"done": True})
    message, body = second.receive()
    same("goes on", (message["output"], message["at"], body), ("stdout", 6, b"got word\n"))
    same("end", second.receive()[0]["ended"]["status"], 0)
    same("wait", third.receive()[0]["ended"]["id"], id_)
    third.send(do="attach", id=id_, **{"from": 10})
    got = list(third.events())
    same("later", (got[0][0]["attached"]["at"], got[1][1], got[2][0]["ended"]["status"]), (10, b"word\n", 0))
    listed = third.ask("list")["commands"]
    same("listed", [(command["id"], command["ended"]["status"], command["detached"]) for command in listed], [(id_, 0, True)])
    same("when", abs(listed[0]["started"] - time.time()) < SECONDS, True)
    refused("input", lambda: third.ask("input", b"x", id=id_), "has ended")
    refused("another", lambda: third.ask("wait", id=99), "no command has the number 99")


def only_so_many_ends_are_kept(world: World) -> None:
    start(world)
    session = connect(world)
    ids = [session.run(TOOL, "cwd")[0]["id"] for _ in range(70)]
    same("kept", [command["id"] for command in session.ask("list")["commands"]], ids[-64:])


def who_leaves_ends_a_command_that_is_not_detached(world: World) -> None:
    start(world)
    first, second = connect(world), connect(world)
    first.send(do="exec", argv=[TOOL, "wait"])
    id_ = until_ready(first)
    second.send(do="attach", id=id_)
    second.receive()
    second.receive()
    second.send(do="detach")
    same("detached", second.receive()[0]["detached"], id_)
    same("it runs", "ended" in second.ask("list")["commands"][0], False)
    first.socket.close()
    first.stream.close()
    second.send(do="wait", id=id_)
    same("end", second.receive()[0]["ended"]["signal"], 9)
    third = connect(world)
    third.send(do="exec", argv=[TOOL, "wait"])
    id_ = until_ready(third)
    third.send(do="detach")
    third.receive()
    third.socket.close()
    third.stream.close()
    same("left", second.ask("signal", signal="TERM", id=id_), {"done": True})
    second.send(do="wait", id=id_)
    same("end", second.receive()[0]["ended"]["signal"], 15)


def signals_and_groups(world: World) -> None:
    start(world)
    first, second = connect(world), connect(world)
    first.send(do="exec", argv=[TOOL, "family"])
    id_ = until_ready(first)
    same("to the group", second.ask("signal", signal="KILL", id=id_, group=True), {"done": True})
    same("all of it", first.receive()[0]["ended"]["signal"], 9)
    first.send(do="exec", argv=[TOOL, "catch"])
    until_ready(first)
    first.send(do="signal", signal=10)
    same("caught", list(first.events())[-1][0]["ended"]["status"], 5)
    refused("no signal", lambda: second.ask("signal", signal="NONE", all=True), "signal")
    for late in ("input", "resize", "signal", "detach"):
        second.send(do=late, signal=9)
    same("late messages are not answered", second.ask("hello")["version"], 2)


def terminals_have_a_size(world: World) -> None:
    start(world)
    first, second = connect(world), connect(world)
    first.send(do="exec", argv=[TOOL, "terminal"], terminal={"files": [0, 1, 2], "size": [24, 80]})
    id_ = first.receive()[0]["started"]["id"]
    text = b""
    while b"ready" not in text:
        message, body = first.receive()
        same("stream", message["output"], "terminal")
        text += body
    holds("terminal", text.decode(), "terminal 1 front 1 session 1 size 24x80")
    same("listed", second.ask("list")["commands"][0]["terminal"], True)
    same("resize", second.ask("resize", id=id_, size=[30, 90]), {"done": True})
    same("SIGWINCH", list(first.events())[-1][0]["ended"]["status"], 5)
    first.send(do="exec", argv=[TOOL, "copy"], terminal={"files": [0], "size": [24, 80]})
    id_ = first.receive()[0]["started"]["id"]
    second.ask("input", b"typed\n", id=id_, close=True)
    got = list(first.events())
    holds("typed", b"".join(body for message, body in got if message.get("output") == "stdout").decode(), "typed\n")
    refused("no terminal", lambda: second.ask("resize", id=id_, size=[1, 2]), "has ended")


def what_is_left_behind_can_still_write(world: World) -> None:
    """Its output is kept with that of the command, and it is not killed by a pipe that nobody reads."""
    start(world)
    session = connect(world)
    session.send(do="exec", argv=[TOOL, "drain"])
    same("end", list(session.events())[-1][0]["ended"]["status"], 4)
    until("it ends", lambda: (world.project / "log").exists() and (world.project / "log").read_text() == "one\ntwo\n")


def input_that_nobody_reads_waits(world: World) -> None:
    """The answer waits, and other clients do not."""
    start(world)
    first, second, third = connect(world), connect(world), connect(world)
    first.send(do="exec", argv=[TOOL, "wait"], stdin=True)
    id_ = until_ready(first)
    for _ in range(3):
        second.send(bytes(60_000), do="input", id=id_)
    same("others go on", third.ask("hello")["version"], 2)
    same("some has room", second.receive()[0], {"done": True})
    third.ask("signal", signal=9, id=id_)
    same("end", list(first.events())[-1][0]["ended"]["signal"], 9)


def what_is_no_message(world: World) -> None:
    start(world)
    path: Path = world.runtime / "lind" / "one.sock"
    for wrong in (b"\xff\xff\xff\x7f", b"\x04\0\0\0[1,2"):
        client = connect(world)
        client.socket.sendall(wrong)
        same(f"{wrong!r}", client.socket.recv(10), b"")
    client = connect(world)
    text = b'{"lind":2,"do":"hello","bytes":99999999}'
    client.socket.sendall(len(text).to_bytes(4, "little") + text)
    same("too many bytes", client.socket.recv(10), b"")
    client = connect(world)
    for wrong in ({"do": 1}, {}, {"do": "exec"}, {"do": "exec", "argv": ["a"], "keep": -1}, {"do": "attach", "id": "x"}, {"do": "input", "id": 1},
                  {"do": "exec", "argv": ["a"], "files": [3]}, {"do": "exec", "argv": ["a"], "files": [1], "terminal": {"files": [1], "size": [1, 2]}}):
        client.send(**wrong)
        refused(f"{wrong}", client.receive, "")
    client.send(do="exec", argv=[TOOL, "copy"], max_outputs=1)
    refused("an unknown key", client.receive, "max_outputs: this session does not know this key of `exec`")
    same("goes on", client.ask("hello")["version"], 2)
    same("the socket is there", path.exists(), True)


TESTS = [versions_are_negotiated, the_first_version_is_as_it_was, output_comes_over_pipes, files_can_be_sent, no_more_output_than_wanted,
         a_slow_reader_loses_nothing, a_detached_command_goes_on, only_so_many_ends_are_kept, who_leaves_ends_a_command_that_is_not_detached,
         signals_and_groups, terminals_have_a_size, what_is_left_behind_can_still_write, input_that_nobody_reads_waits, what_is_no_message]
