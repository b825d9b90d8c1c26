#!/usr/bin/env python3
"""Types at an interactive shell on a pseudoterminal, first at the host's and then at the same in a cage, and looks at what
comes: job control, ^C, ^Z, the window's size.

    tests/ports/interactive.py -- SHELL [ARGS]     one that finds `typist` on its path
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = 20.0


class Terminal:
    """A program at a terminal of its own."""

    def __init__(self, command: list[str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="dumb", PS1="[$?] ready> ")
            os.execvp(command[0], command)
        self.resize(24)
        self.seen = self.before = ""

    def resize(self, rows: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def until(self, pattern: str) -> bool:
        """Whether `pattern` comes; what comes up to it is forgotten."""
        end = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern, self.seen, re.DOTALL)
            if found:
                self.before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
                return True
            if time.monotonic() > end:
                return False
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    return False

    def end(self) -> int | None:
        """How it ended, if it did."""
        stop = time.monotonic() + PATIENCE
        while time.monotonic() < stop:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


# Before a pattern: typed again until it comes, since nobody says when.
AGAIN = "again: "

# The typed text and the expected output. Each waits for what is sure to come before the next is
# typed.
STEPS: list[tuple[str, str, str]] = [
    ("a prompt", "", r"\] ready> "),
    ("a command", "echo se''en\n", r"seen\r\n.*\[0\] ready> "),
    ("a program in front", "typist\n", r"typist ready"),
    ("reads what is typed", "hello\n", r"24 rows, as ever: HELLO"),
    ("^Z", "\x1a", r"Stopped.*ready> "),
    ("jobs", "jobs\n", r"Stopped.*ready> "),
    ("fg", "fg\n", r"typist\r\n"),
    ("reads again", "again\n", r"AGAIN"),
    ("^D", "\x04", r"typist done.*\[0\] ready> "),
    ("^C", "typist\n", r"typist ready"),
    ("ends it", "\x03", r"\[130\] ready> "),
    ("a loop", "typist spin\n", r"spinning"),
    ("ends at ^C", "\x03", r"\[130\] ready> "),
    ("a loop to stop", "typist spin\n", r"spinning"),
    ("stops at ^Z", "\x1a", r"Stopped.*ready> "),
    ("goes on behind", "bg\n", r"ready> "),
    ("runs", "jobs\n", r"Running.*ready> "),
    ("is killed", "kill %1; wait\n", r"ready> "),
    ("reading behind", "typist &\n", r"typist ready"),
    ("stops it", "jobs\n", AGAIN + r"Stopped.*ready> "),
    ("in front", "fg\n", r"typist\r\n"),
    ("it reads", "now\n", r"NOW"),
    ("^\\", "\x1c", r"\[131\] ready> "),
    # Both: a shell's child that has not started its program yet ignores ^Z, as the shell does.
    ("a pipeline", "typist | typist\n", r"typist ready.*typist ready"),
    ("is one job", "\x1a", r"Stopped.*ready> "),
    ("that goes on", "fg\n", r"typist\r\n"),
    ("and ends", "\x04", r"typist done.*\[0\] ready> "),
    ("a handler", "trap 'echo cau''ght' INT; typist\n", r"typist ready"),
    ("does not go along", "\x03", r"ready> "),
    ("is called", "kill -INT $$\n", r"caught.*ready> "),
    ("the end", "exit 7\n", r""),
]

def play(command: list[str]) -> list[str]:
    """The steps that went wrong."""
    terminal = Terminal(command)
    wrong = []
    for what, typed, pattern in STEPS:
        terminal.type(typed)
        while pattern.startswith(AGAIN) and terminal.until(r"ready> ") and "Stopped" not in terminal.before:
            terminal.type(typed)
        if pattern.startswith(AGAIN):
            continue
        if not terminal.until(pattern):
            wrong.append(f"{what}: {pattern!r} did not come, but {terminal.seen!r}")
            break
    if not wrong:
        wrong += resized(command)
    else:
        terminal.type("\x03\nexit 7\n")
    status = terminal.end()
    if not wrong and status != 7:
        wrong.append(f"it ended with {status}, not 7")
    return wrong


def resized(command: list[str]) -> list[str]:
    """A window that changes its size tells the program in front."""
    terminal = Terminal(command)
    steps_done = terminal.until(r"\] ready> ")
    terminal.type("typist\n")
    steps_done = steps_done and terminal.until("typist ready")
    terminal.resize(33)
    # The signal may take a moment.
    for _ in range(100):
        terminal.type("line\n")
        if not terminal.until(r"rows, (as ever|resized): LINE\r\n"):
            steps_done = False
            break
        terminal.type("line\n")
        if terminal.until(r"33 rows, resized: LINE\r\n"):
            break
    terminal.type("\x04exit 7\n")
    status = terminal.end()
    return [] if steps_done and status == 7 else [f"the size of the window: {terminal.seen!r}, ended with {status}"]


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[1] != "--":
        print(__doc__, file=sys.stderr)
        return 2
    wrong = play(sys.argv[2:])
    for line in wrong:
        print("FAILED interactive:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
