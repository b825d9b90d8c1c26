#!/usr/bin/env python3
"""Writes lind-boot/start.ld: the functions that starts of the runner execute, for the linker to put side by side.

A start executes hundreds of functions, spread over ten megabytes of which most is the compiler. The host maps 64 KiB around the first use
of each and takes it down again at the end, so what is used together should lie together.

Run it after `make` when `--check` says that starts have come to execute much that is not in the list. The list only says where
functions lie: a name that is no longer there is passed over, what is missing lies where it did."""

import argparse
import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "lind-boot" / "start.ld"
RUNNER = ROOT / "target/release/lind-boot"
STRACE = ROOT / "build/grates/strace_grate.wasm"

# ptrace(2)
TRACEME, CONT, PEEKUSER, POKEUSER, SETOPTIONS = 0, 7, 3, 6, 0x4200
TRACECLONE, EXITKILL = 1 << 3, 1 << 20
RIP = 16 * 8  # where in `struct user`
WALL = 0x40000000
BREAKPOINT = 0xCC
ET_EXEC = 2  # elf(5): at a fixed address

HEAD = """\
/* Functions that starts of the runner execute, in the order in which they first do. Made by scripts/start_order.py. */
SECTIONS
{
  .text.start :
  {
"""
TAIL = """\
  }
}
INSERT BEFORE .text;
"""

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, address=0, data=0):
    ctypes.set_errno(0)
    result = libc.ptrace(request, pid, address, data)
    if ctypes.get_errno():
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def functions():
    """Where the runner's functions begin: {address: name}. Those of the C library are not ours to place."""
    lines = subprocess.run(["nm", "--defined-only", RUNNER], capture_output=True, text=True, check=True).stdout
    found = (line.split() for line in lines.splitlines())
    return {int(address, 16): name for address, kind, name in found if kind in "tT" and (name == "main" or name.startswith(("_ZN", "_R")))}


def together():
    """The addresses of the functions that the linker put side by side."""
    lines = subprocess.run(["readelf", "-SW", RUNNER], capture_output=True, text=True, check=True).stdout
    found = re.search(r" \.text\.start +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", lines)
    if not found:
        sys.exit("the runner has no section .text.start")
    start, size = (int(number, 16) for number in found.groups())
    return range(start, start + size)


def executed(command, names):
    """Runs a command with a breakpoint at each function: the addresses it came to, in order."""
    pid = os.fork()
    if pid == 0:
        try:
            ptrace(TRACEME, 0)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            os.execv(command[0], command)
        finally:
            os._exit(127)
    _, status = os.waitpid(pid, 0)
    if not os.WIFSTOPPED(status):
        sys.exit(f"{command[0]} cannot be traced")
    ptrace(SETOPTIONS, pid, 0, TRACECLONE | EXITKILL)
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    first = min(names)
    text = os.pread(memory, max(names) + 1 - first, first)
    broken = bytearray(text)
    for address in names:
        broken[address - first] = BREAKPOINT
    os.pwrite(memory, broken, first)
    ptrace(CONT, pid)
    order = {}
    while True:
        thread, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            if thread == pid:
                break
            continue
        stop = os.WSTOPSIG(status)
        passed = 0 if stop in (signal.SIGTRAP, signal.SIGSTOP) else stop
        # A thread that stands here may be gone, because another one ends the process.
        with contextlib.suppress(ProcessLookupError):
            if stop == signal.SIGTRAP and status >> 16 == 0:
                address = ptrace(PEEKUSER, thread, RIP) - 1
                if address in names:
                    order[address] = None
                    os.pwrite(memory, text[address - first : address - first + 1], address)
                    ptrace(POKEUSER, thread, RIP, address)
            ptrace(CONT, thread, 0, passed)
    os.close(memory)
    if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != 0:
        sys.exit(f"{' '.join(command)} failed: wait status {status:#x}")
    return list(order)


def starts(names):
    """The addresses that starts came to: of a program, and of one behind a grate."""
    found = {}
    with tempfile.TemporaryDirectory() as root:
        source = Path(root, "app.c")
        source.write_text("#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n")
        subprocess.run([ROOT / "scripts/lind_compile", "-o", f"{root}/app.cwasm", source], stdout=subprocess.DEVNULL, check=True)
        shutil.copy(STRACE, root)
        for words in (["app"], ["strace_grate", "app"]):
            command = [str(RUNNER), "--root", root, *words]
            # The first run may have to compile.
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            found.update(dict.fromkeys(executed(command, names)))
    return list(found)


def pattern(name):
    """The sections a function may lie in, whatever hashes and numbers the compiler puts into its name."""
    name = re.sub(r"17h[0-9a-f]{16}E", "17h*E", name)
    name = re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name)
    name = re.sub(r"\.(llvm\.)?[0-9]+$", ".*", name)
    return f".text.{name} .text.unlikely.{name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 if under three quarters of what starts execute lies together")
    args = parser.parse_args()
    with open(RUNNER, "rb") as runner:
        if runner.read(18)[16] != ET_EXEC:
            sys.exit("the runner is not linked as `make` does it: its functions have no addresses yet")
    names = functions()
    found = starts(names)
    if args.check:
        near = sum(address in together() for address in found)
        print(f"{near} of {len(found)} functions lie together")
        sys.exit(near * 4 < len(found) * 3)
    lines = dict.fromkeys(f"    *({pattern(names[address])})\n" for address in found)
    LIST.write_text(HEAD + "".join(lines) + TAIL)
    print(f"{len(lines)} functions -> {LIST.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
