"""The life of a container: create, start, its end, signals, delete, and the texts of errors that engines look for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

from world import OCI, OWN, Failed, Skipped, World, ends, equals, groups, reaped, runs, until_gone


def life(world: World) -> None:
    with world.container(world.bundle("echo", "hello", annotations={"a": "b"}), start=False) as container:
        state = world.state(container.name)
        equals((state["status"], state["pid"], state["annotations"], state["bundle"]), ("created", container.pid, {"a": "b"}, str(container.bundle)))
        equals(container.text(), "", "before the start")
        ends(world.oci("start", container.name), 0)
        equals((container.wait(), container.text()), (0, "hello\n"))
        equals(container.status(), "stopped")
        ends(world.oci("start", container.name), 1, "container not running")
        ends(world.oci("delete", container.name), 0)
        ends(world.oci("state", container.name), 1, "container does not exist")
        ends(world.oci("delete", container.name), 1, "container does not exist")
        ends(world.oci("delete", "--force", container.name), 0)


def exit_codes(world: World) -> None:
    for args, expected in ((("exit", "0"), 0), (("exit", "7"), 7), (("exit", "255"), 255), (("die", "11"), 139), (("die", "9"), 137)):
        done = world.oci("run", "--bundle", world.bundle(*args), f"r{expected}")
        ends(done, expected)
    equals(json.loads(ends(world.oci("list", "--format=json"), 0)), [], "left by run")


def signals(world: World) -> None:
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        for name, number in (("HUP", 1), ("SIGUSR1", 10), ("12", 12), ("winch", 28)):
            ends(container.kill(name), 0)
            container.until(f"signal {number}\n")
        ends(container.kill("NOSUCH"), 1, "NOSUCH")
        ends(container.kill("TERM"), 0)
        equals(container.wait(), 3)
        ends(container.kill("TERM"), 1, "os: process already finished")
        ends(container.kill("9"), 1, "container not running")
        ends(world.oci("kill", "--all", container.name, "9"), 0)
    ends(world.oci("kill", "nosuch", "9"), 1, "container does not exist")


def kill_ends_all(world: World) -> None:
    for name in ("KILL", "9", "SIGKILL"):
        with world.container(world.bundle("fork")) as container:
            container.until("forked")
            ends(container.kill(name), 0)
            equals(container.wait(), 137, name)
    # Before it has begun, a signal is for the process that waits.
    with world.container(world.bundle("wait"), start=False) as container:
        ends(container.kill("TERM"), 0)
        until_gone(container.pid)
        equals(container.status(), "stopped")


def a_forked_child_ends_with_its_container(world: World) -> None:
    with world.container(world.bundle("fork")) as container:
        container.until("forked")
        ends(world.oci("kill", "--all", container.name, "TERM"), 0)
        equals(container.wait(), 128 + signal.SIGTERM)


def running_ones_stay(world: World) -> None:
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        ends(world.oci("delete", container.name), 1, "not stopped")
        ends(world.oci("start", container.name), 1, "cannot start an already running container")
        ends(world.oci("create", "--bundle", container.bundle, container.name), 1, "exists")
        equals(container.status(), "running")
        ends(world.oci("delete", "--force", container.name), 0)
        equals(container.wait(), 137)


def other_options(world: World) -> None:
    bundle = world.bundle("exit", "0")
    done = world.oci("--new-option", "--cgroup-manager=x", "run", "id1", "--bundle", bundle, "--no-pivot", "--no-new-keyring")
    ends(done, 0, "--new-option", "--cgroup-manager")
    ends(world.oci("dance", "id1"), 1, "unrecognized subcommand")
    ends(world.oci("create", "--bundle", bundle, "a/b"), 1, "invalid id")
    ends(world.oci("checkpoint", "--image-path", "x", "id1"), 1, "checkpoint is not supported")
    ends(world.oci("restore", "id1"), 1, "not supported")
    lines = ends(world.oci("--version"), 0).splitlines()
    equals([line.split()[0] for line in lines], ["lind-oci", "commit:", "spec:"])
    features = json.loads(ends(world.oci("features"), 0))
    equals((features["ociVersionMin"], len(features["hooks"])), ("1.0.0", 6))
    empty = world.folder / "empty"
    empty.mkdir()
    ends(world.oci("spec", "--bundle", empty), 0)
    ends(world.oci("spec", "--bundle", empty), 1, "exists already")
    ends(world.oci("create", "--bundle", world.folder / "nowhere", "id1"), 1, "nowhere")


def errors_are_in_the_log(world: World) -> None:
    log = world.folder / "errors"
    done = world.oci("--log", log, "--log-format=json", "state", "nosuch")
    ends(done, 1)
    last = json.loads(log.read_text().splitlines()[-1])
    equals((last["level"], "does not exist" in last["msg"], "time" in last), ("error", True, True))


def no_program(world: World) -> None:
    ends(world.oci("create", "--bundle", world.bundle(process={"args": ["nosuch"]}), "no"), 1, 'exec: "nosuch": executable file not found in $PATH')
    # With a directory mounted, only the container knows.
    mounts = [{"destination": "/mnt", "type": "bind", "source": str(world.folder), "options": ["rbind"]}]
    with world.container(world.bundle(process={"args": ["nosuch"]}, mounts=mounts), start=False) as container:
        ends(world.oci("start", container.name), 1, 'exec: "nosuch": executable file not found in $PATH')
        equals(container.wait(), 127)
    with world.container(world.bundle(process={"args": ["/etc/passwd"]}), start=False) as container:
        ends(world.oci("start", container.name), 1, "/etc/passwd")
        equals(container.wait(), 126)


def programs_of_the_host_are_refused(world: World) -> None:
    bundle = world.bundle(process={"args": ["native"]})
    (bundle / "rootfs/bin/native").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(60))
    done = world.oci("create", "--bundle", bundle, "native")
    ends(done, 1, "built for linux/amd64; needs a program compiled for Lind (see docs/oci.md)")
    ends(world.oci("state", "native"), 1, "does not exist")


def signals_for_the_runner(world: World) -> None:
    """To engines the runner is the program: a signal for its number is for the program, and for nothing else in it."""
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGQUIT):
            os.kill(container.pid, number)
            container.until(f"signal {int(number)}\n")
        ends(container.exec("guest", "exit", "4"), 4)
        os.kill(container.pid, signal.SIGTERM)
        equals(container.wait(), 3)
    with world.container(world.bundle("fork")) as container:
        container.until("forked")
        os.kill(container.pid, signal.SIGTERM)
        equals(container.wait(), 128 + signal.SIGTERM)


def the_death_of_the_runner(world: World) -> None:
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        os.kill(container.pid, signal.SIGKILL)
        equals(container.wait(), 137)
        equals(container.status(), "stopped")
        ends(container.exec("guest", "exit", "0"), 255, "container not running")


def killed_at_any_time(world: World) -> None:
    """`create` is killed after more and more time: `delete --force` removes what there is, and the id can be used again."""
    bundle = world.bundle("exit", "5")
    before = groups()
    command = [str(OCI), "--root", str(world.states), "create", "--bundle", str(bundle), f"crash{OWN}"]
    for step in range(30):
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            time.sleep(step * 0.001)
            running.kill()
        ends(world.oci("delete", "--force", f"crash{OWN}"), 0)
        equals(sorted(path.name for path in world.states.iterdir()) if world.states.exists() else [], [], f"left after {step} ms")
        equals(groups(), before, f"groups after {step} ms")
    ends(world.oci("run", "--bundle", bundle, f"crash{OWN}"), 5)


def start_killed_at_any_time(world: World) -> None:
    bundle = world.bundle("wait")
    for step in range(8):
        with world.container(bundle, start=False) as container:
            with subprocess.Popen([str(OCI), "--root", str(world.states), "start", container.name]) as running:
                time.sleep(step * 0.001)
                running.kill()
            if container.status() not in ("created", "running"):
                raise Failed(f"after {step} ms: {container.status()}")


def nothing_is_left(world: World) -> None:
    """50 containers, one after the other."""
    bundle = world.bundle("exit", "0")
    before = (groups(), mounts(world), descriptors())
    pids = []
    for number in range(50):
        with world.container(bundle) as container:
            pids.append(container.pid)
            equals(container.wait(), 0, f"number {number}")
    equals((groups(), mounts(world), descriptors()), before)
    equals(list(world.states.iterdir()), [])
    equals([pid for pid in pids if runs(pid)], [])


def mounts(world: World) -> int:
    """The mounts in the directory of our bundles: there may be other containers on this host."""
    with open("/proc/self/mountinfo") as file:
        return sum(line.split()[4].startswith(f"{world.folder}/") for line in file)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def many_at_once(world: World) -> None:
    bundle = world.bundle("exit", "4")
    command = [str(OCI), "--root", str(world.states), "run", "--bundle", str(bundle)]
    running = [subprocess.Popen([*command, f"many{number}{OWN}"], stdin=subprocess.DEVNULL) for number in range(10)]
    equals([one.wait(timeout=60) for one in running], [4] * 10)


def full_disk(world: World) -> None:
    """No space for the state: the container is not there, and nothing of it."""
    place = world.folder / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", place], capture_output=True, check=False).returncode:
        raise Skipped("no mounts")
    try:
        (place / "full").write_bytes(bytes(4096))
        done = subprocess.run([OCI, "--root", place, "create", "--bundle", world.bundle("exit", "0"), "no-room"], capture_output=True, text=True, timeout=60, check=False)
        ends(done, 1, "No space left")
        equals([path.name for path in place.iterdir()], ["full"] if (place / "full").is_file() else [])
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def without_the_runner(world: World) -> None:
    """lind-boot is missing beside lind-oci."""
    alone = world.folder / "alone"
    alone.mkdir()
    (alone / "lind-oci").write_bytes(OCI.read_bytes())
    (alone / "lind-oci").chmod(0o755)
    command = [alone / "lind-oci", "--root", world.states, "create", "--bundle", world.bundle("exit", "0"), "alone"]
    ends(subprocess.run(command, capture_output=True, text=True, timeout=60, check=False), 1, "lind-boot: is missing; install lind-boot and lind-oci together")
    equals(list(world.states.iterdir()), [])


TESTS = [life, exit_codes, signals, kill_ends_all, a_forked_child_ends_with_its_container, running_ones_stay, other_options, errors_are_in_the_log, no_program,
         programs_of_the_host_are_refused, signals_for_the_runner, the_death_of_the_runner, killed_at_any_time, start_killed_at_any_time, nothing_is_left, many_at_once, full_disk,
         without_the_runner]

__all__ = ["TESTS", "reaped"]
