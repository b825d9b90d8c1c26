"""Tests what mounts mean, whoever makes them: the host, whose answers are Linux's, or lind-boot's kernel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from world import BOOT, SECONDS, TOP, Failed, Skipped, World, compiled, holds, same

# The lines of the program's output that are known beforehand; the rest is as on Linux.
EXPECTED = [
    "/a/sub/.. and /a: the same",
    "in /a/sub/deep",
    'rename("/a/kept", "/a/sub/kept"): Cross-device link',
    'rename("/a/sub", "/a/other"): Resource busy',
    'rmdir("/a/sub"): Resource busy',
    'opened(AT_FDCWD, "../../secret", O_RDONLY): No such file or directory',
    'opened(AT_FDCWD, "/b/file", O_WRONLY): Read-only file system',
    'setxattr("/b/file", "user.a", "x", 1, 0): Read-only file system',
    "fchmod(received, 0600): Read-only file system",
    "/proc/self/mountinfo /a/sub rw",
    "/proc/self/mountinfo /b ro",
    "flags 6 6 7 7",
    "event watched",
]


def owned(world: World, top: Path) -> None:
    if world.user is not None:
        for path in [top, *top.rglob("*")]:
            os.chown(path, world.user, world.user)


def laid_out(world: World) -> tuple[str, ...]:
    """Makes the directories that the program speaks of; the options that mount them."""
    top = world.folder / "mounts"
    shutil.rmtree(top, ignore_errors=True)
    for folder in ["a/in/d", "a/q", "sub/deep", "b/dir"]:
        (top / folder).mkdir(parents=True)
    for file in ["a/kept", "sub/file", "b/file", "one", "fixed", "secret"]:
        (top / file).write_text(file)
    os.mkfifo(top / "b" / "fifo")
    owned(world, top)
    volumes = ["a:/a", "sub:/a/sub", "sub:/a/q/r", "a/in:/in", "b:/b:ro", "one:/one", "fixed:/fixed:ro"]
    return tuple(word for volume in volumes for word in ("-v", f"{top}/{volume}"))


def permitted(world: World) -> bool:
    """Whether the host makes mounts for this user."""
    return world.run("--mounts=bind", "--explain", "true").returncode == 0


def said(world: World, how: str, name: str = "mounts", *words: str) -> list[str]:
    program = world.folder / "tool" / f"{name}.wasm"
    shutil.copy(compiled(name), program)
    program.chmod(0o755)
    # No grate has a say.
    policy = world.folder / "mounts.toml"
    policy.write_text('network = "host"\n')
    policy.chmod(0o644)
    done = world.run(f"--mounts={how}", "--policy", str(policy), *laid_out(world), str(program), *words)
    if done.returncode != 7:
        raise Failed(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.splitlines()


def by_the_kernel(world: World) -> None:
    lines = said(world, "kernel")
    for line in EXPECTED:
        if line not in lines:
            raise Failed(f"{line!r} is not in {lines}")


def as_the_host_has_it(world: World) -> None:
    if not permitted(world):
        raise Skipped("the host permits no mounts")
    host, kernel = said(world, "bind"), said(world, "kernel")
    different = [f"host: {one}, kernel: {other}" for one, other in zip(host, kernel) if one != other]
    same("different", different, [])
    same("lines", len(kernel), len(host))


def nobody_gets_out(world: World) -> None:
    for how in ["kernel", *(["bind"] if permitted(world) else [])]:
        same(how, said(world, how, "meanwhile", "race", "400"), ["escapes 0"])


def nothing_is_left(world: World) -> None:
    """The kernel's mounts have a directory of the host's, which goes with the run, also if that is killed, whatever is in it."""
    def left() -> list[str]:
        folders = [world.runtime / "lind", Path(f"/tmp/lind-{world.user or 0}")]
        return [str(path) for folder in folders if folder.is_dir() for path in folder.glob("mounts-*")]

    def gone(before: list[str]) -> bool:
        deadline = time.monotonic() + 10
        while set(left()) - set(before) and time.monotonic() < deadline:
            time.sleep(0.02)
        return not set(left()) - set(before)

    before = left()
    probe = str(world.folder / "tool" / "probe")
    same("files", world.run("--mounts=kernel", probe, "w:/tmp/a", "w:/home/user/a", "r:/tmp/a").stdout.count(": ok"), 3)
    same("after its end", gone(before), True)
    child = world.begin("run", "--mounts=kernel", probe, "sleep")
    try:
        child.stdout.readline()
        same("while it runs", len(set(left()) - set(before)), 1)
        # Nowhere of the user's.
        same("works in", Path(os.readlink(f"/proc/{child.pid}/cwd")).parent.parent.name[:4], "lind")
    finally:
        child.kill()
        child.wait()
    same("after a kill", gone(before), True)
    same("said", said(world, "kernel", "meanwhile", "litter"), [])
    same("after litter", gone(before), True)


def in_memory(world: World) -> None:
    """A file system in memory has its size, whether the host or lind-boot's kernel provides it."""
    lines = world.probe("w:/m/a", "m:/m/b", "r:/m/a", options=("--mounts=kernel", "--tmpfs", "/m:1M", "-v", "."))
    same("ends", [line.rsplit(": ", 1)[1] for line in lines[1:]], ["ok"] * 3)
    for how in ("kernel", "bind"):
        done = world.run(f"--mounts={how}", "--tmpfs", "/m:1M", "-v", ".", str(world.folder / "tool" / "probe"), "n:/m/")
        count = int(done.stdout.rsplit(": ", 1)[1]) if "empty files: " in done.stdout else -1
        same(f"{how}: {count} files have room, which cost memory without a byte in them", 64 <= count < 10000, True)


def names_in_scratch(world: World) -> None:
    """/tmp has room for as many files whoever makes the mounts, and each name counts; attributes take none of the host's memory."""
    program = world.folder / "tool" / "scratch.wasm"
    shutil.copy(compiled("scratch"), program)
    by = {how: world.run(f"--mounts={how}", str(program), "/tmp").stdout.splitlines() for how in ["kernel", *(["bind"] if permitted(world) else [])]}
    counted = by["kernel"]
    same("first and last", [counted[:1], counted[-2:]], [["65536 files"], ["attribute: Not supported", "end: ok, +4"]])
    for how, lines in by.items():
        same(how, lines[2:-2], counted[2:-2])
        same(f"{how}: first", lines[0], counted[0])


def where_the_image_has_no_place(world: World) -> None:
    """Mount points are made in it, whether the host or lind-boot makes the mounts; the rest of a directory stays as it is, and cannot be changed."""
    image = world.folder / "image"
    for folder in ["bin", "usr/share/doc", "usr/.own", "home/user", "home/other"]:
        (image / folder).mkdir(parents=True)
    for file in ["usr/file", "usr/share/doc/text", "home/user/old", "home/other/text"]:
        (image / file).write_text(file)
    (image / "usr" / "bin").symlink_to("../bin")
    (image / "usr" / "share").chmod(0o751)
    owned(world, image)
    kept = world.project / "kept"
    volumes = [".:/usr/src/app", f"{kept}:/usr/share/one:ro", ".:/new/way"]
    options = ("--image", str(image), *(word for volume in volumes for word in ("-v", volume)), "--tmpfs", "/usr/cache", "-w", "/usr/src/app")
    tries = {"r:kept": "ok", "w:made": "ok", "r:/usr/src/app/made": "ok", "r:/new/way/made": "ok", "r:/usr/share/one": "ok", "w:/usr/cache/a": "ok",
             "w:/home/user/new": "ok", "r:/home/other/text": "ok", "r:/home/user/old": "No such file or directory",
             "r:/usr/share/doc/text": "ok", "r:/usr/file": "ok", "r:/usr/.own": "ok", "r:/usr/bin/../usr/file": "ok"}
    tries |= dict.fromkeys(["w:/usr/share/one", "w:/usr/x", "w:/usr/src/x", "w:/usr/share/x", "w:/usr/share/doc/x", "w:/usr/file", "w:/usr/.own/x", "w:/new/x"],
                           "Read-only file system")
    for how in ["kernel", *(["bind"] if permitted(world) else [])]:
        lines = world.probe(*tries, options=(f"--mounts={how}", *options))
        same(how, [line.rsplit(": ", 1)[1] for line in lines[1:]], list(tries.values()))
        same("starts in", lines[0], "in /usr/src/app home /home/user")
        done = world.run(f"--mounts={how}", "--image", str(image), "-v", ".:/usr/bin/app", "true")
        same("through a link", done.returncode, 125)
        holds("through a link", done.stderr, "is a symbolic link")
    same("the image is as it was", sorted(path.name for path in (image / "usr").iterdir()), [".own", "bin", "file", "share"])


def beside_a_change_of_the_image(world: World) -> None:
    """A run starts while somebody else makes and removes directories and files in the image."""
    image, over = world.folder / "changing", threading.Event()
    (image / "bin").mkdir(parents=True)
    owned(world, image)

    def change(number: int) -> None:
        while not over.is_set():
            for name in range(20):
                (image / f"d{number}.{name}").mkdir()
                (image / f"f{number}.{name}").touch()
            for name in range(20):
                (image / f"d{number}.{name}").rmdir()
                (image / f"f{number}.{name}").unlink()

    changers = [threading.Thread(target=change, args=(number,)) for number in range(2)]
    for changer in changers:
        changer.start()
    try:
        for how in ["kernel", *(["bind"] if permitted(world) else [])]:
            for _ in range(15):
                done = world.run(f"--mounts={how}", "--image", str(image), "-v", ".", str(world.folder / "tool" / "probe"), "r:kept")
                same(f"{how}: {done.stderr}", done.stdout.splitlines()[1:], ["read kept: ok"])
    finally:
        over.set()
        for changer in changers:
            changer.join()


def outer_before_inner(world: World) -> None:
    """In whatever order they are named."""
    inner = world.folder / "inner"
    inner.mkdir()
    (inner / "file").write_text("x")
    (world.project / "sub").mkdir()
    owned(world, inner)
    owned(world, world.project)
    volumes = ("-v", f"{inner}:/data/sub", "-v", ".:/data")
    memory = ("-v", f"{inner}:/m/a/b", "--tmpfs", "/m/a/.b/c", "--tmpfs", "/m")
    for how in ["kernel", *(["bind"] if permitted(world) else [])]:
        lines = world.probe("r:/data/sub/file", "r:/data/kept", options=(f"--mounts={how}", *volumes))
        same(how, [line.rsplit(": ", 1)[1] for line in lines[1:]], ["ok"] * 2)
        lines = world.probe("w:/n/.b/x", "m:/home/user/x", options=(f"--mounts={how}", "--tmpfs", "/n/.b", "--tmpfs", "/home/user:1M"))
        same(how, [line.rsplit(": ", 1)[1] for line in lines[1:]], ["ok"] * 2)
        done = world.run(f"--mounts={how}", "-v", f"{inner}:/home:ro", str(world.folder / "tool" / "probe"), "r:/home/file")
        same(how, done.stdout.splitlines(), ["in /home home /home/user", "read /home/file: ok"])
        if how == "bind":
            lines = world.probe("r:/m/a/b/file", "w:/m/a/.b/c/x", "w:/m/x", options=(f"--mounts={how}", *memory))
            same(how, [line.rsplit(": ", 1)[1] for line in lines[1:]], ["ok"] * 3)


def told(world: World) -> None:
    found = json.loads(world.run("--mounts=kernel", "--explain", "--json", "-v", ".", "true").stdout)
    same("explained", found["mounts"], "kernel")
    holds("sentences", world.run("--mounts=kernel", "--explain", "true").stdout, "made by lind-boot")
    done = world.run("--mounts=kernel", "--verbose", str(world.folder / "tool" / "probe"))
    holds("walls", done.stderr, "mounts kept by lind-boot")


def where_none_are_permitted(world: World) -> None:
    """lind-boot makes the mounts itself without an option for it; and reports it if the host was to make them."""
    if not all(map(shutil.which, ["unshare", "setpriv"])):
        raise Skipped("needs unshare and setpriv")
    script = 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'

    def inside(*command: str) -> subprocess.CompletedProcess[str]:
        command = ("unshare", "--user", "--map-root-user", "sh", "-c", script, "sh", *command)
        return subprocess.run(command, cwd=world.project, env=world.known, user=world.user, group=world.user, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, check=False)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return inside(str(BOOT), "run", *words)

    if inside("true").returncode or not inside("unshare", "--user", "true").returncode:
        raise Skipped("the host has no user namespace in which there can be no more")
    probe = str(world.folder / "tool" / "probe")
    done = run("-v", ".", probe, "w:new", "r:kept", f"r:{world.folder}/secret", "w:/tmp/a", "w:/x")
    ends = [line.rsplit(": ", 1)[1] for line in done.stdout.splitlines()[1:]]
    same("ends", ends, ["ok", "ok", "No such file or directory", "ok", "Read-only file system"])
    done = run("--mounts=bind", "-v", ".", probe)
    same("status", done.returncode, 125)
    holds("says so", done.stderr, "--mounts=kernel")


def in_a_chroot(world: World) -> None:
    """/proc there has another path for lind-boot after it has a mount namespace of its own."""
    if world.user is not None:
        raise Skipped("only root may chroot")
    jail = world.folder / "jail"
    for folder in ["proc", "dev", "tmp", "target/release", "build", "lindfs/etc", "lindfs/tmp"]:
        (jail / folder).mkdir(parents=True)
    shutil.copy(BOOT, jail / "target/release")
    shutil.copytree(TOP / "build/grates", jail / "build/grates")
    for folder in [world.project, world.folder / "tool"]:
        shutil.copytree(folder, jail / folder.name)
    code = {name: f"/{name}" for name in ["XDG_DATA_HOME", "XDG_CACHE_HOME"]}
    for name in code:
        if Path(world.known[name]).exists():
            shutil.copytree(world.known[name], jail / name)
    command = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
    # An image that is named need not be looked for beside the program.
    for image in ([], ["--image", "/lindfs"]):
        line = ["/target/release/lind-boot", "run", *image, "-v", "/project", "--", "/tool/probe", "r:/project/kept"]
        done = subprocess.run(["unshare", "-m", "sh", "-c", command, jail, *line], env={"PATH": os.environ["PATH"], "HOME": "/"} | code,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False)
        same(f"{image}: status of {done.stderr}", done.returncode, 7)
        holds("in the chroot", done.stdout, "read /project/kept: ok")


def memory_is_listed(world: World) -> None:
    for maker in ("host", "kernel"):
        done = world.run(f"--mounts={maker}", "--tmpfs", "/m:1M", "-v", f"{world.folder}/tool:/tool:ro", "/tool/command", "text", "/proc/self/mounts")
        if maker == "host" and done.returncode == 125:
            continue
        kinds = [line.split()[2:3] for line in done.stdout.splitlines() if line.split()[1:2] == ["/m"]]
        same(maker, kinds, [["tmpfs"]])


TESTS = [memory_is_listed, by_the_kernel, as_the_host_has_it, nobody_gets_out, nothing_is_left, in_memory, names_in_scratch, where_the_image_has_no_place, beside_a_change_of_the_image, outer_before_inner, told, in_a_chroot, where_none_are_permitted]
