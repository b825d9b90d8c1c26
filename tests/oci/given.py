"""Things that Kubernetes and podman give to containers besides a root: files in /dev, seccomp profiles, pods, limits to look at; and containers in front."""

from __future__ import annotations

import errno
import json
import os
import pty
import signal
import subprocess
import time

from limits import ensure_groups, group_of, read
from world import OCI, Failed, World, ends, equals, read_until


def files_in_dev(world: World) -> None:
    """Mounts of the host's files in /dev: shared memory of a pod, the termination log of Kubernetes. The cage's own names stay."""
    shared, log = world.folder / "shared", world.folder / "termination"
    shared.mkdir()
    (shared / "of-the-pod").write_text("pod\n")
    log.write_text("")
    mounts = [
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"},
        {"destination": "/dev/shm", "type": "bind", "source": str(shared), "options": ["rbind"]},
        {"destination": "/dev/termination-log", "type": "bind", "source": str(log), "options": ["rbind"]},
        {"destination": "/dev/fixed", "type": "bind", "source": str(log), "options": ["rbind", "ro"]},
        {"destination": "/dev/null", "type": "bind", "source": str(log), "options": ["rbind"]},
    ]
    paths = ["/dev/shm", "/dev/shm/of-the-pod", "/dev/termination-log", "/dev/fixed", "/dev/null", "/dev/other", "/dev/shm/../../etc/passwd", "/dev/shm/../null"]
    with world.container(world.bundle("look", *paths, mounts=mounts)) as container:
        equals((container.wait(), container.text().split()), (0, ["rw", "rw", "rw", "r-", "rw", "--", "rw", "rw"]))
    equals((shared / "made").exists(), True, "files in /dev/shm are the pod's")
    with world.container(world.bundle("look", "../null", "../../etc/passwd", "../pts", mounts=mounts, process={"cwd": "/dev/shm"})) as container:
        equals((container.wait(), container.text().split()), (0, ["rw", "rw", "r-"]), "the cage's own /dev is above a mount in it")
    with world.container(world.bundle("list", "/dev", mounts=mounts)) as container:
        equals(container.wait(), 0)
        names = container.text().split()
    equals([names.count(name) for name in ("shm", "termination-log", "fixed", "null", "urandom")], [1] * 5, "the names in /dev")
    with world.container(world.bundle("cat", "/proc/mounts", mounts=mounts)) as container:
        equals(container.wait(), 0)
        places = [line.split()[1] for line in container.text().splitlines()]
    equals([places.count(place) for place in ("/dev", "/dev/shm", "/dev/termination-log")], [1] * 3, "the list of mounts")
    limited = [{"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["size=64k", "mode=1777"]}]
    with world.container(world.bundle("fill", "/dev/shm/x", mounts=limited)) as container:
        equals((container.wait(), container.text()), (0, "65536\n"))


def devices(world: World) -> None:
    """Further names of the harmless ones; others have no effect, and a warning."""
    known = [{"path": path, "type": "c", "major": 1, "minor": minor, "fileMode": 0o666} for path, minor in (("/dev/nothing", 3), ("/made/for/zero", 5), ("/dev/null", 3))]
    others = [{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229}, {"path": "/dev/sda", "type": "b", "major": 8, "minor": 0}, {"path": "/dev/full", "type": "b", "major": 8, "minor": 0}]
    with world.container(world.bundle("look", "/dev/nothing", "/made/for/zero", "/dev/null", "/dev/fuse", "/dev/sda", "/dev/full", linux={"devices": known + others})) as container:
        equals((container.wait(), container.text().split()), (0, ["rw", "rw", "rw", "--", "--", "rw"]))
        warned = [json.loads(line)["msg"] for line in (container.bundle / "log").read_text().splitlines()]
    equals([line.split(": ")[:2] for line in warned], [["linux.devices", device["path"]] for device in others], "warnings")
    with world.container(world.bundle("cat", "/dev/nothing", linux={"devices": known})) as container:
        equals((container.wait(), container.text()), (0, ""), "it is /dev/null")
    with world.container(world.bundle("fill", "/made/for/zero", linux={"devices": known})) as container:
        equals((container.wait(), container.text()), (0, f"{1 << 20}\n"), "it is /dev/zero")
    ends(world.oci("run", "--bundle", world.bundle("exit", "0", linux={"devices": [{"path": "../dev/null", "type": "c", "major": 1, "minor": 3}]}), "wrong"), 1, "not an absolute path")


def seccomp_profiles(world: World) -> None:
    """Calls that a profile denies fail; a profile that cannot be kept starts nothing."""
    denied = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}]}
    with world.container(world.bundle("mkdir", "/made", linux={"seccomp": denied})) as container:
        equals(container.wait(), 13)
        ends(container.exec("guest", "mkdir", "/made"), 255, "not running")
    killed = {**denied, "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_KILL_PROCESS"}]}
    with world.container(world.bundle("mkdir", "/made", linux={"seccomp": killed})) as container:
        equals(container.wait(), 128 + signal.SIGSYS)
    with world.container(world.bundle("wait", linux={"seccomp": denied})) as container:
        container.until("waits")
        ends(container.exec("guest", "mkdir", "/made"), 13)
        ends(container.exec("guest", "echo", "hi"), 0)
    harmless = {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [{"names": ["kexec_load"], "action": "SCMP_ACT_ERRNO"}]}
    with world.container(world.bundle("mkdir", "/made", linux={"seccomp": harmless})) as container:
        equals(container.wait(), 0)
    for wrong, said in (({"defaultAction": "SCMP_ACT_NOTIFY"}, "SCMP_ACT_NOTIFY"), ({**denied, "listenerPath": "/run/x"}, "listenerPath"),
                        ({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": -1}]}, "errnoRet")):
        ends(world.oci("run", "--bundle", world.bundle("echo", "no", linux={"seccomp": wrong}), "wrong"), 1, said)


def seccomp_profiles_about_starting(world: World) -> None:
    """A profile is about the programs of the container, and not about the runner's own work: it may deny what starts them."""
    started = ["clone", "clone3", "fork", "vfork", "execve", "execveat"]
    without = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": started, "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}
    with world.container(world.bundle("echo", "hello", linux={"seccomp": without})) as container:
        equals((container.wait(), container.text()), (0, "hello\n"))
    with world.container(world.bundle("wait", linux={"seccomp": without})) as container:
        container.until("waits")
        # The C library has one error for threads.
        for words, status in ((["child"], 38), (["thread"], errno.EAGAIN), (["run", "/bin/guest", "exit", "0"], 38)):
            ends(container.exec("guest", *words), status)
        ends(container.exec("guest", "exit", "7"), 7)
    # The calls of the runner between a process and its program are its own, too.
    own = ["setresuid", "setresgid", "setgroups", "setsid", "dup2", "dup3", "umask", "chdir", "prctl", "capset", "prlimit64", "ioctl"]
    strict = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": own, "action": "SCMP_ACT_KILL_PROCESS"}]}
    process = {"user": {"uid": 7, "gid": 8, "additionalGids": [9]}, "noNewPrivileges": True}
    with world.container(world.bundle("exit", "5", linux={"seccomp": strict}, process=process)) as container:
        equals(container.wait(), 5)
    with world.container(world.bundle("child", annotations={"run.lind.grates": "umask_grate"}, linux={"seccomp": without})) as container:
        equals(container.wait(), 38)


def pods(world: World) -> None:
    """The sandbox of a pod runs no program of its image, and keeps the host name for the pod's containers."""
    kubernetes = {"annotations": {"io.kubernetes.cri.container-type": "sandbox"}, "process": {"args": ["/pause"]}}
    podman = {"annotations": {"io.container.manager": "libpod"}, "process": {"args": ["/catatonit", "-P"]}}
    for more in (kubernetes, podman):
        with world.container(world.bundle(hostname="of-the-pod", **more)) as sandbox:
            equals(world.state(sandbox.name)["status"], "running")
            equals(os.readlink(f"/proc/{sandbox.pid}/ns/uts") != os.readlink("/proc/self/ns/uts"), True, "a namespace of its own for the name")
            spaces = [{"type": kind, "path": f"/proc/{sandbox.pid}/ns/{name}"} for kind, name in (("network", "net"), ("uts", "uts"), ("ipc", "ipc"), ("pid", "pid"))]
            with world.container(world.bundle("describe", hostname="", linux={"namespaces": spaces})) as container:
                equals(container.wait(), 0, container.text())
                equals(json.loads(container.text())["host"], "of-the-pod")
            ends(sandbox.exec("guest", "echo"), 255, "sandbox of a pod")
            ends(sandbox.kill("TERM"), 0)
            equals(sandbox.wait(), 128 + signal.SIGTERM)
    equals(os.uname().nodename == "of-the-pod", False, "the host's own name")


def own_limits(world: World) -> None:
    """/sys/fs/cgroup shows the limits of the container."""
    resources = {"memory": {"limit": 300 << 20}, "cpu": {"quota": 150000, "period": 100000}, "pids": {"limit": 200}}
    for name, expected in (("memory.max", str(300 << 20)), ("cpu.max", "150000 100000"), ("pids.max", "200")):
        with world.container(world.bundle("cat", f"/sys/fs/cgroup/{name}", linux={"resources": resources})) as container:
            equals((container.wait(), container.text()), (0, f"{expected}\n"), name)


def updated_limits(world: World) -> None:
    """The limits there change with `update`, also of a paused container, and a limit that an update does not name stays."""
    ensure_groups()
    resources = {"memory": {"limit": 300 << 20}, "cpu": {"quota": 150000, "period": 50000}, "pids": {"limit": 200}}
    with world.container(world.bundle("wait", linux={"resources": resources})) as container:
        container.until("waits")

        def seen() -> list[str]:
            return [ends(container.exec("guest", "cat", f"/sys/fs/cgroup/{name}"), 0).strip() for name in ("memory.max", "cpu.max", "pids.max")]

        ends(world.oci("update", "--memory", str(400 << 20), container.name), 0)
        equals(seen(), [str(400 << 20), "150000 50000", "200"])
        ends(world.oci("update", "--cpu-quota", "70000", "--pids-limit", "300", container.name), 0)
        equals(seen(), [str(400 << 20), "70000 50000", "300"])
        equals(read(group_of(container.pid, "cpu"), "cpu.max", "cpu.cfs_period_us").split()[-1], "50000", "the period on the host")
        ends(world.oci("pause", container.name), 0)
        ends(world.oci("update", "--resources=-", container.name, stdin=None, input='{"memory": {"limit": -1}, "cpu": {"quota": -1}}'), 0)
        ends(world.oci("resume", container.name), 0)
        equals(seen(), ["max", "max 100000", "300"])
        ends(world.oci("update", "--memory", "many", container.name), 1, "many")


def signals_in_front(world: World) -> None:
    """`run` passes signals on, and ends as the program does."""
    command = [str(OCI), "--root", str(world.states), "run", "--bundle", str(world.bundle("wait")), "front"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        equals(running.stdout.readline(), "waits\n")
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            running.send_signal(number)
            equals(running.stdout.readline(), f"signal {int(number)}\n")
        running.send_signal(signal.SIGTERM)
        equals(running.wait(timeout=20), 3)
    equals(json.loads(ends(world.oci("list", "--format=json"), 0)), [], "left by run")


def terminal_in_front(world: World) -> None:
    """`run` without a console socket: the container's terminal is that of the command."""
    bundle = world.bundle("wait", process={"terminal": True})
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(OCI, [str(OCI), "--root", str(world.states), "run", "--bundle", str(bundle), "front"])
    read_until(fd, b"waits")
    os.write(fd, b"\x03")
    read_until(fd, b"signal 2")
    ends(world.oci("kill", "front", "TERM"), 0)
    due = time.monotonic() + 20
    while (found := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() > due:
            raise Failed("run does not end")
        time.sleep(0.01)
    os.close(fd)
    equals(os.waitstatus_to_exitcode(found[1]), 3)
    ends(world.oci("create", "--bundle", bundle, "front"), 1, "name a --console-socket")


TESTS = [files_in_dev, devices, seccomp_profiles, seccomp_profiles_about_starting, pods, own_limits, updated_limits, signals_in_front, terminal_in_front]
