"""Things that Kubernetes and podman give to containers besides a root: files in /dev, seccomp profiles, pods, limits to look at; and containers in front."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time

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


TESTS = [files_in_dev, seccomp_profiles, pods, own_limits, signals_in_front, terminal_in_front]
