"""`lind-boot session`: one sandbox for many commands."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time
from pathlib import Path

from world import BOOT, NOBODY, SECONDS, Failed, Skipped, World, holds, needs_tools, same


def start(world: World, *options: str, name: str = "one") -> None:
    done = world.boot("session", "start", name, "-v", ".", "-v", f"{world.folder}/tool:/tool:ro", *options)
    if done.returncode:
        raise Failed(f"start: {done.returncode} {done.stderr}")


def execute(world: World, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return world.boot("session", "exec", "one", "--", "/tool/command", *words, **more)


def begin(world: World, *words: str, options: tuple[str, ...] = (), **more: object) -> subprocess.Popen[str]:
    """A command that says when it is ready."""
    child = world.begin("session", "exec", *options, "one", "/tool/command", *words, **more)
    same("ready", child.stdout.readline(), "ready\n")
    return child


def listed(world: World) -> list[dict]:
    return json.loads(world.boot("session", "ls", "--json").stdout)


def until(what: str, holds_now: object) -> None:
    end = time.monotonic() + SECONDS
    while not holds_now():
        if time.monotonic() > end:
            raise Failed(f"never: {what}")
        time.sleep(0.02)


def commands_end_as_if_run_directly(world: World) -> None:
    start(world)
    with (world.project / "in").open("w+") as file:
        file.write("some text\n" * 1000)
        file.seek(0)
        done = execute(world, "copy", stdin=file)
    same("copy", (done.returncode, done.stdout, done.stderr), (7, "some text\n" * 1000, "to stderr\n"))
    same("signal", execute(world, "die", "9").returncode, 137)
    same("signal", execute(world, "die", "6").returncode, 134)
    done = world.boot("session", "exec", "one", "no-such-command")
    same("missing", done.returncode, 127)
    holds("missing", done.stderr, "no-such-command")
    done = world.run("--session", "one", "-e", "A=1", "/tool/command", "cwd")
    same("run --session", (done.returncode, done.stdout), (0, f"{world.project} 1 - -\n"))


def directory_and_environment(world: World) -> None:
    start(world, "-e", "A=session", "-e", "B=session")
    (world.project / "sub").mkdir()
    words = ["session", "exec", "-e", "B=own", "one", "/tool/command", "cwd"]
    same("sub", world.boot(*words, cwd=world.project / "sub", TERM="t", A="x").stdout, f"{world.project}/sub session own t\n")
    same("outside", world.boot(*words, cwd=Path("/")).stdout, f"{world.project} session own -\n")
    same("-w", world.boot("session", "exec", "-w", "/tmp", "one", "/tool/command", "cwd").stdout, "/tmp session session -\n")
    done = world.boot("session", "exec", "-w", "/nowhere", "one", "/tool/command", "cwd")
    same("nowhere", done.returncode, 127)
    holds("nowhere", done.stderr, "cannot enter the working directory /nowhere: ")
    same("relative", world.boot("session", "exec", "-w", "sub/../sub", "one", "/tool/command", "cwd", cwd=Path("/")).stdout,
         f"{world.project}/sub session session -\n")
    done = world.boot("session", "exec", "-w", "no\x1b[2J", "one", "/tool/command", "cwd")
    holds("relative, nowhere", done.stderr, f"cannot enter the working directory {world.project}/no\\u{{1b}}[2J: ")


def files_are_the_commands_own(world: World) -> None:
    start(world)
    same("only three", execute(world, "files").stdout, "files 0\n")
    with (world.folder / "secret").open() as file:
        same("no directory", execute(world, "copy", stdin=os.open(world.home, os.O_RDONLY)).returncode, 7)
        same("a file from outside", execute(world, "copy", stdin=file).stdout, "secret")


def signals_go_to_the_command(world: World) -> None:
    start(world)
    for number in [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1]:
        child = begin(world, "catch")
        child.send_signal(number)
        out, _ = child.communicate(timeout=SECONDS)
        same("caught", (child.returncode, out), (5, f"caught {int(number)}\n"))
    child = begin(world, "wait")
    child.send_signal(signal.SIGTERM)
    same("ended", child.wait(SECONDS), 128 + 15)
    child, other = begin(world, "catch"), begin(world, "wait")
    identity = next(command["id"] for command in listed(world)[0]["commands"] if "catch" in command["line"])
    same("signal", world.boot("session", "signal", "one", "USR1", "--id", str(identity)).returncode, 0)
    same("one", child.wait(SECONDS), 5)
    same("signal", world.boot("session", "signal", "one", "SIGTERM").returncode, 0)
    same("all", other.wait(SECONDS), 128 + 15)
    same("none", world.boot("session", "signal", "one", "TERM", "--id", "99").returncode, 125)


def a_client_that_dies_takes_its_command_along(world: World) -> None:
    start(world)
    child = begin(world, "wait")
    same("listed", len(listed(world)[0]["commands"]), 1)
    child.kill()
    child.wait()
    until("the command ends", lambda: not listed(world)[0]["commands"])
    same("and nothing else", execute(world, "cwd").returncode, 0)


def a_session_that_dies_ends_its_commands(world: World) -> None:
    start(world)
    child = begin(world, "wait")
    os.kill(listed(world)[0]["pid"], signal.SIGKILL)
    same("status", child.wait(SECONDS), 125)
    holds("says so", child.stderr.read(), "session one has ended")
    same("nothing is left", listed(world), [])
    start(world)
    same("again", execute(world, "cwd").returncode, 0)


def stop_ends_everything(world: World) -> None:
    start(world)
    same("twice", world.boot("session", "start", "one").returncode, 125)
    child = begin(world, "wait")
    spinning = world.begin("session", "exec", "one", "/tool/command", "spin")
    until("both run", lambda: len(listed(world)[0]["commands"]) == 2)
    same("stop", world.boot("session", "stop", "one").returncode, 0)
    same("ends", (child.wait(SECONDS), spinning.wait(SECONDS)), (128 + 15, 128 + 15))
    same("nothing is left", listed(world), [])
    done = execute(world, "cwd")
    same("no session", done.returncode, 125)
    holds("says so", done.stderr, "lind-boot session start one")


def who_is_asked_to_end_has_five_seconds(world: World) -> None:
    """A command whose client is asked, and a session: what they do with SIGTERM makes no difference."""
    start(world)
    child, other = begin(world, "deaf"), begin(world, "deaf")
    child.send_signal(signal.SIGTERM)
    same("one command", child.wait(SECONDS), 128 + 15)
    until("the other goes on", lambda: len(listed(world)[0]["commands"]) == 1)
    os.kill(listed(world)[0]["pid"], signal.SIGTERM)
    same("the session", other.wait(SECONDS), 125)
    same("nothing is left", listed(world), [])


def idle_sessions_end(world: World) -> None:
    start(world, "--idle", "3s")
    child = begin(world, "wait")
    time.sleep(4)
    same("used", len(listed(world)), 1)
    child.kill()
    child.wait()
    until("it ends", lambda: not (world.runtime / "lind" / "one.sock").exists() or not connects(world))
    holds("log", world.boot("session", "logs", "one").stdout, "--idle")


def connects(world: World) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(world.runtime / "lind" / "one.sock")) == 0


def limits_of_one_command(world: World) -> None:
    start(world)
    done = world.boot("session", "exec", "--timeout", "300ms", "one", "/tool/command", "spin")
    same("timeout", done.returncode, 124)
    holds("says so", done.stderr, "--timeout")
    done = world.boot("session", "exec", "--cpu", "200ms", "one", "/tool/command", "spin")
    same("cpu", done.returncode, 137)
    same("others go on", execute(world, "cwd").returncode, 0)
    same("not of the session", world.boot("run", "--session", "one", "--network", "host", "true").returncode, 125)


def no_shell_goes_on_after_the_time(world: World) -> None:
    needs_tools()
    start(world)
    for number in range(30):
        done = world.boot("session", "exec", "--timeout", "100ms", "one", "bash", "-c", "sleep 100; echo goes on")
        same(f"run {number}", (done.returncode, done.stdout), (124, ""))


def rules_hold(world: World) -> None:
    start(world)
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = world.boot("session", "exec", "one", "/tool/probe", f"c:{server.getsockname()[1]}", "w:.git/hooks/x", f"r:{world.folder}/secret")
    ends = [line.rsplit(": ", 1)[1] for line in done.stdout.splitlines()[1:]]
    same("ends", ends, ["Connection refused", "Read-only file system", "No such file or directory"])


def a_hundred_at_once(world: World) -> None:
    start(world)
    children = [world.begin("session", "exec", "one", "/tool/command", "copy", stdin=subprocess.PIPE) for _ in range(100)]
    for number, child in enumerate(children):
        out, err = child.communicate(f"{number}\n", timeout=SECONDS)
        same("each has its own", (child.returncode, out, err), (7, f"{number}\n", "to stderr\n"))
    same("none is left", listed(world)[0]["commands"], [])


def at_terminal(world: World, *words: str) -> tuple[int, int]:
    """`lind-boot session exec` with these words on a pseudoterminal: its process and the master."""
    child, master = pty.fork()
    if not child:
        os.chdir(world.project)
        resize(0, 24, 80)
        if world.user is not None:
            os.setgroups([])
            os.setgid(world.user)
            os.setuid(world.user)
        os.execve(BOOT, [BOOT, *words], world.known)
    return child, master


def settings_of_a_new_terminal() -> list[int]:
    """The modes that a client finds on the terminal of `at_terminal`, and may have changed by now."""
    ends = pty.openpty()
    modes = termios.tcgetattr(ends[0])[:4]
    for end in ends:
        os.close(end)
    return modes


def a_terminal(world: World) -> None:
    """^C, the size of the window and a hangup arrive where they belong."""
    start(world)
    for act, status in [("unread", 130), ("intr", 130), ("size", 5), ("stop", 128 + 9), ("term", 128 + 15)]:
        keys = [] if act == "unread" else ["keys"]
        child, master = at_terminal(world, "session", "exec", "one", "/tool/command", "terminal", *keys)
        before = settings_of_a_new_terminal()
        text = read_until(master, b"ready")
        holds(act, text, "terminal 1 front 1 session 1 size 24x80")
        if act == "unread":
            same("typed text is for others", is_raw(master), False)
        else:
            until("typed text goes to the command", lambda: is_raw(master))
        if act in ("intr", "unread"):
            os.write(master, b"\x03")
        elif act == "size":
            resize(master, 30, 90)
        elif act == "term":
            os.kill(child, signal.SIGTERM)
        else:
            os.write(master, b"\x1a")
            until("it stops", lambda: os.waitpid(child, os.WUNTRACED | os.WNOHANG)[0])
            same("settings of who has it meanwhile", termios.tcgetattr(master)[:4], before)
            os.kill(child, signal.SIGCONT)
            until("typed text goes to the command", lambda: is_raw(master))
            world.boot("session", "signal", "one", "KILL")
        ends: list[int] = []
        until(f"{act}: it ends", lambda child=child, ends=ends: ends.extend(status for pid, status in [os.waitpid(child, os.WNOHANG)] if pid) or ends)
        end = os.waitstatus_to_exitcode(ends[0])
        same(f"{act}: settings", termios.tcgetattr(master)[:4], before)
        os.close(master)
        same(act, end, status)


def is_raw(master: int) -> bool:
    return not termios.tcgetattr(master)[3] & termios.ICANON


def what_is_typed_and_shown(world: World) -> None:
    """The command's terminal edits and shows typed text; pipes may take its other ends, and all bytes arrive."""
    start(world)
    child, master = at_terminal(world, "session", "exec", "one", "/tool/command", "line")
    read_until(master, b"ready")
    os.write(master, "gr\xfcn\x7fn\r".encode())
    holds("edited and shown", read_until(master, b"got gr\xc3\xbcn\r\n"), "gr\xfcn")
    same("end", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
    os.close(master)
    with (world.project / "much").open("wb") as file:
        file.write(b"0123456789\n" * 50_000 + b"the end\n")
    master, slave = pty.openpty()
    with (world.project / "much").open("rb") as given:
        child = world.begin("session", "exec", "one", "/tool/command", "copy", stdin=given, stdout=slave, stderr=slave)
        os.close(slave)
        text = read_until(master, b"to stderr")
    same("all of it", (text.count("0123456789\r\n"), child.wait(SECONDS)), (50_000, 7))
    os.close(master)


def a_terminal_that_nobody_reads(world: World) -> None:
    """Output waits there, and SIGTERM ends the client all the same."""
    start(world)
    with (world.project / "much").open("wb") as file:
        file.write(b"0123456789\n" * 100_000)
    master, slave = pty.openpty()
    if world.user is not None:
        os.fchown(slave, world.user, -1)
    with (world.project / "much").open("rb") as given:
        child = world.begin("session", "exec", "one", "/tool/command", "copy", stdin=given, stdout=slave, stderr=slave)
    os.close(slave)

    def is_full() -> bool:
        before = unread(master)
        time.sleep(0.2)
        return 0 < before == unread(master)

    try:
        until("there is no room", is_full)
        child.send_signal(signal.SIGTERM)
        same("status", child.wait(SECONDS), 128 + signal.SIGTERM)
    finally:
        child.kill()
        os.close(master)


def unread(file: int) -> int:
    """How many bytes can be read at once."""
    return int(struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, bytes(4)))[0])


def a_terminal_ends_with_its_command(world: World) -> None:
    """A process that a command leaves behind neither reads what is typed afterwards, nor writes,
    nor changes settings; `run` leaves nothing behind."""
    start(world)
    for leads in [(), ("x",)]:
        child, master = at_terminal(world, "session", "exec", "one", "/tool/command", "steal", *leads)
        before = termios.tcgetattr(master)
        read_until(master, b"left")
        same("end", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        os.write(master, b"secret\r")
        until("it has tried", lambda: (world.project / "stolen").exists())
        same("the output of the thief", (world.project / "stolen").read_text(), "settings I/O error\nwrite I/O error\nread 0\ntty 0\n")
        (world.project / "stolen").unlink()
        same("settings", termios.tcgetattr(master)[:4], before[:4])
        # The terminal itself may echo the typed text before it goes. Nothing else is shown.
        same("nothing more is shown", rest(master).replace("secret", "").strip(), "")
        os.close(master)
    child, master = at_terminal(world, "run", "-v", ".", "-v", f"{world.folder}/tool:/tool:ro", "/tool/command", "steal", "x")
    read_until(master, b"left")
    same("end", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
    os.close(master)
    same("nothing of a run is left", (world.project / "stolen").exists(), False)


def a_terminal_is_its_commands_own(world: World) -> None:
    """No other command opens it; and it goes with a client that is killed."""
    start(world)
    child, master = at_terminal(world, "session", "exec", "one", "/tool/command", "terminal")
    read_until(master, b"ready")
    pid = str(listed(world)[0]["commands"][0]["pid"])
    same("another command", execute(world, "peek", pid).stdout, "none\n")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(master)
    until("the command ends", lambda: not listed(world)[0]["commands"])
    if world.user is not None and os.geteuid() == 0:
        return
    # A front end that hands over the terminal itself is refused.
    handed, slave = pty.openpty()
    with socket.socket(socket.AF_UNIX) as front:
        front.connect(str(world.runtime / "lind" / "one.sock"))
        text = json.dumps({"lind": 1, "do": "exec", "argv": ["/tool/command"]}).encode()
        socket.send_fds(front, [len(text).to_bytes(4, "little") + text], [slave, slave, slave])
        holds("refused", front.recv(1000).decode(), "descriptor 0 is a terminal")
    os.close(handed)
    os.close(slave)


def one_of_a_pipeline_has_the_keys(world: World) -> None:
    """The first takes them. Other commands leave the terminal alone, and in the end its settings are those from before."""
    start(world)
    if world.user is not None and os.geteuid() == 0:
        raise Skipped("the shell would be root's")
    child, master = pty.fork()
    if not child:
        os.chdir(world.project)
        word = f"{BOOT} session exec one /tool/command"
        os.execve("/bin/sh", ["sh", "-c", f"{word} line | {{ sleep 1; {word} copy; }}"], world.known)
    before = termios.tcgetattr(master)
    read_until(master, b"ready")
    until("one has them", lambda: is_raw(master))
    os.write(master, b"word\r")
    read_until(master, b"got word")
    os.waitpid(child, 0)
    same("settings", termios.tcgetattr(master)[:4], before[:4])
    os.close(master)


def resize(master: int, rows: int, columns: int) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def rest(master: int) -> str:
    """All that can be read now."""
    text = b""
    try:
        while select.select([master], [], [], 0)[0]:
            text += os.read(master, 1024)
    except OSError:
        pass  # the other side has gone
    return text.decode()


def read_until(master: int, part: bytes) -> str:
    text = b""
    while part not in text:
        if not select.select([master], [], [], SECONDS)[0]:
            raise Failed(f"nothing more after {text!r}")
        text += os.read(master, 1024)
    return text.decode()


def not_for_others(world: World) -> None:
    """Neither another user nor a command gets to the socket, not even where its directory is in a volume."""
    start(world, "--network", "host", "-v", str(world.runtime))
    path = world.runtime / "lind" / "one.sock"
    same("from inside", execute(world, "connect", str(path)).stdout, "connect: No such file or directory\n")
    done = world.run("--network", "host", "-v", str(world.runtime), "-v", str(world.folder / "tool"), str(world.folder / "tool" / "command"),
                     "connect", str(path))
    same("from another sandbox", done.stdout, "connect: No such file or directory\n")
    holds("its directory is no volume", world.run("-v", str(path.parent), "true").stderr, "sockets of sessions")
    if os.geteuid():
        raise Skipped("only root can be another user")
    stranger = 12345 if world.user is not None else 65533
    known = {"XDG_RUNTIME_DIR": str(world.runtime), "PATH": os.environ["PATH"], "HOME": "/"}
    world.runtime.chmod(0o755)
    done = subprocess.run([BOOT, "session", "exec", "one", "true"], env=known, user=stranger, group=stranger, cwd="/", check=False,
                          capture_output=True, timeout=SECONDS)
    same("another user", done.returncode, 125)
    if world.user == NOBODY:
        raise Skipped("in its user namespace all others are nobody: only the directory keeps them out (docs/session.md)")
    path.parent.chmod(0o777)
    path.chmod(0o777)
    # The directory's mode was the first wall; this is the second.
    same("past the directory", asked_by(stranger, path), b"")


def asked_by(user: int, path: Path) -> bytes:
    """The answer of a session to another user's list."""
    program = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nm=b'{\"lind\":1,\"do\":\"list\"}'\n" \
              "try:\n s.sendall(len(m).to_bytes(4,'little')+m)\n sys.stdout.buffer.write(s.recv(100))\nexcept OSError: pass\n"
    done = subprocess.run(["python3", "-c", program, str(path)], user=user, group=user, cwd="/", capture_output=True, timeout=SECONDS, check=True)
    return done.stdout


def a_start_returns_while_it_runs(world: World) -> None:
    done = world.boot("session", "start", "one", "--timeout", "20s")
    same("status", (done.returncode, [session["name"] for session in listed(world)]), (0, ["one"]))


def a_start_can_be_explained(world: World) -> None:
    done = world.boot("session", "start", "one", "-v", ".", "--memory", "1G", "--explain", "--json")
    same("status", done.returncode, 0)
    same("line", "--memory=1G" in json.loads(done.stdout)["line"], True)
    same("nothing runs", listed(world), [])


def what_is_no_request(world: World) -> None:
    start(world)
    path = str(world.runtime / "lind" / "one.sock")
    for bytes_, part in [(b"\xff\xff\xff\xff", b""), (b"\x02\0\0\0{{", b""), (b"\x02\0\0\0{}", b"version 1")]:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(SECONDS)
            client.connect(path)
            if world.user is not None and os.geteuid() == 0:
                raise Skipped("asked by root, who is another user")
            client.sendall(bytes_)
            same(f"{bytes_!r}", part in client.recv(1000), True)
    same("goes on", execute(world, "cwd").returncode, 0)


def a_start_that_fails_says_why(world: World) -> None:
    for words, part in [(["-v", "/nowhere/at/all"], "/nowhere/at/all"), (["--cpu", "soon"], "soon"), (["--policy", "x"], "no such policy")]:
        done = world.boot("session", "start", "one", *words)
        if done.returncode == 0:
            raise Failed(f"{words} starts")
        holds(f"{words}", done.stderr, part)
    same("name", world.boot("session", "start", "a/b").returncode, 125)
    same("nothing is left", listed(world), [])


TESTS = [commands_end_as_if_run_directly, directory_and_environment, files_are_the_commands_own, signals_go_to_the_command,
         a_client_that_dies_takes_its_command_along, a_session_that_dies_ends_its_commands, stop_ends_everything, who_is_asked_to_end_has_five_seconds, idle_sessions_end,
         limits_of_one_command, no_shell_goes_on_after_the_time, rules_hold, a_hundred_at_once, a_terminal, what_is_typed_and_shown, a_terminal_that_nobody_reads,
         a_terminal_ends_with_its_command, a_terminal_is_its_commands_own, one_of_a_pipeline_has_the_keys,
         not_for_others, what_is_no_request, a_start_that_fails_says_why,
         a_start_returns_while_it_runs, a_start_can_be_explained]
