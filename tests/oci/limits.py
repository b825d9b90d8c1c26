"""Control groups: limits, numbers, pause, and the processes in them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from world import Failed, Skipped, World, ends, equals

LIMIT = 256 << 20


def group_of(pid: int, controller: str) -> Path:
    """The directory of a process's group."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return Path("/sys/fs/cgroup") / controller / path.lstrip("/")
    unified = [line.split(":", 2)[2] for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::")]
    return Path("/sys/fs/cgroup") / unified[0].lstrip("/")


def ensure_groups() -> None:
    place = group_of(os.getpid(), "pids") if Path("/sys/fs/cgroup/pids").is_dir() else Path("/sys/fs/cgroup")
    probe = place / f"lind-probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError as why:
        raise Skipped(f"control groups cannot be written: {why}") from None


def read(folder: Path, *names: str) -> str:
    for name in names:
        if (folder / name).exists():
            return (folder / name).read_text().strip()
    raise Failed(f"{folder} has none of {names}")


def limits(world: World) -> None:
    ensure_groups()
    resources = {"memory": {"limit": LIMIT}, "cpu": {"quota": 50000, "period": 100000, "shares": 512}, "pids": {"limit": 200}}
    with world.container(world.bundle("wait", linux={"resources": resources, "cgroupsPath": f"/lind-test/{os.getpid()}"}), start=False) as container:
        memory = group_of(container.pid, "memory")
        equals(memory.name, str(os.getpid()), "the group, before the start")
        equals(read(memory, "memory.max", "memory.limit_in_bytes"), str(LIMIT))
        equals(read(group_of(container.pid, "pids"), "pids.max"), "200")
        cpu = read(group_of(container.pid, "cpu"), "cpu.max", "cpu.cfs_quota_us")
        equals(cpu.split()[0], "50000")
        ends(world.oci("start", container.name), 0)
        ends(world.oci("update", "--memory", str(2 * LIMIT), container.name), 0)
        equals(read(memory, "memory.max", "memory.limit_in_bytes"), str(2 * LIMIT))
        ends(world.oci("update", "--resources=-", container.name, stdin=None, input='{"pids": {"limit": 300}}'), 0)
        equals(read(group_of(container.pid, "pids"), "pids.max"), "300")
        stats = json.loads(ends(world.oci("events", "--stats", container.name), 0))
        equals((stats["type"], stats["id"], stats["data"]["memory"]["usage"]["limit"], stats["data"]["pids"]["limit"]), ("stats", container.name, 2 * LIMIT, 300))
        if stats["data"]["memory"]["usage"]["usage"] <= 0 or stats["data"]["pids"]["current"] <= 0 or stats["data"]["cpu"]["usage"]["total"] <= 0:
            raise Failed(f"{stats}")


def too_much_memory(world: World) -> None:
    ensure_groups()
    with world.container(world.bundle("memory", "600", linux={"resources": {"memory": {"limit": LIMIT, "swap": LIMIT}}})) as container:
        equals(container.wait(), 137)


def pause(world: World) -> None:
    ensure_groups()
    with world.container(world.bundle("wait")) as container:
        container.until("waits")
        ends(world.oci("pause", container.name), 0)
        equals(container.status(), "paused")
        ends(world.oci("pause", container.name), 1, "paused")
        ends(container.exec("guest", "exit", "0"), 255, "paused")
        ends(world.oci("resume", container.name), 0)
        equals(container.status(), "running")
        ends(world.oci("resume", container.name), 1, "not paused")
        ends(container.exec("guest", "exit", "0"), 0)
        ends(world.oci("pause", container.name), 0)
        ends(container.kill("KILL"), 0)
        equals(container.wait(), 137)


def delete_while_paused(world: World) -> None:
    ensure_groups()
    with world.container(world.bundle("wait")) as container:
        ends(world.oci("pause", container.name), 0)
        began = time.monotonic()
        ends(world.oci("delete", "--force", container.name), 0)
        if time.monotonic() - began > 5:
            raise Failed("it takes too long")


def groups_of_others(world: World) -> None:
    """Their processes would end with the container."""
    ensure_groups()
    done = world.oci("run", "--bundle", world.bundle("exit", "3", linux={"cgroupsPath": "/"}), "others")
    ends(done, 1, "linux.cgroupsPath: there are processes in /")


def unwritable_groups(world: World) -> None:
    """A path that cannot be made: no limit, and a warning; with a limit, nothing runs."""
    ensure_groups()
    where = {"cgroupsPath": "/a\nb"}
    done = world.oci("run", "--bundle", world.bundle("exit", "3", linux=where), "nogroup")
    ends(done, 3, "no control group")
    done = world.oci("run", "--bundle", world.bundle("exit", "3", linux={**where, "resources": {"memory": {"limit": LIMIT}}}), "nogroup")
    ends(done, 1, "linux.resources.memory.limit could not hold")


TESTS = [limits, too_much_memory, pause, delete_while_paused, unwritable_groups, groups_of_others]
