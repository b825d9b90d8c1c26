"""Calls that wait until somebody says whether they are denied (--ask)."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator

import why
from second import connect, refused
from session_client import Session
from session_policy import DENIED, Living, begin, change, listening, living_in
from world import BOOT, Failed, World, holds, same


def follows(world: World, name: str = "one") -> Session:
    session = connect(world, name)
    same("none yet", session.ask("questions", follow=True), {"questions": []})
    return session


def question(session: Session) -> dict:
    """The next call that waits."""
    while True:
        message, _ = session.receive()
        if "question" in message:
            return message["question"]


def settled(session: Session) -> tuple[int, str]:
    while True:
        message, _ = session.receive()
        if "settled" in message:
            return message["settled"]["number"], message["settled"]["answer"]


def answers(world: World) -> None:
    """Yes for once, for a program, for the session, and no; other calls go on meanwhile."""
    with listening() as port:
        begin(world, "--ask=60", "--allow", "127.0.0.1:1")
        change(world, "deny", f"127.0.0.1:{port}")
        asked, answering = follows(world), connect(world)
        with living_in(world) as living, living_in(world) as other:
            for answer, said in (("once", "ok"), ("once", "ok")):
                living.begins(f"connect {port}")
                one = question(asked)
                same("about", (one["grate"], one["arguments"], one["program"]), ("net", f"connect tcp 127.0.0.1:{port}", "living"))
                same("left", 0 < one["seconds"] <= 60, True)
                # Another program is not kept waiting, nor another client.
                same("others go on", other.does("open 3"), "3 open")
                same("listed", [each["number"] for each in answering.ask("questions")["questions"]], [one["number"]])
                same("answer", answering.ask("answer", number=one["number"], answer=answer), {"done": True})
                same(answer, living.said(), said)
                same("settled", settled(asked), (one["number"], "yes"))
            # Once is once.
            living.begins(f"connect {port}")
            number = question(asked)["number"]
            holds("by the command", change(world, "questions"), f"{number} waits for")
            change(world, "answer", str(number), "program")
            same("program", living.said(), "ok")
            same("and again", living.does(f"connect {port}"), "ok")
            # Another program is another.
            other.begins(f"connect {port}")
            change(world, "answer", str(question(asked)["number"]), "no")
            same("no", other.said(), DENIED)
            same("no, again", other.does(f"connect {port}"), DENIED)
            with living_in(world) as third, living_in(world) as fourth:
                third.begins(f"connect {port}")
                answering.ask("answer", number=question(asked)["number"], answer="session")
                same("session", third.said(), "ok")
                same("for others", fourth.does(f"connect {port}"), "ok")
                same("a newer answer counts", other.does(f"connect {port}"), "ok")
            for keys, part, errno in (({"number": 99, "answer": "once"}, "question 99 does not wait", "ESRCH"),
                                      ({"number": number, "answer": "once"}, "does not wait", "ESRCH"),
                                      ({"number": 1, "answer": "yes"}, "answer: expected once, program, session or no", None),
                                      ({"answer": "no"}, "number: expected", None)):
                refused(f"{keys}", lambda keys=keys: answering.ask("answer", **keys), part, errno)
            settled(asked)
            same("ends the following", asked.ask("list"), {"done": True})


def files_wait_too(world: World) -> None:
    begin(world, "--ask")
    asked = follows(world)
    with living_in(world) as living:
        for name, answer, said in ((".envrc", "once", "ok"), (".bashrc", "no", "Read-only file system")):
            living.begins(f"write {world.project}/{name}")
            one = question(asked)
            same("about", (one["grate"], one["arguments"]), ("write_filter", f"{world.project}/{name}"))
            change(world, "answer", str(one["number"]), answer)
            same(answer, living.said(), said)
            same("made", (world.project / name).exists(), answer == "once")


def time_is_up(world: World) -> None:
    """Without an answer the call is denied as without it; the line on standard error says what is to be done."""
    with listening() as port:
        begin(world, "--ask=2", "--allow", "127.0.0.1:1")
        change(world, "deny", f"127.0.0.1:{port}")
        asked = follows(world)
        with living_in(world) as living:
            began = time.monotonic()
            living.begins(f"connect {port}")
            number = question(asked)["number"]
            line = living.child.stderr.readline()
            for part in ("denied: living (", f"connect tcp 127.0.0.1:{port}", "waiting for an answer", f"for 2 s: lind-boot session answer one {number} once|program|session|no"):
                holds("line", line, part)
            same("denied", living.said(), DENIED)
            same("in time", 1.8 < time.monotonic() - began < 30, True)
            same("settled", settled(asked), (number, "late"))
            holds("too late", change(world, "answer", str(number), "once", status=125), "does not wait for an answer")
            holds("as without it", living.child.stderr.readline(), f"connect tcp 127.0.0.1:{port}")


def ends_while_waiting(world: World) -> None:
    """A signal, the end of the program, and the end of the session end the wait."""
    with listening() as port:
        begin(world, "--ask=600", "--allow", "127.0.0.1:1")
        change(world, "deny", f"127.0.0.1:{port}")
        asked = follows(world)
        with living_in(world) as living:
            living.begins(f"interrupted {port}")
            number = question(asked)["number"]
            same("a signal", living.said(), "Interrupted system call")
            same("settled", settled(asked), (number, "late"))
        living = Living(world)
        living.begins(f"connect {port}")
        number = question(asked)["number"]
        began = time.monotonic()
        living.child.send_signal(signal.SIGKILL)
        living.end()
        same("killed", settled(asked), (number, "late"))
        same("at once", time.monotonic() - began < 20, True)
        with living_in(world) as last:
            last.begins(f"connect {port}")
            question(asked)
            began = time.monotonic()
            same("stop", world.boot("session", "stop", "one").returncode, 0)
            same("stops", time.monotonic() - began < 20, True)
            last.child.wait(20)


def so_many_and_no_more(world: World) -> None:
    """A program that fills the table is denied the rest, and others are answered."""
    with listening() as port:
        begin(world, "--ask=600", "--allow", "127.0.0.1:1")
        change(world, "deny", f"127.0.0.1:{port}")
        asked, answering = follows(world), connect(world)
        with living_in(world) as living:
            living.begins(f"race 60 {port}")
            numbers = [question(asked)["number"] for _ in range(32)]
            time.sleep(0.5)
            same("bounded", len(answering.ask("questions")["questions"]), 32)
            for number in numbers:
                answering.ask("answer", number=number, answer="once")
            same("those that waited", living.said(), "32 reached")


def names_with_escapes(world: World) -> None:
    """Texts of a program reach neither the terminal nor the protocol as it wrote them."""
    begin(world, "--ask=600")
    asked = follows(world)
    with living_in(world) as living:
        living.begins(f"write {world.project}/.a\x1b]0;t\x07\u202e")
        number = question(asked)["number"]
        shown = change(world, "questions")
        same("plain", [c for c in shown if c != "\n" and not c.isprintable()], [])
        shown = change(world, "questions", "--json")
        same("json", [c for c in shown if c != "\n" and not c.isprintable()], [])
        change(world, "answer", str(number), "no")
        living.said()
        same("line", [c for c in living.child.stderr.readline() if c != "\n" and not c.isprintable()], [])


def no_questions_of_programs(world: World) -> None:
    """A program that reports a denial as grates do is not asked about: its text could say one thing and be remembered as another."""
    begin(world, "--ask=600")
    with living_in(world) as living:
        same("looked", living.does("look"), "looked")
    same("none", connect(world).ask("questions"), {"questions": []})


@contextlib.contextmanager
def at_a_terminal(world: World, *words: str) -> Iterator[int]:
    master, terminal = pty.openpty()
    child = subprocess.Popen([BOOT, "session", *words], cwd=world.project, env=world.known, user=world.user, group=world.user,
                             stdin=terminal, stdout=terminal, stderr=terminal)
    os.close(terminal)
    try:
        yield master
    finally:
        child.kill()
        child.wait()
        os.close(master)


def until(master: int, part: str) -> str:
    text, end = "", time.monotonic() + 30
    while part not in text:
        if time.monotonic() > end or not select.select([master], [], [], 30)[0]:
            raise Failed(f"{part!r} is not in {text!r}")
        text += os.read(master, 4096).decode(errors="replace")
    return text


def asked_at_a_terminal(world: World) -> None:
    with listening() as port:
        begin(world, "--ask=600", "--allow", "127.0.0.1:1")
        change(world, "deny", f"127.0.0.1:{port}")
        with living_in(world) as living, at_a_terminal(world, "denials", "--follow", "one") as master:
            living.begins(f"connect {port}")
            until(master, "n = deny it?")
            os.write(master, b"x\n")
            until(master, "n = deny it?")
            os.write(master, b"o\n")
            same("allowed", living.said(), "ok")
            living.begins(f"connect {port}")
            until(master, "n = deny it?")
            os.write(master, b"no\n")
            same("denied", living.said(), DENIED)


def a_run_asks(world: World) -> None:
    """`run --ask` is answered as a session is."""
    with listening() as port:
        child = world.begin("run", "--ask=60", "-v", str(world.folder / "tool"), "--allow", "127.0.0.1:1", "--", str(world.folder / "tool" / "probe.wasm"),
                            f"c:{port}")
        name = f"run-{child.pid}"
        end = time.monotonic() + 60
        while name not in world.boot("session", "ls").stdout and time.monotonic() < end:
            time.sleep(0.05)
        child.wait(60)
        same("the sandbox's own", child.stdout.readline() != "", True)
        for stream in (child.stdout, child.stderr):
            stream.close()
    target = world.project / ".envrc"
    child = world.begin("run", "--ask=60", "-v", ".", "--", str(world.folder / "tool" / "probe.wasm"), f"w:{target}")
    name = f"run-{child.pid}"
    line = child.stderr.readline()
    while "waiting for an answer" not in line and line:
        line = child.stderr.readline()
    holds("line", line, f"lind-boot session answer {name} 1 once|program|session|no")
    same("refuses commands", "not ready" in world.boot("session", "exec", name, "--", "/bin/true").stderr, True)
    done = world.boot("session", "answer", name, "1", "once")
    same(f"answer: {done.stderr}", done.returncode, 0)
    out, _ = child.communicate(timeout=60)
    holds("written", out, "ok")
    end = time.monotonic() + 20
    while (left := list((world.runtime / "lind").glob("run-*"))) and time.monotonic() < end:
        time.sleep(0.01)
    same("its socket goes with it", left, [])
    same("there", target.exists(), True)


def without_it_nothing_waits(world: World) -> None:
    begin(world)
    holds("none", change(world, "questions", status=125), "it was started without --ask")
    holds("no answer", change(world, "answer", "1", "once", status=125), "without --ask")


TESTS = [answers, files_wait_too, time_is_up, ends_while_waiting, so_many_and_no_more, names_with_escapes, no_questions_of_programs, asked_at_a_terminal, a_run_asks, without_it_nothing_waits, *why.TESTS]
