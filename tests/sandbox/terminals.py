"""The terminal of a command of a session, beside the one of its client: keys that were typed early, and lines that are not complete."""

from __future__ import annotations

import fcntl
import os
import select
import signal

from sessions import at_terminal, read_until, start, until
from world import World, holds, same

# The request for the terminal behind a master (linux/tty.h).
TIOCGPTPEER = 0x5441

# Typed texts, and the sizes of the reads by which a command that reads later gets it.
EARLY = [(b"\x04", "0"), (b"ab\n\x04", "3 0"), (b"ab\x04c\n\x04", "2 2 0"), (b"a\n" * 20 + b"\x04", "2 " * 20 + "0")]


def what_was_typed_before_it_reads(world: World) -> None:
    """Each line, and each ^D, is then what it would have been at the command's own terminal."""
    start(world)
    for typed, sizes in EARLY:
        child, master = at_terminal(world, "session", "exec", "one", "/tool/command", "late")
        read_until(master, b"ready")
        slave = fcntl.ioctl(master, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
        os.write(master, typed)
        until("it is typed", lambda slave=slave: select.select([slave], [], [], 0)[0])
        (world.project / "go").touch()
        holds(f"{typed!r}", read_until(master, b"."), f"took {sizes}.")
        same("end", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        (world.project / "go").unlink()
        os.close(slave)
        os.close(master)


def a_line_that_is_written_over(world: World) -> None:
    """The cursor is at its beginning when the command takes keys, when it stops, and when something is said about its end."""
    start(world)
    child, master = at_terminal(world, "session", "exec", "one", "/tool/command", "percent", "read")
    read_until(master, b"50%\r")
    os.write(master, b"x\r")
    same("it goes on", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
    os.close(master)
    child, master = at_terminal(world, "session", "exec", "one", "/tool/command", "percent", "wait")
    read_until(master, b"50%")
    os.write(master, b"\x1a")
    until("it stops", lambda: os.waitpid(child, os.WUNTRACED | os.WNOHANG)[0])
    # Its output may still be on its way.
    read_until(master, b"\r")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(master)
    child, master = at_terminal(world, "session", "exec", "--cpu", "200ms", "one", "/tool/command", "percent", "spin")
    text = read_until(master, b"cpu")
    same(f"before {text!r}", text[:4], "50%\r")
    os.waitpid(child, 0)
    os.close(master)


TESTS = [what_was_typed_before_it_reads, a_line_that_is_written_over]
