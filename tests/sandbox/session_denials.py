"""Denied calls of a session, for clients: `session denials`, and the message of that name."""

from __future__ import annotations

import json
import signal
import subprocess

from second import connect, refused
from session_client import Session
from sessions import start
from world import SECONDS, Failed, World, holds, same

PROBE = "/tool/probe"


def denied(session: Session, *words: str, **keys: object) -> dict:
    """The end of a command that makes these calls."""
    return session.run(PROBE, *words, **keys)[0]


def each_denial_is_an_object(world: World) -> None:
    start(world)
    session = connect(world)
    same("none yet", session.ask("denials"), {"denials": [], "last": 0, "lost": 0, "more": False, "total": 0})
    ended = denied(session, "c:192.0.2.1:22", "w:.envrc")
    answer = session.ask("denials")
    same("numbers", (answer["last"], answer["lost"], answer["more"], answer["total"]), (2, 0, False, 2))
    network, file = answer["denials"]
    keys = {"time", "grate", "rule", "call", "arguments", "error", "program", "cage", "instead", "hint", "id", "command", "times", "message"}
    same("keys", set(network), keys)
    same("network", [network[key] for key in ("id", "command", "call", "program", "hint", "times")],
         [1, ended["id"], "connect", "probe", "--allow 192.0.2.1:22", 1])
    same("file", [file[key] for key in ("id", "arguments", "hint")], [2, f"{world.project}/.envrc", "--allow-name .envrc"])
    holds("message", network["message"], "denied: probe (")
    same("of the end", (ended["denied"], ended["denials"]), (2, answer["denials"]))
    same("none are another's", (denied(session, "r:kept")["denied"], session.ask("denials", id=99)["denials"]), (0, []))
    refused("not a number", lambda: session.ask("denials", id="x"), "id")
    same("not in the list", "denials" in connect(world).ask("list")["commands"][0]["ended"], False)


def denials_are_of_their_command(world: World) -> None:
    """Of those that run at once, and of what they have started."""
    start(world)
    sessions = [connect(world) for _ in range(3)]
    for number, session in enumerate(sessions):
        session.send(do="exec", argv=[PROBE, *[f"c:192.0.2.{number}:{port}" for port in range(1, 6)], f"w:.env{number}rc"])
    for number, session in enumerate(sessions):
        ended = [message for message, _ in session.events()][-1]["ended"]
        hints = [denial["arguments"] for denial in ended["denials"]]
        same("counted", ended["denied"], len(hints))
        same("its own", [hint for hint in hints if f"192.0.2.{number}:" not in hint and f".env{number}rc" not in hint], [])
        found = sessions[0].ask("denials", id=ended["id"])["denials"]
        same("by command", [denial["arguments"] for denial in found], hints)


def the_same_is_counted(world: World) -> None:
    start(world)
    session = connect(world)
    ended = denied(session, *["w:.envrc"] * 50)
    same("counted", ended["denied"], 50)
    found = session.ask("denials")["denials"]
    if len(found) > 10 or sum(denial["times"] for denial in found) != 50:
        raise Failed(f"{len(found)} of 50: {[denial['times'] for denial in found]}")


def denials_are_followed(world: World) -> None:
    start(world)
    follower, other, session = connect(world), connect(world), connect(world)
    denied(session, "c:192.0.2.1:22")
    for client, since in ((follower, 0), (other, 1)):
        client.send(do="denials", follow=True, since=since)
        first = client.receive()[0]
        same("those before", [denial["id"] for denial in first["denials"]], [1] if not since else [])
    ended = denied(session, "c:192.0.2.2:22", "w:.envrc")
    for client in (follower, other):
        got: list[dict] = []
        while len(got) < 2:
            got += client.receive()[0]["denials"]
        same("those after", got, ended["denials"])
    same("ends", follower.ask("anything"), {"done": True})
    denied(session, "c:192.0.2.3:22")
    same("and goes on", follower.ask("denials", since=3)["denials"][0]["hint"], "--allow 192.0.2.3:22")
    other.receive()
    only = connect(world)
    only.send(do="denials", follow=True, since=99, id=99)
    same("of one command", only.receive()[0]["denials"], [])
    denied(session, "c:192.0.2.4:22")
    same("nothing else", only.ask("anything"), {"done": True})


def many_are_bounded(world: World) -> None:
    """Names of the guest's choice, each another, and a follower that does not read."""
    start(world)
    lazy, session = connect(world), connect(world)
    lazy.send(do="denials", follow=True)
    for _ in range(3):
        ended = denied(session, *[f"c:192.0.2.{host}:{port}" for host in range(1, 9) for port in range(1, 90)], max_output=1000)
    same("counted", (ended["denied"], len(ended["denials"])), (712, 16))
    answer = session.ask("denials", count=10_000)
    same("a message", (len(answer["denials"]), answer["more"], answer["total"]), (256, True, 2136))
    if not answer["lost"] or answer["lost"] + 1 != answer["denials"][0]["id"]:
        raise Failed(f"lost: {answer['lost']}, first: {answer['denials'][0]['id']}")
    seen, since = 0, answer["last"]
    while answer["more"]:
        answer = session.ask("denials", since=since)
        since, seen = answer["last"], seen + len(answer["denials"])
    same("all", (since, seen + 256 <= 1024), (2136, True))


def names_are_claims(world: World) -> None:
    """Names with line feeds and escapes, on a terminal and as JSON."""
    start(world)
    session = connect(world)
    name = ".en\nv\x1b[31mrc"
    ended = denied(session, f"w:{name}")
    holds("exact in JSON", ended["denials"][0]["arguments"], name)
    for options in ((), ("--json",)):
        out = world.boot("session", "denials", "one", *options).stdout
        same(f"{options}", (len(out.splitlines()), "\x1b" in out), (1, False))


def the_command_prints_them(world: World) -> None:
    start(world)
    denied(connect(world), "c:192.0.2.1:22", "w:.envrc")
    lines = world.boot("session", "denials", "one").stdout.splitlines()
    same("lines", len(lines), 2)
    holds("line", lines[0], "1 denied: probe (")
    holds("line", lines[1], "to allow it: --allow-name .envrc")
    objects = [json.loads(line) for line in world.boot("session", "denials", "one", "--json", "--since", "1").stdout.splitlines()]
    same("objects", [found["id"] for found in objects], [2])
    follower = world.begin("session", "denials", "one", "--follow", "--since", "1", stdout=subprocess.PIPE)
    holds("before", follower.stdout.readline(), "2 denied: probe (")
    denied(connect(world), "c:192.0.2.7:22")
    holds("after", follower.stdout.readline(), "--allow 192.0.2.7:22")
    follower.send_signal(signal.SIGINT)
    same("ends", follower.wait(SECONDS), -signal.SIGINT)
    same("no session", world.boot("session", "denials", "two").returncode, 125)


TESTS = [each_denial_is_an_object, denials_are_of_their_command, the_same_is_counted, denials_are_followed, many_are_bounded, names_are_claims,
         the_command_prints_them]
