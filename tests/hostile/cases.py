"""Hostile tests that take a hand from outside: files that change while they are loaded, a host that has run out. Used by `run`."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 120
FUNCTIONS = 3000
# Those that these tests run programs behind.
GRATES = {"resource_grate"}


def run(lind_boot: Path, root: Path, *argv: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([lind_boot, "--root", root, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace", timeout=SECONDS, check=False, **options)


def compiled(lind_boot: Path, root: Path, module: str, name: str) -> bytes:
    """Compiles a module of the root to a file of that name, and returns its bytes."""
    output = root / name
    subprocess.run([lind_boot, "compile", root / module, "-o", output], check=True, capture_output=True)
    return output.read_bytes()


def ended(done: subprocess.CompletedProcess[str], wanted: set[int]) -> str:
    return "" if done.returncode in wanted else f"ended with {done.returncode}\n{done.stdout}{done.stderr}"


def guest_cwasm(lind_boot: Path, root: Path) -> str:
    """A cage makes compiled code and spawns it."""
    compiled(lind_boot, root, "throws.wasm", "good.cwasm")
    return ended(run(lind_boot, root, "guest_cwasm.wasm"), {0})


def rewritten_while_loading(lind_boot: Path, root: Path) -> str:
    """Compiled code is changed again and again while runners start it: what runs is the whole program or nothing."""
    good = compiled(lind_boot, root, "numbers.wasm", "changing.cwasm")
    file = root / "changing.cwasm"
    stop = threading.Event()

    def change() -> None:
        with file.open("r+b") as out:
            while not stop.is_set():
                for wrong in (b"\xcc" * 4096, b"\x0f\x0b" * 2048):
                    out.seek(4096)
                    out.write(wrong)
                    out.flush()
                    out.seek(4096)
                    out.write(good[4096:8192])
                    out.flush()
                out.truncate(len(good) // 2)
                out.seek(len(good) // 2)
                out.write(good[len(good) // 2:])
                out.flush()

    changer = threading.Thread(target=change)
    changer.start()
    try:
        results = [run(lind_boot, root, "changing.cwasm") for _ in range(60)]
    finally:
        stop.set()
        changer.join()
    return next((wrong for done in results if (wrong := ended(done, {0, 126}))), "")


def rewritten_while_running(lind_boot: Path, root: Path) -> str:
    """Compiled code is overwritten in place while it runs, before most of it was ever touched."""
    functions = "\n".join(f"(func $f{i} (param i64) (result i64) (i64.xor (i64.mul (local.get 0) (i64.const {2 * i + 1})) (i64.const {i})))"
                          for i in range(FUNCTIONS))
    calls = "\n".join(f"(local.set $sum (call $f{i} (local.get $sum)))" for i in range(FUNCTIONS))
    prelude = (Path(__file__).parent / "prelude.wat.in").read_text()
    folder = root / "wide"
    folder.mkdir(exist_ok=True)
    (folder / "wide.wat").write_text(f"""(module {prelude}
        {functions}
        (func $main (local $sum i64)
            (local.set $sum (i64.const 1))
            (drop (call $s3 (i32.const 1) (i64.const 1) (i64.const 0x10000) (i64.const 1)))
            (drop (call $s3 (i32.const 0) (i64.const 0) (i64.const 0x10000) (i64.const 1)))
            {calls}
            (call $exit (i32.wrap_i64 (i64.and (local.get $sum) (i64.const 63))))))""")
    subprocess.run(["cargo", "run", "--quiet", "--release", "-p", "lind-hostile", "--", str(folder)],
                   cwd=Path(__file__).parent, check=True)
    good = compiled(lind_boot, folder, "wide.wasm", "wide.cwasm")
    total = 1
    for i in range(FUNCTIONS):
        total = (total * (2 * i + 1) & (1 << 64) - 1) ^ i
    with subprocess.Popen([lind_boot, "--root", folder, "wide.cwasm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as running:
        running.stdout.read(1)
        with (folder / "wide.cwasm").open("r+b") as out:
            out.write(b"\xcc" * len(good))
        said = running.communicate(b".", timeout=SECONDS)[1].decode(errors="replace")
    return "" if running.returncode == total & 63 else f"ended with {running.returncode}, not {total & 63}\n{said}"


def no_host_descriptors(lind_boot: Path, root: Path) -> str:
    """The runner itself may have few descriptors."""
    (root / "data").write_bytes(b"x" * 100)
    return ended(run(lind_boot, root, "host_descriptors.wasm",
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))), {0})


def no_host_memory(lind_boot: Path, root: Path) -> str:
    """With little address space the runner itself fails with a message, or its cages get ENOMEM and EAGAIN."""
    for gigabytes, wanted in ((1, {125, 126}), (24, {0, 125, 126})):
        size = gigabytes << 30
        done = run(lind_boot, root, "bomb.wasm", preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
        if wrong := ended(done, wanted):
            return f"with {gigabytes} GiB it {wrong}"
    return ""


def leb(number: int) -> bytes:
    return bytes([number & 127 | 128]) + leb(number >> 7) if number > 127 else bytes([number])


def slow_module(loops: int, variables: int) -> bytes:
    """A module that is small and valid and takes the compiler minutes: many variables that change within many nested loops."""
    def section(number: int, content: bytes) -> bytes:
        return bytes([number]) + leb(len(content)) + content

    steps = b"".join(b"\x20" + leb(i) + b"\x41\x01\x6a\x21" + leb(i) for i in range(variables))  # i += 1
    loop, again = b"\x03\x40", b"\x20\x00\x0d\x00\x0b"
    body = leb(1) + leb(variables) + b"\x7f" + loop * loops + steps + again * loops + b"\x0b"
    types, functions = b"\x02\x60\x01\x7f\x00\x60\x00\x00", b"\x02\x00\x01"
    memory, exports = b"\x01\x01\x80\x80\x04\x80\x80\x04", b"\x02\x06memory\x02\x00\x06_start\x00\x00"
    code = b"\x02" + leb(len(body)) + body + b"\x02\x00\x0b"
    parts = ((1, types), (3, functions), (5, memory), (7, exports), (10, code))
    return b"\0asm\x01\0\0\0" + b"".join(section(number, content) for number, content in parts)


def compiles_for_minutes(lind_boot: Path, root: Path) -> str:
    """Cages that wait for the compiler can be killed, and the runner ends while it is at work."""
    (root / "slow.wasm").write_bytes(slow_module(400, 2000))
    (root / "slow.wasm").chmod(0o755)
    if wrong := ended(run(lind_boot, root, "compiles.wasm"), {0}):
        return wrong
    # The first cage becomes that program, and nothing else is there to take signals.
    running = subprocess.Popen([lind_boot, "--root", root, "compiles.wasm", "1"], stdin=subprocess.DEVNULL)
    compilers = until(lambda: [process for process in below(running.pid) if below(process)])
    workers = [worker for compiler in compilers for worker in below(compiler)]
    running.terminate()
    try:
        status = running.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        return "SIGTERM did not end it"
    if not workers:
        return "nothing was compiled"
    if status not in (-15, 143):
        return f"ended with {status}"
    return "" if until(lambda: not any(map(runs, compilers + workers))) else "the compiler went on"


def nobody_waits_for_the_compiler(lind_boot: Path, root: Path) -> str:
    """Modules that killed cages had begun to compile are not compiled any further, while the runner goes on."""
    (root / "slow.wasm").write_bytes(slow_module(400, 2000))
    (root / "slow.wasm").chmod(0o755)
    running = subprocess.Popen([lind_boot, "--root", root, "compiles.wasm", "and", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        workers = until(lambda: [worker for compiler in below(running.pid) for worker in below(compiler)])
        said = running.stdout.read(1)
        gone = until(lambda: not any(map(runs, workers)))
        running.stdin.close()
        status = running.wait(timeout=SECONDS)
    finally:
        running.kill()
    if not workers or said != b"." or status != 0:
        return f"{len(workers)} modules were compiled; it said {said!r} and ended with {status}"
    return "" if gone else "the compiler went on"


def more_modules_than_are_compiled_at_once(lind_boot: Path, root: Path) -> str:
    """The runner ends while modules wait for their turn to be compiled, and with it all that is compiled."""
    compile_program(root, "many_compile")
    for i in range(6):
        (root / f"slow{i}.wasm").write_bytes(slow_module(400, 2000 + i))
        (root / f"slow{i}.wasm").chmod(0o755)
    running = subprocess.Popen([lind_boot, "--root", root, "many_compile", "6"], stdin=subprocess.PIPE)
    try:
        compilers = until(lambda: [process for process in below(running.pid) if len(below(process)) > 1])
        workers = [worker for compiler in compilers for worker in below(compiler)]
        running.stdin.close()
        status = running.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "the runner did not end"
    finally:
        running.kill()
    if not workers or status != 0:
        return f"{len(workers)} modules were compiled; it ended with {status}"
    left = [process for process in compilers + workers if Path(f"/proc/{process}").exists()]
    return f"{left} are left" if left else ""


def remembers_while_others_compile(lind_boot: Path, root: Path) -> str:
    """Slow modules that wait for the compiler keep nobody waiting who only wants it to make a note."""
    compile_program(root, "many_compile")
    for i in range(6):
        (root / f"slow{i}.wasm").write_bytes(slow_module(400, 2000 + i))
        (root / f"slow{i}.wasm").chmod(0o755)
    home = Path(tempfile.mkdtemp())
    environment = {**os.environ, "HOME": str(home), "XDG_DATA_HOME": "", "XDG_CACHE_HOME": ""}
    module = Path(shutil.copy(root / "numbers.wasm", root / "noted.wasm"))
    module.chmod(0o755)
    subprocess.run([lind_boot, "warm", module], env=environment, check=True, capture_output=True)
    time.sleep(0.1)  # so that a change would show
    running = subprocess.Popen([lind_boot, "--root", root, "many_compile", "6", "/noted.wasm"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        until(lambda: [process for process in below(running.pid) if len(below(process)) > 1])
        running.stdin.write(b".")
        running.stdin.flush()
        ran = running.stdout.read(1)
        file = module.stat()
        noted = (home / f".cache/lind/{file.st_dev:x}-{file.st_ino:x}.note").exists()
        running.stdin.close()
        status = running.wait(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "the runner did not end"
    finally:
        running.kill()
        shutil.rmtree(home)
    if ran != b"." or status:
        return f"it said {ran!r} and ended with {status}"
    return "" if noted or not shows_writes(module) else "no note was made"


def shows_writes(file: Path) -> bool:
    """Whether files of this file system are noted at all."""
    kind = subprocess.run(["stat", "-f", "-c", "%t", file], check=True, capture_output=True, text=True).stdout.strip()
    return kind in ("ef53", "58465342", "9123683e")


def more_compilers_than_runners(lind_boot: Path, root: Path) -> str:
    """Compilations end with a runner that is killed."""
    (root / "slow.wasm").write_bytes(slow_module(400, 2000))
    (root / "slow.wasm").chmod(0o755)
    running = subprocess.Popen([lind_boot, "--root", root, "compiles.wasm", "1"], stdin=subprocess.DEVNULL)
    compilers = until(lambda: [process for process in below(running.pid) if below(process)])
    workers = [worker for compiler in compilers for worker in below(compiler)]
    running.kill()
    running.wait()
    if not workers:
        return "nothing was compiled"
    return "" if until(lambda: not any(map(runs, compilers + workers))) else "the compiler went on"


def code_that_is_none(lind_boot: Path, root: Path) -> str:
    """A long file without contents that begins as compiled code does: it is refused before the host's memory is filled with a copy of it."""
    allowed = 256 << 20
    for size in (600 << 20, 1 << 43):
        with (root / "sparse.cwasm").open("wb") as file:
            file.write(b"\x7fELF\x02\x01\x01\xc8")
            try:
                file.truncate(size)
            except OSError:
                continue  # more than the file system takes
        # A copy in memory counts as the size of a file.
        done = run(lind_boot, root, "sparse.cwasm", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, allowed)))
        if done.returncode != 126 or "was not compiled by you" not in done.stderr:
            return f"{size} bytes: {done.returncode}: {done.stderr}"
    return ""


def compiling_takes_all_memory(lind_boot: Path, root: Path) -> str:
    """A module whose compilation takes more memory than the user allows: ENOMEM for the cage that runs it, and nothing for others."""
    (root / "slow.wasm").write_bytes(slow_module(400, 2000))
    (root / "slow.wasm").chmod(0o755)
    size = 500 << 20
    return ended(run(lind_boot, root, "starves.wasm", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (size, size))), {0})


def below(process: int) -> list[int]:
    """The children of a process."""
    try:
        return [int(child) for thread in Path(f"/proc/{process}/task").iterdir() for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def runs(process: int) -> bool:
    """Whether there is such a process that is not only waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(found: Callable[[], object]) -> object:
    """The result of `found`, as soon as it has one."""
    end = time.monotonic() + SECONDS / 4
    while not (what := found()) and time.monotonic() < end:
        time.sleep(0.01)
    return what


def used(lind_boot: Path, root: Path, *argv: str) -> tuple[str, float, float, int]:
    """Runs something that must end with 0: what was wrong, how long it took, the processor time it took, and its memory in KiB."""
    began = time.monotonic()
    running = subprocess.Popen([lind_boot, "--root", root, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    wrong = "" if running.returncode == 0 else f"ended with {running.returncode}"
    return wrong, time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def timers_that_are_always_due(lind_boot: Path, root: Path) -> str:
    """A thousand timers of 1 ns get only a part of the thread that serves all timers; those of another cage (100 times 20 ms) are in time."""
    run(lind_boot, root, "timers.wasm", "compile", "and", "end")
    wrong, took, busy, _ = used(lind_boot, root, "timers.wasm")
    if wrong or busy < 0.3 * took:
        return wrong
    return f"{busy:.2f} s of processor time in {took:.2f} s"


def timers_set_anew(lind_boot: Path, root: Path) -> str:
    """Setting a timer three million times leaves nothing behind."""
    wrong, _, _, memory = used(lind_boot, root, "timers.wasm", "set", "anew")
    return wrong or ("" if memory < 120 << 10 else f"{memory >> 10} MiB")


def taking_nothing(kind: str) -> tuple[int, list[int]]:
    """A descriptor that takes nothing that is written to it, and what is to be closed afterwards."""
    if kind == "full device":
        full = os.open("/dev/full", os.O_WRONLY)
        return full, [full]
    out, into = os.pipe()
    if kind == "closed pipe":
        os.close(out)
        return into, [into]
    os.set_blocking(into, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(into, b"x" * 4096)
    os.set_blocking(into, kind == "full pipe")
    return into, [out, into]


def without_stderr(lind_boot: Path, root: Path, *argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", lind_boot, "--root", root, *argv], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, timeout=SECONDS, check=False)


def complaints_that_nobody_takes(lind_boot: Path, root: Path) -> str:
    """The runner's messages cannot be written: the guest goes on as if they had been."""
    for kind in ("full device", "closed pipe", "full pipe", "full pipe that does not wait"):
        for argv, wanted in ((("fork_pinned.wasm",), 0), (("throw_uncaught.wasm",), 128 + 6),
                             (("--verbose", "--perf", "--", "fork_pinned.wasm"), 0), (("--perf=json", "throw_uncaught.wasm"), 128 + 6)):
            sink, ends = taking_nothing(kind)
            try:
                done = subprocess.run([lind_boot, "--root", root, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=sink, timeout=SECONDS, check=False)
            finally:
                for end in ends:
                    os.close(end)
            if done.returncode != wanted:
                return f"{' '.join(argv)} with a {kind} ended with {done.returncode}, not {wanted}"
    done = without_stderr(lind_boot, root, "--verbose", "--perf", "--", "fork_pinned.wasm")
    return "" if done.returncode == 0 else f"without standard error it ended with {done.returncode}"


def many_complaints_that_nobody_reads(lind_boot: Path, root: Path) -> str:
    """A reader who does not read is waited for once, and not with each of more lines than there are seconds for this test."""
    compile_program(root, "complains")
    sink, ends = taking_nothing("full pipe")
    try:
        done = subprocess.run([lind_boot, "--root", root, "complains", str(2 * SECONDS)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=sink, timeout=SECONDS, check=False)
    finally:
        for end in ends:
            os.close(end)
    return "" if done.returncode == 0 else f"ended with {done.returncode}"


def traps_name_the_program(lind_boot: Path, root: Path) -> str:
    """The same module under two names: each trap is reported with the name that was run."""
    shutil.copy(root / "throw_uncaught.wasm", root / "twin.wasm")
    done = run(lind_boot, root, "one_after_the_other.wasm", "/throw_uncaught.wasm", "/twin.wasm")
    told = [line.split()[1] for line in done.stderr.splitlines() if "SIGABRT" in line]
    return "" if told == ["/throw_uncaught.wasm", "/twin.wasm"] else f"told of {told}\n{done.stderr}"


def compile_program(root: Path, name: str) -> None:
    """A program of this folder in C."""
    subprocess.run([HERE.parent.parent / "scripts/lind_compile", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2",
                    HERE / f"{name}.c", "-o", root / f"{name}.cwasm"], check=True, capture_output=True)


def things_outside_memory(lind_boot: Path, root: Path) -> str:
    """Of everything that a cage has outside its memory there is an end, before it is much of the runner's."""
    compile_program(root, "hog")
    for kind in ("semaphores", "undo", "messages", "queued signals", "timers", "record locks", "POSIX queues", "shared memory",
                 "memory files", "pseudoterminals", "inotify", "nested epoll"):
        wrong, _, _, memory = used(lind_boot, root, "--memory", "64", "hog", kind)
        if wrong or memory > 80 << 10:
            return f"{kind}: {wrong or f'{memory >> 10} MiB'}"
    return ""


def what_the_kernel_keeps_is_charged(lind_boot: Path, root: Path) -> str:
    """Semaphores, what is to be given back of them, and messages that hold nothing count as memory of the cage: for its limit and for a grate's."""
    compile_program(root, "hog")
    for kind in ("semaphores", "undo", "messages"):
        for before in (("--memory", "12"), ("resource_grate", "--memory", "12M")):
            done = run(lind_boot, root, *before, "hog", kind)
            if not done.stdout.endswith("then Out of memory\n"):
                return f"{kind} with {' '.join(before)}: {done.stdout}{done.stderr}"
    return ""


def descriptors_parked_in_messages(lind_boot: Path, root: Path) -> str:
    """Each cage may have as many in flight as it may have open, and the others go on sending."""
    compile_program(root, "park")
    for cages in (1, 6):
        done = run(lind_boot, root, "park", str(cages))
        parked = int((done.stdout.split() or ["", "0"])[-1])
        if done.returncode or not 1000 <= parked <= 1500:
            return f"{cages} cages: ended with {done.returncode}\n{done.stdout}{done.stderr}"
    # Behind a grate they are open descriptors, of whichever cage.
    done = run(lind_boot, root, "resource_grate", "--files", "60", "park", "2", "5")
    parked = int((done.stdout.split() or ["", "0"])[-1])
    return "" if 0 < parked < 60 and "limit files" in done.stderr else f"behind a grate: {done.stdout}{done.stderr}"


def still_there(done: subprocess.CompletedProcess[str]) -> str:
    """Whether all went on for the cage that wanted little."""
    fine = done.returncode == 0 and done.stdout.endswith("still here: 0\n")
    return "" if fine else f"ended with {done.returncode}\n{done.stdout}{done.stderr}"


def threads_of_all_cages(lind_boot: Path, root: Path) -> str:
    """Cages use all threads that are allowed: a request for one more fails, and others fork."""
    compile_program(root, "crowd")
    return still_there(run(lind_boot, root, "crowd", "threads", "40", "400"))


def mappings_of_all_cages(lind_boot: Path, root: Path) -> str:
    """Cages take all mappings that the host has for a process, but for what is left to the runner and to small cages."""
    compile_program(root, "crowd")
    return still_there(run(lind_boot, root, "crowd", "mappings", "8"))


@contextlib.contextmanager
def as_ordinary_user(lind_boot: Path, root: Path, program: str) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs a program of the root, which otherwise holds only numbers.wasm, as a user with no other processes."""
    user = 54321
    with tempfile.TemporaryDirectory() as home:
        place, boot = Path(home), Path(home) / "lind-boot"
        shutil.copy(lind_boot, boot)
        shutil.copytree(root, place / "root", ignore=lambda _, names: [name for name in names if name not in (program, "numbers.wasm")])
        (place / "root/numbers.wasm").chmod(0o755)
        (place / "root/tmp").mkdir(exist_ok=True)
        for path in [place, *place.rglob("*")]:
            os.chown(path, user, user)

        def run_it(limit: int, most: int, *argv: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([boot, "--root", place / "root", program, *argv], user=user, group=user, extra_groups=[],
                                  preexec_fn=lambda: resource.setrlimit(limit, (most, most)), env={"HOME": home},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)

        yield run_it


def compiling_without_threads(lind_boot: Path, root: Path) -> str:
    """The host has no thread left, and no process, when a module is to be compiled: that is an error, and what is compiled runs."""
    if os.geteuid() != 0:
        return ""
    compile_program(root, "crowd")
    with as_ordinary_user(lind_boot, root, "crowd.wasm") as run_it:
        # Whether one process is left depends on what else that user runs.
        for most, wanted in ((60, "09"), (4000, "0"), (60, "0")):
            done = run_it(resource.RLIMIT_NPROC, most, "compile", "/numbers.wasm")
            if done.returncode or not done.stdout.endswith(tuple(f"still here: {status}\n" for status in wanted)):
                return f"with {most} threads it {ended(done, {-1})}"
    return ""


# The least that each allows the runner to start with, and what makes it short later.
STRAINS = [(resource.RLIMIT_AS, [size << 20 for size in (4300, 4400, 4600, 5000, 6000, 8900, 13500, 22000)]),
           (resource.RLIMIT_DATA, [size << 20 for size in (8, 84, 96, 128, 256)]),
           (resource.RLIMIT_NOFILE, [16, 24, 32, 48, 96, 250]),
           (resource.RLIMIT_NPROC, [1, 2, 4, 8, 16, 40, 120])]


def strained(lind_boot: Path, root: Path) -> str:
    """The runner is short of memory, of descriptors, or of threads while cages ask for all there is: an error or the end of the cage that asks."""
    if os.geteuid() != 0:
        return ""
    compile_program(root, "strain")
    # All goes well, or the first program does not start, or it ends for want of room.
    wanted = {0: "still here\n", 125: "", 126: "", 128 + signal.SIGKILL: ""}
    # The module: code that root compiled is nothing to another user.
    with as_ordinary_user(lind_boot, root, "strain.wasm") as run_it:
        if wrong := ended(run_it(resource.RLIMIT_CORE, 0, "1", "/numbers.wasm"), {0}):
            return wrong
        for limit, sizes in STRAINS:
            for most in sizes:
                done = run_it(limit, most, "1", "/numbers.wasm")
                if wanted.get(done.returncode) != done.stdout or "panic" in done.stderr or "memory allocation" in done.stderr:
                    return f"limit {limit} of {most}: ended with {done.returncode}\n{done.stdout}{done.stderr[:2000]}"
    return ""


def tables_are_memory(lind_boot: Path, root: Path) -> str:
    """Each of four tables would be 8 MiB."""
    few, all_of_them = (run(lind_boot, root, "--memory", memory, "tables.wasm").returncode for memory in ("20", "200"))
    return "" if 1 <= few <= 2 and all_of_them == 4 else f"{few} tables within 20 MiB, {all_of_them} within 200"


def commands_that_nobody_reads(lind_boot: Path, root: Path) -> str:
    """Output on request: a device that does not take it is an error, a reader that leaves is not, and a late reader gets all."""
    for command in (("syscalls",), ("inspect", str(root / "numbers.wasm")), ("compile", str(root / "numbers.wasm"), "-o", str(root / "again.cwasm"))):
        for kind, wanted in (("full device", 125), ("closed pipe", 0)):
            sink, ends = taking_nothing(kind)
            done = subprocess.run([lind_boot, *command], stdout=sink, stderr=subprocess.DEVNULL, timeout=SECONDS, check=False)
            for end in ends:
                os.close(end)
            if done.returncode != wanted:
                return f"{command[0]} with a {kind} ended with {done.returncode}, not {wanted}"
    wanted_text = subprocess.run([lind_boot, "syscalls"], capture_output=True, check=True).stdout
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(into, False)
    with subprocess.Popen([lind_boot, "syscalls"], stdout=into) as running, open(out, "rb") as reader:
        os.close(into)
        time.sleep(1.5)
        text = reader.read()
        status = running.wait(SECONDS)
    return "" if status == 0 and text == wanted_text else f"a late reader got {len(text)} bytes of {len(wanted_text)}, status {status}"


ALL: dict[str, Callable[[Path, Path], str]] = {
    case.__name__: case
    for case in (guest_cwasm, rewritten_while_loading, rewritten_while_running, no_host_descriptors, no_host_memory,
                 compiles_for_minutes, nobody_waits_for_the_compiler, more_modules_than_are_compiled_at_once, remembers_while_others_compile, more_compilers_than_runners,
                 code_that_is_none, compiling_takes_all_memory, complaints_that_nobody_takes, many_complaints_that_nobody_reads, commands_that_nobody_reads,
                 traps_name_the_program, things_outside_memory,
                 what_the_kernel_keeps_is_charged, descriptors_parked_in_messages, timers_that_are_always_due, timers_set_anew,
                 threads_of_all_cages, mappings_of_all_cages, compiling_without_threads, tables_are_memory, strained)
}
