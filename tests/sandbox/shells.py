"""`lind-sh`: bash in the session of a project, compared with the host's bash."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jobs
from sessions import listed, read_until, resize
from world import BOOT, NOBODY, SECONDS, TOP, Skipped, World, holds, needs_tools, same

HOOK = TOP / "python" / "src" / "lind" / "hook.py"

# Each is run by both: the arguments, and the standard input.
LINES = [
    (["-c", "echo \"$0 $# $1\"; exit 3", "name", "a  b'\"\n", ""], ""),
    (["-lc", "shopt -q login_shell; echo $?"], ""),
    (["-ec", "false; echo not reached"], ""),
    (["-o", "pipefail", "-c", "false | true; echo $?"], ""),
    (["-c", "cat; exit 260"], "some\ntext\n"),
    (["-c", "no-such-command; echo $?; exec no-such-command 2>&-"], ""),
    (["-c", "if"], ""),
    (["script", "one", "two"], ""),
    (["no-such-script"], ""),
    ([], "echo from input $#; read -r line; echo \"got $line\"\nthe line\nexit 4\n"),
    (["-s", "one", "two"], "echo $# $2; exit 5\n"),
    (["-c", "kill -TERM $$"], ""),
    (["-c", "kill -KILL $$"], ""),
    (["-c", "kill -INT $$"], ""),
    (["-c", "kill -PIPE $$"], ""),
    (["-c", "kill -SEGV $$"], ""),
    (["-c", "trap 'echo caught; exit 9' TERM; kill -TERM $$"], ""),
    (["-c", "(kill -TERM $BASHPID); echo $?"], ""),
    (["-c", "cd sub && pwd -P | sed 's,.*/,,'; echo x >&2"], ""),
]


def write(world: World, text: str, mode: int = 0o644) -> Path:
    """The list of projects."""
    file = world.home / ".config" / "lind" / "projects.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    for path in (file, file.parent, file.parent.parent):
        path.chmod(path.stat().st_mode & ~0o022 if path != file else mode)
        if world.user is not None:
            os.chown(path, world.user, world.user)
    return file


def listing(world: World, keys: str = "") -> Path:
    """A list with the world's project alone."""
    needs_tools()
    folder = world.project / "sub"
    folder.mkdir(exist_ok=True)
    if world.user is not None:
        os.chown(folder, world.user, world.user)
    return write(world, f'[project."{world.project}"]\n{keys}\n')


def shell(world: World, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return world.boot("sh", *words, **more)


def begin(world: World, *words: str, **more: object) -> subprocess.Popen[str]:
    """The same, under the name of the shell."""
    link = world.folder / "tool" / "lind-sh"
    if not link.is_symlink():
        link.symlink_to(BOOT)
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": world.project} | more
    return subprocess.Popen([link, *words], env=world.known, user=world.user, group=world.user, text=True, **pipes)


def hosts_bash() -> str:
    bash = shutil.which("bash")
    if bash is None:
        raise Skipped("the host has no bash")
    return bash


def it_does_what_bash_does(world: World) -> None:
    """Arguments, input, output, exit status, and the signal that ends it."""
    bash = hosts_bash()
    listing(world)
    (world.project / "script").write_text("echo \"$0 $*\"; exit 6\n")
    known = world.known | {"LC_ALL": "C"}
    for words, given in LINES:
        of_bash = subprocess.run([bash, *words], cwd=world.project, env=known, user=world.user, group=world.user, input=given, text=True,
                                 capture_output=True, timeout=SECONDS, check=False)
        child = begin(world, *words, stdin=subprocess.PIPE)
        out, errors = child.communicate(given, timeout=SECONDS)
        same(f"{words} {errors}", (child.returncode, out), (of_bash.returncode, of_bash.stdout))


def a_signal_for_it_ends_it(world: World) -> None:
    listing(world)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        child = begin(world, "-c", "echo ready; sleep 100")
        same("ready", child.stdout.readline(), "ready\n")
        child.send_signal(number)
        same(f"{number!r}", child.wait(SECONDS), -number)
    child = begin(world, "-c", "trap 'exit 7' USR1; echo ready; while :; do sleep 0.05; done")
    same("ready", child.stdout.readline(), "ready\n")
    child.send_signal(signal.SIGUSR1)
    same("handled", child.wait(SECONDS), 7)


def only_listed_projects_have_one(world: World) -> None:
    """The message has the lines that are to be added."""
    needs_tools()
    file = world.home / ".config" / "lind" / "projects.toml"
    for there in (False, True):
        if there:
            write(world, f'[project."{world.home}/other"]\n')
        done = shell(world, "-c", "echo ran")
        same("status", (done.returncode, done.stdout), (125, ""))
        holds("which file", done.stderr, str(file))
    lines = done.stderr.partition("\n")[2]
    write(world, f'[project."{world.home}/other"]\n{lines}')
    same("added", shell(world, "-c", "echo ran").stdout, "ran\n")
    # `~` is the home directory, and the innermost project counts.
    inner = world.home / "p" / "inner"
    inner.mkdir(parents=True)
    if world.user is not None:
        os.chown(inner, world.user, world.user)
    write(world, '[project."~/p"]\nenv = ["WHICH=outer"]\n[project."~/p/inner"]\nenv = ["WHICH=inner"]\n')
    for folder, which in ((inner, "inner"), (inner.parent, "outer")):
        same(which, shell(world, "-c", "echo $WHICH; pwd", cwd=folder).stdout, f"{which}\n{folder}\n")
    # A name that is a link to a project is the project, and a link to elsewhere is not.
    (world.project / "link").symlink_to("/usr")
    same("elsewhere", shell(world, "-c", "pwd", cwd=world.project / "link").returncode, 125)


def a_list_that_others_write_is_refused(world: World) -> None:
    file = listing(world)
    for mode in (0o664, 0o646):
        file.chmod(mode)
        done = shell(world, "-c", "echo ran")
        same("status", (done.returncode, done.stdout), (125, ""))
        holds("the mend", done.stderr, f"chmod go-w {file}")
    file.chmod(0o644)
    file.parent.chmod(0o775)
    holds("its directory", shell(world, "-c", "echo ran").stderr, f"chmod go-w {file.parent}")
    file.parent.chmod(0o755)
    for keys, why in [("polcy = \"x\"", "is policy meant?"), ("memory = \"1X\"", "1X"), ("access = \"x\"", "access: must be"), ("policy = \"none-such\"", "no such policy")]:
        listing(world, keys)
        done = shell(world, "-c", "echo ran")
        same(keys, done.stdout, "")
        same(f"{keys}: {done.returncode}", done.returncode in (2, 125), True)
        holds(keys, done.stderr, why)
        holds(keys, done.stderr, str(file))
    write(world, "[project")
    holds("not TOML", shell(world, "-c", "echo ran").stderr, f"{file}:1:")
    if os.geteuid() == 0 and world.user is None:
        os.chown(file, NOBODY, NOBODY)
        holds("another user's", shell(world, "-c", "echo ran").stderr, "belongs to another user")


def commands_cannot_change_the_list(world: World) -> None:
    """Also where the project holds it."""
    listing(world)
    file = write(world, '[project."~"]\npolicy = "build"\n')
    before = file.read_text()
    moves = "echo x >.config/lind/projects.toml; mv .config c; rm -rf .config/lind; mkdir .config/lind/x; touch .config/new; echo done"
    done = shell(world, "-c", moves, cwd=world.home)
    same("done", done.stdout, "done\n")
    same("unchanged", (file.read_text(), sorted(path.name for path in file.parent.iterdir())), (before, ["projects.toml"]))
    same("the rest can change", (file.parent.parent / "new").exists(), True)


def one_session_for_many_shells(world: World) -> None:
    """Those that come at once share it, the next one after its death makes another, and so does a change of the list."""
    listing(world)
    # A shell that is compiled first says so.
    world.run("bash", "-c", ":")
    children = [begin(world, "-c", f"echo {number}; exit {number}") for number in range(8)]
    ends = [(*child.communicate(timeout=SECONDS), child.returncode) for child in children]
    same("all", ends, [(f"{number}\n", "", number) for number in range(8)])
    [session] = listed(world)
    same("its files", sorted(path.suffix for path in (world.runtime / "lind").iterdir()), [".log", ".sock"])
    os.kill(session["pid"], signal.SIGKILL)
    same("afresh", shell(world, "-c", "echo again").stdout, "again\n")
    same("another", listed(world)[0]["pid"] == session["pid"], False)
    shell(world, "-c", "sleep 100 >/dev/null 2>&1 & echo left >/tmp/left")
    same("state stays", shell(world, "-c", "cat /tmp/left").stdout, "left\n")
    listing(world, "read-only = true")
    done = shell(world, "-c", "cat /tmp/left; touch sub/new")
    same("new rules", (done.returncode, done.stdout, len(listed(world))), (1, "", 2))


def one_that_ends_is_waited_for(world: World) -> None:
    """A session that is ending takes no command; the shell gets the next one, or its command had begun before and ends with the session."""
    listing(world)
    same("first", shell(world, "-c", "echo 1").stdout, "1\n")
    name = listed(world)[0]["name"]
    for number in range(10):
        child = world.begin("session", "stop", name)
        time.sleep(number * 0.002)
        done = shell(world, "-c", "echo next")
        if done.returncode not in (-signal.SIGTERM, -signal.SIGKILL) and "the command with it" not in done.stderr:
            same(f"{number} {done.stderr}", (done.returncode, done.stdout), (0, "next\n"))
        child.wait(SECONDS)
        child.stdout.close()
        child.stderr.close()


def where_it_stands_and_what_it_sees(world: World) -> None:
    listing(world, 'pass = ["TOLD", "GIT_AUTHOR_*"]')
    words = "pwd; echo \"$LC_TIME $TZ $TOLD $GIT_AUTHOR_NAME [$SECRET] [$GIT_COMMITTER_NAME]\""
    given = {"LC_TIME": "C", "TZ": "UTC", "TOLD": "told", "GIT_AUTHOR_NAME": "ada", "SECRET": "secret", "GIT_COMMITTER_NAME": "ada"}
    same("sees", shell(world, "-c", words, cwd=world.project / "sub", **given).stdout, f"{world.project}/sub\nC UTC told ada [] []\n")


def at_terminal(world: World, command: list[str | Path]) -> tuple[int, int]:
    """A shell on a pseudoterminal: its process and the master."""
    child, master = pty.fork()
    if not child:
        os.chdir(world.project)
        resize(0, 24, 80)
        if world.user is not None:
            os.setgroups([])
            os.setgid(world.user)
            os.setuid(world.user)
        os.execve(command[0], [os.fspath(word) for word in command], world.known | {"TERM": "dumb", "PS1": "> ", "HISTFILE": "/dev/null"})
    return child, master


def typed(world: World, command: list[str | Path]) -> dict[str, object]:
    """An interactive shell: what became of the jobs, the interrupts and the size."""
    child, master = at_terminal(world, [*command, "--norc", "--noprofile", "-i"])
    found: dict[str, object] = {}

    def enter(text: str, wanted: str) -> str:
        os.write(master, text.encode())
        return read_until(master, wanted.encode())

    enter("PS1='> '; stty -echo; echo rea''dy\r", "ready")
    enter("echo beg''un; sleep 100\r", "begun")
    time.sleep(0.3)
    found["stopped"] = "Stopped" in enter("\x1a", "Stopped")
    found["status"] = enter("echo st''atus=$?.\r", "status=148.").count("status=148.")
    found["jobs"] = "sleep 100" in enter("jobs; echo li''sted\r", "listed")
    enter("fg\r", "sleep 100")
    time.sleep(0.3)
    enter("\x03", ">")
    found["interrupted"] = enter("echo st''atus=$?.\r", "status=130.").count("status=130.")
    for _ in range(10):
        enter("echo beg''un; sleep 100\r", "begun")
        time.sleep(0.05)
        enter("\x03", ">")
    enter("sleep 100 & echo in b''ack\r", "in back")
    found["background"] = "sleep 100" in enter("jobs; kill %1; wait; echo go''ne\r", "gone")
    # A shell at its prompt may write back the size that it has read a moment before.
    enter("echo wai''ts; read\r", "waits")
    time.sleep(0.3)
    resize(master, 30, 90)
    found["size"] = enter("\rstty size; echo si''zed\r", "sized").count("30 90")
    # Keys that are typed right after an interruption are dropped, as by Linux's terminals.
    time.sleep(0.3)
    enter("\x03", ">")
    time.sleep(0.3)
    os.write(master, b"exit 5\r")
    found["end"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(master)
    return found


def an_interactive_shell(world: World) -> None:
    """^C, ^Z, jobs, fg, the size of the window and the exit status are as with the host's bash."""
    bash = hosts_bash()
    listing(world)
    shell(world, "-c", "stty size; sleep 0; jobs")
    same("as bash", typed(world, [BOOT, "sh"]), typed(world, [bash]))


def a_command_at_a_terminal(world: World) -> None:
    """^C ends the command and is seen to have done that; ^Z stops it for the shell outside, which continues it."""
    bash = hosts_bash()
    listing(world)
    ends = {}
    for name, command in (("bash", [bash]), ("lind-sh", [BOOT, "sh"])):
        child, master = at_terminal(world, [*command, "-c", "echo ready; sleep 100"])
        read_until(master, b"ready")
        time.sleep(0.2)
        os.write(master, b"\x03")
        ends[name] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(master)
    same("interrupted", ends["lind-sh"], ends["bash"])
    same("stopped and continued", jobs.ends(world, ("sh", "-c", "echo ready; sleep 1; exit 3"), b"\x1a"), 64 + 3)


# Keys, and a line for a host's shell, with programs beside a `$shell` that has the terminal. All
# have started when "ready" and "beside" are there. Bash itself goes on after the keys that are left
# out.
BESIDE = [
    ("\x03\x1c\x1a", "$shell -c 'echo ready >&2; sleep 100' | (echo beside >&2; exec sleep 100)"),
    ("\x03\x1c\x1a", "$shell -c 'echo ready >&2; sleep 100; true' | $shell -c 'echo beside >&2; sleep 100; true'"),
    ("\x03\x1c\x1a", "(echo beside >&2; exec sleep 100) | $shell -c 'echo ready; sleep 100'"),
    ("\x03\x1c\x1a", "(echo beside >&2; exec cat) | $shell -c 'echo ready; sleep 100'"),
    # The command reads from the terminal, whose keys are then the session's.
    ("\x03\x1c\x1a", "$shell -c 'stty -echo; stty echo; echo ready >&2; sleep 100; true' | (echo beside >&2; exec sleep 100)"),
    ("\x03\x1a", "(echo beside >&2; exec sleep 100) | $shell -c 'echo ready; read -r line </dev/tty'"),
    ("\x03", "echo beside; for i in 1 2 3; do $shell -c 'echo ready; sleep 100'; done"),
    ("\x03", "echo beside; for i in 1 2 3; do $shell -c 'stty echo; echo ready; sleep 100'; done"),
    ("\x03\x1a", "bash -c 'echo beside; for i in 1 2 3; do $shell -c \"echo ready; sleep 100\"; done; echo over'"),
    ("\x03\x1a", "bash -c 'trap \"echo caught\" INT; echo beside; $shell -c \"echo ready; sleep 100; echo on\"; exit 9'"),
    ("\x03\x1a", "bash -c 'trap \"echo caught\" INT; echo beside; $shell -c \"stty echo; echo ready; sleep 100; echo on\"; exit 9'"),
    ("\x03\x1a", "bash -c 'echo beside; $shell -c \"trap : INT; echo ready; sleep 100; exit 9\"; exit 10'"),
    # A shell with job control has a group of its own in front, and its jobs have others.
    ("\x03", "bash -c 'trap \"exit 8\" INT; echo beside; $shell -ic \"(echo ready; exec sleep 100); true\"; exit 9'"),
    ("\x03", "bash -c 'trap \"exit 8\" INT; echo beside; $shell -ic \"echo ready; while :; do :; done\"; exit 9'"),
]


STATUS = re.compile(r"status=([0-9 ]*) ended")


def keys_beside(world: World, shell: str | Path) -> list[tuple[str, str, str | None]]:
    """The effect of ^C, ^\\ and ^Z on programs that share the terminal with a shell."""
    child, master = at_terminal(world, [hosts_bash(), "--norc", "--noprofile", "-i"])
    found = []
    os.write(master, f"PS1='> '; ulimit -c 0; stty -echo; shell='{shell}'; export shell; echo rea''dy\r".encode())
    read_until(master, b"ready")
    for keys, line in BESIDE:
        for key in keys:
            os.write(master, f"{line}\r".encode())
            seen = ""
            while not ("ready" in seen and "beside" in seen):
                seen += read_until(master, b"ready" if "ready" not in seen else b"beside")
            # The session's shell may still be putting its job in front.
            time.sleep(0.3)
            os.write(master, key.encode())
            read_until(master, b"> ")
            os.write(master, b"echo st''atus=$? ${PIPESTATUS[*]} en''ded\r")
            status = STATUS.search(read_until(master, b"ended"))
            found.append((line, repr(key), status and status[1]))
            if key == "\x1a":
                # The shell repeats the line when it tells that the job was killed.
                os.write(master, b"kill -KILL %1; wait; echo go''ne\r")
                if "> " not in read_until(master, b"gone").partition("gone")[2]:
                    read_until(master, b"> ")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(master)
    return found


def keys_reach_programs_beside_it(world: World) -> None:
    """The rest of a pipeline, and the loop or script that has started the shell, get what is typed as beside bash."""
    bash = hosts_bash()
    listing(world)
    link = world.folder / "tool" / "lind-sh"
    link.symlink_to(BOOT)
    shell(world, "-c", "sleep 0; cat </dev/null")
    for found, wanted in zip(keys_beside(world, link), keys_beside(world, bash), strict=True):
        same("beside", found, wanted)


def others_get_what_is_typed(world: World) -> None:
    """A command that reads nothing from the terminal takes nothing that is typed from the program beside it, or from the next command."""
    listing(world)
    shell(world, "-c", "sleep 0")
    child, master = at_terminal(world, [hosts_bash(), "--norc", "--noprofile", "-i"])
    link = world.folder / "tool" / "lind-sh"
    link.symlink_to(BOOT)
    os.write(master, f"PS1='> '; stty -echo; shell='{link}'; echo rea''dy\r".encode())
    read_until(master, b"ready")
    os.write(master, b"$shell -c 'echo rea\"\"dy; sleep 1'\r")
    read_until(master, b"ready")
    os.write(master, b"echo ne''xt\r")
    read_until(master, b"next")
    os.write(master, b"$shell -c 'echo rea\"\"dy >&2; sleep 100' | (read -r line </dev/tty; echo got $line)\r")
    read_until(master, b"ready")
    os.write(master, b"word\r")
    read_until(master, b"got word")
    os.write(master, b"\x03")
    # With a terminal alone for output, a program gets keys all the same.
    os.write(master, b"echo a | $shell -c 'read -r line; echo rea\"\"dy; read -r key </dev/tty; echo $line and $key'\r")
    read_until(master, b"ready")
    os.write(master, b"b\r")
    read_until(master, b"a and b")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(master)


# Texts that a careless quoting would hand to the shell outside.
COMMANDS = ["echo hi", "echo 'a'\"b\" $0 `echo c` $(echo d)", "echo '; exit 9 #", "printf '%s\\n' \"it's\"; exit 4", "echo a\necho b \\\n c", "cat <<'END'\n'x'\nEND",
            "echo \u00e4\u4e2d\U0001f600 '\udc80'[:1]", "", "-x", "echo $PPID >/dev/null; [ -e /etc/passwd ] && exit 0; exit 3", "echo '\\' \\\\ !!", "touch \"$HOME/../escaped\""]


def a_hook_for_claude_code(world: World) -> None:
    """The commands it gives run in the sandbox, whatever is in them, and everything else of the input stays."""
    bash = hosts_bash()
    listing(world)
    link = world.folder / "tool" / "lind-sh"
    link.symlink_to(BOOT)

    def hook(event: object, *words: str) -> subprocess.CompletedProcess[str]:
        given = event if isinstance(event, str) else json.dumps(event)
        return subprocess.run([sys.executable, HOOK, *words], input=given, capture_output=True, text=True, timeout=SECONDS, check=False)

    for command in COMMANDS:
        given = {"command": command, "description": "d", "timeout": 5, "run_in_background": False}
        done = hook({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": given}, "--shell", str(link))
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        same("the rest", answer["updatedInput"] | {"command": command}, given)
        same("decision", answer["permissionDecision"], "allow")
        if "\udc80" in command:
            continue
        inside = shell(world, "-c", "--", command)
        outside = subprocess.run([bash, "-c", answer["updatedInput"]["command"]], cwd=world.project, env=world.known, user=world.user, group=world.user,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        same(command, (outside.returncode, outside.stdout), (inside.returncode, inside.stdout))
    same("ask", json.loads(hook({"tool_name": "Bash", "tool_input": {"command": "x"}}, "--ask").stdout)["hookSpecificOutput"]["permissionDecision"], "ask")
    for wrong in ("", "[]", "{}", "[" * 100_000, '{"tool_name": "Read", "tool_input": {"command": "x"}}', '{"tool_name": "Bash", "tool_input": {"command": "a\\u0000b"}}',
                  '{"tool_name": "Bash", "tool_input": {"command": 1}}'):
        done = hook(wrong)
        same(wrong[:60], (done.returncode, done.stdout), (2, ""))
        holds(wrong[:60], done.stderr, "the command is refused")


TESTS = [it_does_what_bash_does, a_signal_for_it_ends_it, only_listed_projects_have_one, a_list_that_others_write_is_refused, commands_cannot_change_the_list,
         one_session_for_many_shells, one_that_ends_is_waited_for, where_it_stands_and_what_it_sees, an_interactive_shell, a_command_at_a_terminal, keys_reach_programs_beside_it, others_get_what_is_typed, a_hook_for_claude_code]
