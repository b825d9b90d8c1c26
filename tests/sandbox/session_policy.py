"""Rules of a session that change while its commands run."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator

from second import connect, refused
from sessions import start, until
from world import World, compiled, holds, same

DENIED = "Permission denied"


class Living:
    """A command of a session that goes on, and does one thing after the other."""

    def __init__(self, world: World, name: str = "one") -> None:
        self.child = world.begin("session", "exec", name, "--", "/tool/living.wasm", stdin=subprocess.PIPE)

    def does(self, line: str) -> str:
        self.begins(line)
        return self.said()

    def begins(self, line: str) -> None:
        self.child.stdin.write(f"{line}\n")
        self.child.stdin.flush()

    def said(self) -> str:
        return self.child.stdout.readline().rstrip("\n")

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.child.stdin.close()
        self.child.kill()
        self.child.wait()
        for stream in (self.child.stdout, self.child.stderr):
            stream.close()


@contextlib.contextmanager
def living_in(world: World, name: str = "one") -> Iterator[Living]:
    living = Living(world, name)
    try:
        yield living
    finally:
        living.end()


@contextlib.contextmanager
def listening() -> Iterator[int]:
    """A port of the host's loopback that accepts connections."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()

        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def begin(world: World, *options: str) -> None:
    shutil.copy(compiled("living"), world.folder / "tool" / "living.wasm")
    start(world, *options)


def change(world: World, *words: str, status: int = 0) -> str:
    """A command on the rules of the session; what it says."""
    verb, *rest = words
    done = world.boot("session", verb, "one", *rest)
    same(f"{words}: {done.stderr}", done.returncode, status)
    return done.stdout + done.stderr


def rules(world: World) -> list[tuple[bool, str, bool]]:
    shown = json.loads(change(world, "policy", "--json"))
    return [(rule["allow"], rule["rule"], rule["once"]) for rule in shown["rules"]]


def hosts_are_allowed_and_denied(world: World) -> None:
    """By the commands: for the next call of a program that runs; narrowing too, and rules of the start."""
    with listening() as port, listening() as other:
        begin(world, "--allow", f"127.0.0.1:{other}")
        with living_in(world) as living:
            # Without a rule the sandbox's own loopback is meant, where nobody listens.
            same("before", living.does(f"connect {port}"), "Connection refused")
            change(world, "allow", f"127.0.0.1:{port}")
            same("allowed", living.does(f"connect {port}"), "ok")
            change(world, "deny", f"127.0.0.1:{port}")
            same("denied, by the newer rule", living.does(f"connect {port}"), DENIED)
            same("the other", living.does(f"connect {other}"), "ok")
            same("listed", rules(world), [(False, f"127.0.0.1:{port}", False), (True, f"127.0.0.1:{port}", False)])
            for part in (f"1 allow  127.0.0.1:{port}", f"2 deny   127.0.0.1:{port}", f"allow=out 127.0.0.1 {other}", "loopback=own"):
                holds("shown", change(world, "policy"), part)
            change(world, "revoke", "2")
            same("taken back", living.does(f"connect {port}"), "ok")
            change(world, "revoke", f"127.0.0.1:{port}")
            same("all", living.does(f"connect {port}"), "Connection refused")
            change(world, "deny", f"127.0.0.0/8:{other}")
            same("narrower", living.does(f"connect {other}"), DENIED)
            change(world, "revoke", f"127.0.0.0/8:{other}")
            change(world, "revoke", f"127.0.0.1:{other}")
            same("a rule of the start", living.does(f"connect {other}"), "Connection refused")
            change(world, "allow", f"out tcp 127.0.0.1 {other},{port}")
            same("a rule of the grate", living.does(f"connect {other}"), "ok")
            same("nothing is left", len(rules(world)), 1)


def wrong_rules_change_nothing(world: World) -> None:
    with listening() as port:
        begin(world)
        with living_in(world) as living:
            change(world, "allow", f"127.0.0.1:{port}")
            before = change(world, "policy", "--json")
            for rule, part in (("http://example.org/", "expected a host, not a URL"), ("example.org:99999", "is not a port"), ("out tcp", "no target"),
                               ("out nobody! 80", "not an address and not a host name"), ("10.0.0.1:80/private", "/private is for names"), ("out * 80 once:x y", "too many words")):
                holds(rule, change(world, "allow", rule, status=125), part)
            holds("unknown", change(world, "revoke", "example.org:1", status=125), "there is no such rule")
            holds("no time", change(world, "allow", "a.example", "--for", "0", status=125), "must be more than 0")
            same("rules", change(world, "policy", "--json"), before)
            same("still", living.does(f"connect {port}"), "ok")
            holds("no session", world.boot("session", "allow", "other", "a.example").stderr, "session other")


def once_is_once(world: World) -> None:
    """Twenty threads that race use a rule for one use once."""
    with listening() as port:
        begin(world, "--allow", "127.0.0.1:1")
        with living_in(world) as living:
            for round_ in range(5):
                change(world, "deny", f"127.0.0.1:{port}")
                change(world, "allow", f"127.0.0.1:{port}", "--once")
                # Other rules that come meanwhile do not renew it.
                change(world, "allow", "127.0.0.2:9")
                same("listed", (True, f"127.0.0.1:{port}", True) in rules(world), True)
                same(f"round {round_}", living.does(f"race 20 {port}"), "1 reached")
                change(world, "allow", "127.0.0.3:9")
                same("afterwards", living.does(f"connect {port}"), DENIED)
                same("used", [rule for rule in rules(world) if rule[2]], [])
            change(world, "allow", f"127.0.0.1:{port}", "--once")
            change(world, "revoke", f"127.0.0.1:{port}")
            same("taken back", living.does(f"connect {port}"), "Connection refused")
            holds("nothing to use up", change(world, "deny", "a.example", "--once", status=125), "--once")


def rules_end_in_time(world: World) -> None:
    with listening() as port:
        begin(world)
        with living_in(world) as living:
            change(world, "allow", f"127.0.0.1:{port}", "--for", "2s")
            began = time.monotonic()
            same("at first", living.does(f"connect {port}"), "ok")
            holds("shown", change(world, "policy"), "s more")
            while living.does(f"connect {port}") == "ok":
                time.sleep(0.05)
            same("not too soon", time.monotonic() - began > 1.5, True)
            same("gone", rules(world), [])


def rules_by_the_protocol(world: World) -> None:
    with listening() as port:
        begin(world)
        session = connect(world)
        for verb in ("allow", "deny", "revoke", "policy"):
            same(verb, verb in session.ask("hello")["verbs"], True)
        with living_in(world) as living:
            same("allow", session.ask("allow", rule=f"127.0.0.1:{port}"), {"done": True, "number": 1})
            same("allowed", living.does(f"connect {port}"), "ok")
            same("deny", session.ask("deny", rule=f"127.0.0.1:{port}", **{"for": 60}), {"done": True, "number": 2})
            same("denied", living.does(f"connect {port}"), DENIED)
            shown = session.ask("policy")
            same("policy", [(rule["number"], rule["allow"], rule["once"], rule["seconds"] is not None) for rule in shown["rules"]], [(2, False, False, True), (1, True, False, False)])
            same("start", {"grate": "net", "option": "loopback=own"} in shown["start"], True)
            same("revoke", session.ask("revoke", rule=2), {"done": True})
            same("once", session.ask("allow", rule=f"127.0.0.1:{port}", once=True)["done"], True)
            same("used", (living.does(f"connect {port}"), len(session.ask("policy")["rules"])), ("ok", 1))
            for verb, keys, part in (("allow", {}, "rule: expected a text"), ("allow", {"rule": 7}, "rule: expected a text"), ("allow", {"rule": "a.example", "for": -1}, "for: expected"),
                                     ("allow", {"rule": "a.example", "for": "long"}, "for: expected"), ("deny", {"rule": "a.example", "once": True}, "--once is for rules that allow"),
                                     ("revoke", {"rule": 99}, "there is no such rule"), ("allow", {"rule": "a\0b.example"}, "line breaks"), ("allow", {"rule": "x" * 600}, "is too long")):
                refused(f"{verb} {keys}", lambda verb=verb, keys=keys: session.ask(verb, **keys), part)
            for number in range(250):
                try:
                    session.ask("allow", rule=f"10.0.0.{number}:1")
                except ValueError as why:
                    holds("too many", str(why), "there are 200 rules already")
                    break
            else:
                same("bounded", False, True)
            same("goes on", living.does(f"connect {port}"), "ok")


def no_way_from_inside(world: World) -> None:
    """Programs look for the way by which rules come, and find nothing; rules still come to the grates alone."""
    with listening() as port:
        begin(world)
        with living_in(world) as living, living_in(world) as other:
            same("other", other.does(f"connect {port}"), "Connection refused")
            same("looked", living.does("look"), "looked")
            change(world, "allow", f"127.0.0.1:{port}")
            same("looked again", living.does("look"), "looked")
            same("applies", other.does(f"connect {port}"), "ok")
        # A program of a session has no directory of sessions.
        same("command", world.boot("session", "exec", "one", "--", "/tool/probe", f"r:{world.runtime}/lind/one.sock").stdout.splitlines()[1],
             f"read {world.runtime}/lind/one.sock: No such file or directory")


def files_are_allowed_and_denied(world: World) -> None:
    """Names that the policy protects, one more path, and reading."""
    begin(world)
    same("directory", world.boot("session", "mkdir", "one", "src").returncode, 0)
    top, read_only = world.project, "Read-only file system"
    with living_in(world) as living:
        same("before", [living.does(f"write {top}/{name}") for name in (".envrc", "src/a", ".git/hooks/x")], [read_only, "ok", read_only])
        change(world, "allow", f"write={top}/.envrc")
        same("one name", [living.does(f"write {top}/{name}") for name in (".envrc", ".ENVRC", "src/.envrc", ".bashrc")], ["ok", read_only, read_only, read_only])
        change(world, "allow", "protect=**/.bashrc")
        same("in any directory", [living.does(f"write {top}/{name}") for name in (".bashrc", "src/.bashrc", ".bash_profile")], ["ok", "ok", read_only])
        change(world, "deny", "write=src/**")
        same("narrower", [living.does(f"write {top}/{name}") for name in ("src/a", "src/b", "src/.bashrc", "c")], [read_only, read_only, read_only, "ok"])
        holds("listed", change(world, "policy"), "deny   write=src/**")
        change(world, "revoke", "write=src/**")
        same("as before", living.does(f"write {top}/src/b"), "ok")
        change(world, "deny", "protect=**/Makefile")
        same("protected", [living.does(f"write {top}/{name}") for name in ("Makefile", "src/makefile", "src/other")], [read_only, read_only, "ok"])
        change(world, "allow", f"write={top}/.once", "--once")
        same("once", [living.does(f"write {top}/.once") for _ in range(3)], ["ok", read_only, read_only])
        same("reading", living.does(f"read {top}/kept"), "ok")
        change(world, "deny", "read=kept")
        same("not any more", [living.does(f"read {top}/{name}") for name in ("kept", "src/b", "./src/../kept")], [DENIED, "ok", DENIED])
        change(world, "allow", f"read={top}/kept", "--for", "1s")
        same("for a while", living.does(f"read {top}/kept"), "ok")
        until("it ends", lambda: living.does(f"read {top}/kept") == DENIED)
        change(world, "revoke", "read=kept")
        same("again", living.does(f"read {top}/kept"), "ok")
        for rule, part in (("write=../x", "write"), ("read=", "read"), ("protect=/etc", "must be relative to each volume"), ("protect=a/../b", "without `..`")):
            holds(rule, change(world, "allow", rule, status=125), part)


def limits_change(world: World) -> None:
    """To more and to less, with what is used already counted."""
    begin(world, "--memory", "512M", "--files", "600", "--cages", "40")
    with living_in(world) as living:
        same("at first", [living.does("grab 256"), living.does("open 100"), living.does("fork 5")], ["ok", "100 open", "5 forked"])
        change(world, "allow", "memory=128M")
        same("less memory", living.does("grab 256"), "Out of memory")
        change(world, "allow", "memory=1G")
        same("more", living.does("grab 600"), "ok")
        before = int(living.does("open 1000").split()[0])
        change(world, "allow", "files=100")
        same("fewer files", int(living.does("open 1000").split()[0]) < 100 < before, True)
        change(world, "allow", "cages=4", "--for", "2s")
        same("fewer processes", int(living.does("fork 10").split()[0]) < 4, True)
        until("for a while", lambda: living.does("fork 10") == "10 forked")
        change(world, "revoke", "files=100")
        same("as at the start", int(living.does("open 1000").split()[0]), before)
        for rule, part in (("memory=much", "memory"), ("disk=1M", "there is no limit `write.file` from the start")):
            holds(rule, change(world, "allow", rule, status=125), part)
        holds("deny", change(world, "deny", "memory=1G", status=125), "a limit is set by allow")
        holds("once", change(world, "allow", "memory=1G", "--once", status=125), "--once is for hosts and changes of files")
        same("unchanged", living.does("grab 600"), "ok")


TESTS = [hosts_are_allowed_and_denied, wrong_rules_change_nothing, once_is_once, rules_end_in_time, files_are_allowed_and_denied, limits_change, rules_by_the_protocol, no_way_from_inside]
