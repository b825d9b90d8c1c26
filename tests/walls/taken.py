"""A runner that has been taken over: system calls are made in a process that was started before, as code in it could make them.

ptrace(2) stops one of its threads, which then runs its own `syscall` instruction again with other registers.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager

NUMBERS = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "mmap": 9, "ioctl": 16, "access": 21, "pipe": 22, "connect": 42, "socket": 41,
    "socketpair": 53, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "fcntl": 72, "truncate": 76, "fchdir": 81, "rename": 82,
    "mkdir": 83, "link": 86, "unlink": 87, "symlink": 88, "readlink": 89, "chmod": 90, "chown": 92, "ptrace": 101, "setuid": 105, "mknodat": 259,
    "chroot": 161, "mount": 165, "umount2": 166, "setxattr": 188, "tkill": 200, "tgkill": 234, "keyctl": 250, "openat": 257, "newfstatat": 262,
    "unlinkat": 263, "unshare": 272, "utimensat": 280, "perf_event_open": 298, "prlimit64": 302, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "bpf": 321, "execveat": 322, "userfaultfd": 323, "io_uring_setup": 425,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "mount_setattr": 442,
    "getsockopt": 55, "sendmsg": 46, "recvmsg": 47, "renameat": 264, "linkat": 265, "rt_sigqueueinfo": 129, "pidfd_send_signal": 424, "seccomp": 317, "setrlimit": 160, "setpriority": 141, "sched_setscheduler": 144,
}
ATTACH, SINGLESTEP, GETREGS, SETREGS = 16, 9, 12, 13
WALL = 0x40000000
SYSCALL = b"\x0f\x05"
MAP_PRIVATE_ANONYMOUS = 0x22
ROOM = 1 << 16
# struct user_regs_struct
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs").split()

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Registers(ctypes.Structure):
    """The registers of a stopped thread."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in NAMES]


class NotInCall(Exception):
    """A thread was stopped elsewhere than in a system call."""


class Refused(Exception):
    """Such a call was answered with an error."""


class Taken:
    """A thread of the runner that makes the calls of the test."""

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.memory = open(f"/proc/{thread}/mem", "r+b", buffering=0)  # noqa: SIM115
        self.before = Registers()
        self.trace(GETREGS, ctypes.addressof(self.before))
        self.memory.seek(self.before.rip - len(SYSCALL))
        if self.memory.read(len(SYSCALL)) != SYSCALL:
            raise NotInCall
        self.room = self.must("mmap", 0, ROOM, 3, MAP_PRIVATE_ANONYMOUS, -1, 0)

    def trace(self, request: int, data: int = 0) -> None:
        if libc.ptrace(request, self.thread, 0, data) == -1:
            raise OSError(ctypes.get_errno(), f"ptrace {request}")

    def call(self, name: str, *arguments: int | bytes) -> int:
        """The host's result of a call, or an error as a negative number. Bytes are passed by their address."""
        at, values = getattr(self, "room", 0), []
        for argument in arguments:
            if isinstance(argument, bytes):
                self.memory.seek(at)
                self.memory.write(argument + b"\0")
                values.append(at)
                at += (len(argument) + 64) & ~63
            else:
                values.append(argument & (1 << 64) - 1)
        registers = Registers.from_buffer_copy(self.before)
        registers.rip = self.before.rip - len(SYSCALL)
        # Nothing is to be made again.
        registers.rax, registers.orig_rax = NUMBERS[name], (1 << 64) - 1
        for register, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), values):
            setattr(registers, register, value)
        self.trace(SETREGS, ctypes.addressof(registers))
        # A signal may come before the step is made.
        stopped = 0
        while stopped != signal.SIGTRAP:
            self.trace(SINGLESTEP)
            status = os.waitpid(self.thread, WALL)[1]
            if not os.WIFSTOPPED(status):
                raise Refused(f"{name} ended the runner: {status:#x}")
            stopped = os.WSTOPSIG(status)
        self.trace(GETREGS, ctypes.addressof(registers))
        return ctypes.c_longlong(registers.rax).value

    def must(self, name: str, *arguments: int | bytes) -> int:
        """The same of a call that has to be answered."""
        result = self.call(name, *arguments)
        if result < 0:
            raise Refused(f"{name}{arguments}: {errno.errorcode[-result]}")
        return result

    def pair(self, kind: int = 1) -> tuple[int, int]:
        """Two sockets that are connected."""
        self.must("socketpair", 1, kind, 0, bytes(8))
        self.memory.seek(self.room)
        both = self.memory.read(8)
        return int.from_bytes(both[:4], "little"), int.from_bytes(both[4:], "little")


    def send(self, to: int, what: bytes, files: list[int]) -> None:
        """A message with files."""
        rights = struct.pack(f"<qii{len(files)}i", 16 + 4 * len(files), 1, 1, *files)
        at = self.lay(what, rights)
        self.must("sendmsg", to, struct.pack("<qqqqqqq", 0, 0, at, 1, at + 1024, len(rights), 0), 0)

    def receive(self, fro: int) -> tuple[bytes, list[int]]:
        """The next message, with at most one file."""
        at = self.lay(bytes(4096), b"")
        got = self.must("recvmsg", fro, struct.pack("<qqqqqqq", 0, 0, at, 1, at + 1024, 24, 0), 0)
        self.memory.seek(at + 4096)
        said = self.memory.read(got)
        self.memory.seek(at + 1024)
        length, _, kind, file = struct.unpack("<qiii", self.memory.read(20))
        return said, [file] if length == 20 and kind == 1 else []

    def lay(self, what: bytes, rights: bytes) -> int:
        """Lays out what a message consists of: where its vector is, with the rights 1 KiB and its bytes 4 KiB further on."""
        at = self.room + ROOM // 2
        for place, content in ((0, struct.pack("<qq", at + 4096, len(what))), (1024, rights.ljust(24, b"\0")), (4096, what)):
            self.memory.seek(at + place)
            self.memory.write(content)
        return at


def threads(pid: int) -> list[int]:
    """The threads of a process."""
    return sorted(map(int, os.listdir(f"/proc/{pid}/task")))


@contextmanager
def taken(pid: int) -> Iterator[list[Taken]]:
    """Those threads of the process that stand in system calls. It is ended afterwards."""
    attached, found = [], []
    try:
        for thread in threads(pid):
            if libc.ptrace(ATTACH, thread, 0, 0) == -1:
                # It has ended meanwhile, as the one that shows how far the compiler is.
                if ctypes.get_errno() == errno.ESRCH:
                    continue
                raise OSError(ctypes.get_errno(), "ptrace: attach")
            attached.append(thread)
            os.waitpid(thread, WALL)
            try:
                found.append(Taken(thread))
            except NotInCall:
                continue
        yield found
    finally:
        os.kill(pid, signal.SIGKILL)
        # The first thread belongs to the starter of the process, and ends when the others have been
        # waited for.
        for thread in attached:
            if thread != pid:
                os.waitpid(thread, WALL)
