"""The inside of a container: its user, its files, its mounts, its network; and processes that `exec` runs in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from world import OCI, Failed, World, ends, equals, master, read_until, reaped, runs, terminal, until_gone


def identity(world: World) -> None:
    process = {
        "args": ["/bin/guest", "describe"], "cwd": "/made/for/it", "env": ["PATH=/bin", "A=b"], "noNewPrivileges": True,
        "user": {"uid": 1000, "gid": 5, "additionalGids": [6, 7], "umask": 0o27},
        "rlimits": [{"type": "RLIMIT_NOFILE", "soft": 100, "hard": 200}],
    }
    with world.container(world.bundle(process=process)) as container:
        equals(container.wait(), 0)
        found = json.loads(container.text())
    expected = {"uid": 1000, "gid": 5, "groups": [6, 7], "umask": 0o27, "cwd": "/made/for/it", "files": [100, 200], "host": "box", "capabilities": 0, "no_new_privileges": 1}
    equals({key: found[key] for key in expected}, expected)
    equals(found["env"], ["PATH=/bin", "A=b", "HOME=/home/user"])


def capabilities(world: World) -> None:
    sets = {name: ["CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"] for name in ("bounding", "effective", "permitted")}
    with world.container(world.bundle("describe", process={"capabilities": sets})) as container:
        equals(container.wait(), 0)
        equals(json.loads(container.text())["capabilities"], 1 | 1 << 5 | 1 << 21)


def ambient_capabilities(world: World) -> None:
    """Programs of an ordinary user have those, and those that they start, too; without them they have none."""
    chown, override = 1, 1 << 1
    sets = {name: ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_KILL"] for name in ("bounding", "effective", "permitted")}
    user = {"uid": 1000, "gid": 1000}
    for ambient, expected, reads in (([], 0, 13), (["CAP_CHOWN"], chown, 13), (["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_SYS_ADMIN"], chown | override, 0)):
        process = {"user": user, "capabilities": {**sets, "inheritable": ambient, "ambient": ambient}}
        bundle = world.bundle("wait", process=process)
        (bundle / "rootfs/secret").write_text("of root\n")
        (bundle / "rootfs/secret").chmod(0o600)
        with world.container(bundle) as container:
            container.until("waits")
            equals(json.loads(ends(container.exec("guest", "describe"), 0))["capabilities"], expected, f"{ambient}")
            ends(container.exec("guest", "cat", "/secret"), reads)
            ends(container.exec("guest", "cat", "/secret", options=("--cap", "CAP_DAC_OVERRIDE")), 0)


def files(world: World) -> None:
    outside = world.folder / "outside"
    outside.mkdir()
    (outside / "file").write_text("text\n")
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/data", "type": "bind", "source": str(outside), "options": ["rbind"]},
        {"destination": "/fixed", "type": "bind", "source": str(outside), "options": ["rbind", "ro"]},
        {"destination": "/one", "type": "bind", "source": str(outside / "file"), "options": ["bind", "ro"]},
        {"destination": "/var/run/x", "type": "tmpfs", "source": "tmpfs", "options": ["size=64k"]},
    ]
    linux = {"maskedPaths": ["/secret", "/hidden", "/none"], "readonlyPaths": ["/etc"]}
    bundle = world.bundle("look", "/", "/data", "/fixed", "/one", "/run/x", "/secret", "/hidden", "/etc", "/bin", mounts=mounts, linux=linux)
    root = bundle / "rootfs"
    (root / "hidden").mkdir()
    (root / "hidden/file").write_text("hidden")
    (root / "secret").write_text("secret")
    (root / "var").mkdir()
    (root / "run").mkdir()
    (root / "var/run").symlink_to("/run")
    with world.container(bundle) as container:
        equals((container.wait(), container.text().split()), (0, ["rw", "rw", "r-", "r-", "rw", "rw", "r-", "r-", "rw"]))
    equals(((root / "made").exists(), (outside / "made").exists()), (True, True), "changes reach the engine's layer, and the volume")
    for path, expected in (("/secret", ""), ("/fixed/file", "text\n"), ("/hidden/file", None)):
        config = json.loads((bundle / "config.json").read_text())
        config["process"]["args"] = ["guest", "cat", path]
        (bundle / "config.json").write_text(json.dumps(config))
        with world.container(bundle) as container:
            equals(container.wait(), 0 if expected is not None else 2, path)
            equals(container.text(), expected or "", path)


def read_only_root(world: World) -> None:
    mounts = [{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"}]
    with world.container(world.bundle("look", "/", "/etc", "/tmp", root={"readonly": True}, mounts=mounts)) as container:
        equals((container.wait(), container.text().split()), (0, ["r-", "r-", "rw"]))


def standard_input(world: World) -> None:
    done = world.oci("run", "--bundle", world.bundle("input"), "input", stdin=None, input="typed\n")
    equals(ends(done, 0), "typed\n")


def execs(world: World) -> None:
    with world.container(world.bundle("wait", process={"user": {"uid": 1, "gid": 1}})) as container:
        container.until("waits")
        equals(ends(container.exec("guest", "echo", "hi"), 0), "hi\n")
        ends(container.exec("guest", "exit", "9"), 9)
        ends(container.exec("guest", "die", "11"), 139)
        equals(ends(container.exec("guest", "input", stdin=None, input="text"), 0), "text")
        ends(container.exec("nosuch"), 255, 'exec: "nosuch": executable file not found in $PATH')
        found = json.loads(ends(container.exec("guest", "describe", options=("--user", "7:8", "--cwd", "/etc", "--env", "X=y")), 0))
        equals((found["uid"], found["gid"], found["cwd"], "X=y" in found["env"]), (7, 8, "/etc", True))
        processes = [subprocess.Popen([OCI, "--root", world.states, "exec", container.name, "guest", "exit", str(number)]) for number in range(20)]
        equals([process.wait(timeout=60) for process in processes], list(range(20)), "at once")
    ends(world.oci("exec", "nosuch", "true"), 255, "container does not exist")


def detached_execs(world: World) -> None:
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        process, pid_file = container.bundle / "process.json", container.bundle / "exec.pid"
        process.write_text(json.dumps({"args": ["guest", "wait"], "cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}}))

        def start(*args: str) -> int:
            described = json.loads(process.read_text())
            described["args"] = ["guest", *args]
            process.write_text(json.dumps(described))
            output = (container.bundle / "exec.out").open("wb")
            with output:
                command = [OCI, "--root", world.states, "exec", "--process", process, "--detach", "--pid-file", pid_file, container.name]
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=60, check=False)
            equals(done.returncode, 0, (container.bundle / "exec.out").read_text())
            return int(pid_file.read_text())

        equals(reaped(start("exit", "6")), 6)
        # Signals for the process that represents it are the process's, SIGKILL too.
        pid = start("wait")
        listed = json.loads(ends(world.oci("ps", "--format", "json", container.name), 0))
        equals(sorted(listed), sorted([pid, container.pid]))
        while "waits" not in (container.bundle / "exec.out").read_text():
            time.sleep(0.005)
        os.kill(pid, signal.SIGTERM)
        equals(reaped(pid), 3)
        pid = start("wait")
        os.kill(pid, signal.SIGKILL)
        equals(reaped(pid), 137)
        # And it ends with its container.
        pid = start("wait")
        ends(container.kill("KILL"), 0)
        equals((reaped(pid), runs(pid)), (137, False))
        process.write_text(json.dumps({"args": ["nosuch"], "cwd": "/"}))
        done = world.oci("exec", "--process", process, "--detach", "--pid-file", pid_file, container.name)
        ends(done, 255, "container not running")


def failing_detached_execs(world: World) -> None:
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        process = container.bundle / "process.json"
        for args, said in ((["nosuch"], "executable file not found"), (["/no/such"], "no such file or directory"), (["/etc/passwd"], "/etc/passwd")):
            process.write_text(json.dumps({"args": args, "cwd": "/", "env": ["PATH=/bin"]}))
            ends(world.oci("exec", "--process", process, "--detach", container.name), 255, said)


def terminals(world: World) -> None:
    socket = world.folder / "console"
    with terminal(socket) as listener:
        bundle = world.bundle("wait", process={"terminal": True, "consoleSize": {"height": 33, "width": 99}})
        with world.container(bundle, "--console-socket", str(socket)) as container:
            fd = master(listener)
            read_until(fd, b"waits")
            os.write(fd, b"\x03")
            read_until(fd, b"signal 2")
            ends(container.kill("TERM"), 0)
            equals(container.wait(), 3)
            os.close(fd)
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        process, pid_file = container.bundle / "process.json", container.bundle / "exec.pid"
        for args, expected in ((["describe"], b'"tty": 1, "rows": 33'), (["wait"], b"waits")):
            process.write_text(json.dumps({"args": ["guest", *args], "cwd": "/", "env": ["PATH=/bin"], "terminal": True, "consoleSize": {"height": 33, "width": 99}}))
            socket.unlink(missing_ok=True)
            with terminal(socket) as listener:
                ends(world.oci("exec", "--process", process, "--detach", "--pid-file", pid_file, "--console-socket", socket, container.name), 0)
                fd = master(listener)
            read_until(fd, expected)
            if args == ["wait"]:
                os.write(fd, b"\x03")
                read_until(fd, b"signal 2")
                os.kill(int(pid_file.read_text()), signal.SIGTERM)
            equals(reaped(int(pid_file.read_text())), 3 if args == ["wait"] else 0)
            os.close(fd)
    ends(world.oci("create", "--bundle", world.bundle("wait", process={"terminal": True}), "t"), 1, "name a --console-socket")


def mount_namespace(world: World) -> None:
    """Engines enter it to copy files: it shows the container alone."""
    with world.container(world.bundle("wait")) as container:
        done = subprocess.run(["nsenter", "--target", str(container.pid), "--mount", f"--root=/proc/{container.pid}/root", "true"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            raise Failed("a program of the host is in the container's mounts")
        equals(sorted(os.listdir(f"/proc/{container.pid}/root")), sorted(os.listdir(container.bundle / "rootfs")))
        mounts = [line.split()[4] for line in Path(f"/proc/{container.pid}/mountinfo").read_text().splitlines()]
        equals(mounts, ["/"])


def networks(world: World) -> None:
    with world.container(world.bundle("wait")) as container:
        own = os.readlink(f"/proc/{container.pid}/ns/net")
        if own == os.readlink("/proc/self/ns/net"):
            raise Failed("the container is in the host's network")
        path = f"/proc/{container.pid}/ns/net"
        with world.container(world.bundle("wait", linux={"namespaces": [{"type": "network", "path": path}]})) as other:
            equals(os.readlink(f"/proc/{other.pid}/ns/net"), own)
    with world.container(world.bundle("wait", linux={"namespaces": []})) as container:
        equals(os.readlink(f"/proc/{container.pid}/ns/net"), os.readlink("/proc/self/ns/net"))


def hooks(world: World) -> None:
    bundle = world.bundle("echo", "hello")
    log = bundle / "hooks"

    def hook(name: str, script: str = "") -> dict[str, object]:
        return {"path": "/bin/sh", "args": ["sh", "-c", f"{script} echo {name} $(grep -o '\"status\":\"[a-z]*\"') >> {log}"], "env": ["PATH=/usr/bin:/bin"]}

    names = ("prestart", "createRuntime", "createContainer", "poststart", "poststop")
    config = json.loads((bundle / "config.json").read_text())
    config["hooks"] = {name: [hook(name)] for name in names}
    config["hooks"]["startContainer"] = [{"path": "/bin/guest", "args": ["guest", "input"]}]
    (bundle / "config.json").write_text(json.dumps(config))
    with world.container(bundle) as container:
        equals(container.wait(), 0)
    states = ("creating", "creating", "creating", "running", "stopped")
    equals(log.read_text().splitlines(), [f'{name} "status":"{state}"' for name, state in zip(names, states, strict=True)])
    for name, status in (("prestart", 1), ("createRuntime", 1), ("createContainer", 1), ("poststart", 0), ("poststop", 0)):
        config["hooks"] = {name: [{"path": "/bin/sh", "args": ["sh", "-c", "echo reason >&2; exit 3"]}]}
        (bundle / "config.json").write_text(json.dumps(config))
        done = world.oci("run", "--bundle", bundle, "hooked")
        ends(done, status, f"{name} hook /bin/sh", "reason")
        equals(list(world.states.iterdir()), [], name)
    config["hooks"] = {"startContainer": [{"path": "/bin/guest", "args": ["guest", "exit", "3"]}]}
    (bundle / "config.json").write_text(json.dumps(config))
    ends(world.oci("run", "--bundle", bundle, "hooked"), 1, "startContainer hook /bin/guest: failed")


def refused(world: World) -> None:
    """Each is refused before anything is made; the table of fields has unit tests of its own."""
    for more, said in (
        ({"process": {"selinuxLabel": "x"}}, "process.selinuxLabel"),
        ({"linux": {"rootfsPropagation": "shared"}}, "linux.rootfsPropagation"),
        ({"linux": {"sysctl": {"vm.swappiness": "1"}}}, "vm.swappiness"),
        ({"mounts": [{"destination": "/a", "type": "overlay"}]}, "overlay"),
        ({"vm": {}}, "vm: "),
    ):
        ends(world.oci("create", "--bundle", world.bundle("exit", "0", **more), "refused"), 1, said)
        equals(list(world.states.iterdir()) if world.states.exists() else [], [])


def warned(world: World) -> None:
    bundle = world.bundle("exit", "0", process={"apparmorProfile": "docker-default"}, linux={"devices": [{"path": "/dev/fuse", "type": "c"}]})
    log = bundle / "warnings"
    ends(world.oci("--log", log, "--log-format", "json", "run", "--bundle", bundle, "warned"), 0)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    equals([line["level"] for line in lines], ["warning"] * 2)
    said = " ".join(line["msg"] for line in lines)
    equals(("apparmorProfile" in said, "/dev/fuse" in said), (True, True), said)


def policies(world: World) -> None:
    with world.container(world.bundle("look", "/", annotations={"run.lind.policy": "readonly"})) as container:
        equals((container.wait(), container.text().split()), (0, ["r-"]))
    ends(world.oci("run", "--bundle", world.bundle("exit", "0", annotations={"run.lind.policy": "nosuch"}), "p"), 1, "nosuch")


def sandbox_of_a_pod(world: World) -> None:
    """Its program is one for the host, which is not run."""
    bundle = world.bundle(process={"args": ["/pause"]}, annotations={"io.kubernetes.cri.container-type": "sandbox"})
    (bundle / "rootfs/pause").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(60))
    with world.container(bundle, start=False) as pod:
        equals(pod.status(), "created")
        ends(world.oci("start", pod.name), 0)
        equals(pod.status(), "running")
        path = f"/proc/{pod.pid}/ns/net"
        with world.container(world.bundle("exit", "2", linux={"namespaces": [{"type": "network", "path": path}]})) as container:
            equals(container.wait(), 2)
        ends(pod.exec("x"), 255, "sandbox of a pod")
        ends(pod.kill("TERM"), 0)
        equals((pod.wait(), pod.status()), (143, "stopped"))


TESTS = [identity, capabilities, ambient_capabilities, files, read_only_root, standard_input, execs, detached_execs, failing_detached_execs, terminals, mount_namespace, networks, hooks, refused, warned,
         policies, sandbox_of_a_pod]

__all__ = ["TESTS", "until_gone"]
