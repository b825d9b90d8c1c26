"""`lind-boot run` as a shell's job, and what is left when its command ends."""

from __future__ import annotations

import os
import pty
import signal

from sessions import read_until
from world import BOOT, Failed, World, same


def as_job(world: World, *words: str) -> tuple[int, int]:
    """Runs `lind-boot` as a shell on a terminal does, continues it when it has stopped, and ends as it does, plus 64 if it had stopped.
    Its process and the terminal's master."""
    shell, master = pty.fork()
    if shell:
        return shell, master
    if world.user is not None:
        os.setgroups([])
        os.setgid(world.user)
        os.setuid(world.user)
    os.chdir(world.project)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execve(BOOT, [BOOT, *words], world.known)
    _, status = os.waitpid(job, os.WUNTRACED)
    stopped = os.WIFSTOPPED(status)
    if stopped:
        os.kill(-job, signal.SIGCONT)
        _, status = os.waitpid(job, 0)
    os._exit(os.waitstatus_to_exitcode(status) + 64 * stopped)


def ends(world: World, words: tuple[str, ...], key: bytes = b"") -> int:
    shell, master = as_job(world, *words)
    try:
        read_until(master, b"ready")
        os.write(master, key)
        return os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1])
    finally:
        os.close(master)


def a_job_goes_on_whole(world: World) -> None:
    """After ^Z a shell continues a group: all that the command has started there."""
    tool = ("-v", f"{world.folder}/tool:/tool:ro")
    same("run", ends(world, ("run", *tool, "/tool/command", "family"), b"\x1a"), 64 + 3)
    world.boot("session", "start", "one", *tool)
    same("session", ends(world, ("session", "exec", "one", "/tool/command", "family"), b"\x1a"), 64 + 3)


def a_command_that_is_interrupted(world: World) -> None:
    """^C ends the run as it ends the command, so that a shell ends its loop; not where the command handles it."""
    tool = ("-v", f"{world.folder}/tool:/tool:ro")
    for options in [(), ("--mounts=kernel",)]:
        same(f"{options}", ends(world, ("run", *tool, *options, "/tool/command", "wait"), b"\x03"), 256 - signal.SIGINT)


def a_command_that_stops_itself(world: World) -> None:
    """It stops the run, for the shell to see; not where nobody is there that could continue it in time."""
    command = ("-v", f"{world.folder}/tool:/tool:ro", "/tool/command", "stop")
    same("at a terminal", ends(world, ("run", *command)), 64 + 3)
    same("with an end", ends(world, ("run", "--timeout", "500ms", *command)), 124)
    same("without a terminal", world.boot("run", "--timeout", "500ms", *command).returncode, 124)


def what_was_written_arrives(world: World) -> None:
    """The command has ended, and a program of its own still reads what it has written."""
    for options in [(), ("--mounts=kernel",), ("--policy", "build")]:
        done = world.run("-v", ".", "-v", f"{world.folder}/tool:/tool:ro", *options, "/tool/command", "drain")
        same(f"{options}", (done.returncode, (world.project / "log").read_text()), (4, "one\ntwo\n"))
        (world.project / "log").unlink()


def programs_have_their_names(world: World) -> None:
    """In lists of processes, however the grates of the sandbox have found them."""
    command = ("/tool/command", "execs", "/tool/command.wasm")
    for options in [("-v", "."), ("-v", ".:overlay=named"), ("--mounts=kernel", "-v", ".")]:
        done = world.run("-v", f"{world.folder}/tool:/tool:ro", *options, *command)
        if done.stdout not in ("command\n", "command.wasm\n"):
            raise Failed(f"{options}: {done.stdout} {done.stderr}")


TESTS = [a_job_goes_on_whole, a_command_that_is_interrupted, a_command_that_stops_itself, what_was_written_arrives, programs_have_their_names]
