"""The numbers of containers and sessions, read by the parser of Prometheus' own client."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tools import TOP
from world import Failed, Skipped, World, ends, equals, subreaper

BOOT = TOP / "target" / "release" / "lind-boot"
# A pod's name as no cluster permits it: whatever an annotation says is a text of a user.
HOSTILE = 'a"b\\c\nlind_container_tasks{id="forged"} 9\r\x1b[2J\u00fc'


def families(text: str) -> dict[str, Any]:
    """The metrics by name; each must have a description and samples."""
    if any(ord(char) < 32 and char != "\n" for char in text):
        raise Failed(f"control characters: {text!r}")
    found = {}
    for family in text_string_to_metric_families(text):
        equals(family.type in ("counter", "gauge") and bool(family.documentation) and bool(family.samples), True, family.name)
        equals(family.name in found, False, f"{family.name} is there twice")
        found[family.name] = family
    return found


def sessions_are_metrics(folder: Path) -> None:
    env = os.environ | {"XDG_RUNTIME_DIR": str(folder)}
    name = f"numbers{os.getpid()}"
    start = [BOOT, "session", "start", name, "--memory", "512M"]
    done = subprocess.run(start, env=env, capture_output=True, text=True, timeout=60, check=False)
    ends(done, 0)
    try:
        shown = subprocess.run([BOOT, "session", "stats", name, "--prometheus"], env=env, capture_output=True, text=True, timeout=60, check=False)
        found = families(ends(shown, 0))
        wanted = {"lind_session_cpu_seconds", "lind_session_memory_resident_bytes", "lind_session_memory_limit_bytes", "lind_session_denied_calls"}
        equals(wanted - set(found), set())
        equals(found["lind_session_memory_limit_bytes"].samples[0].value, 512 << 20)
        equals({tuple(sample.labels.items()) for family in found.values() for sample in family.samples}, {(("session", name),)})
        both = subprocess.run([BOOT, "session", "stats", name, "--prometheus", "--json"], env=env, capture_output=True, text=True, timeout=60, check=False)
        ends(both, 125, "--json")
    finally:
        subprocess.run([BOOT, "session", "stop", name], env=env, capture_output=True, timeout=60, check=False)


def containers_are_metrics(folder: Path) -> None:
    if os.geteuid() != 0:
        raise Skipped("not root, and a container has mounts and a network of its own")
    subreaper()
    world = World(folder)
    annotations = {"io.kubernetes.cri.sandbox-name": HOSTILE, "io.kubernetes.cri.sandbox-namespace": "space"}
    with world.container(world.bundle("wait", annotations=annotations)) as one, world.container(world.bundle("wait")) as other:
        text = ends(world.oci("events", "--stats", "--prometheus"), 0)
        found = families(text)
        tasks = {sample.labels["id"]: sample for sample in found["lind_container_tasks"].samples}
        equals(set(tasks), {one.name, other.name}, "no sample is forged")
        equals(tasks[one.name].labels, {"id": one.name, "namespace": "space", "pod": HOSTILE.replace("\r", "\ufffd").replace("\x1b", "\ufffd")})
        equals(tasks[other.name].labels, {"id": other.name})
        stats = json.loads(ends(world.oci("events", "--stats", one.name), 0))["data"]
        equals(tasks[one.name].value, float(stats["pids"]["current"]))
        single = families(ends(world.oci("events", "--stats", "--prometheus", other.name), 0))
        equals([sample.labels["id"] for sample in single["lind_container_tasks"].samples], [other.name])
        ends(world.oci("events", "--prometheus"), 1, "--stats")
        ends(world.oci("events", "--stats"), 1, "<ID>")
    equals(ends(world.oci("events", "--stats", "--prometheus"), 0), "", "no containers")


TESTS = [sessions_are_metrics, containers_are_metrics]
