#!/usr/bin/env python3
"""The runtime that runtime-tools' programs call: lind-oci, with the checks of `checks.c` written into the container before its creation."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

LINKS = {"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}
DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
RESOURCES = ["CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS", "LOCKS", "SIGPENDING", "MSGQUEUE", "NICE", "RTPRIO", "RTTIME"]
# Those that cages have; of the others a container has none, whatever it is given.
OWN = 0x9A4C5FF
# The capability sets that a cage has, as /proc/PID/status names them.
SETS = {"bounding": "CapBnd:", "effective": "CapEff:", "permitted": "CapPrm:"}
CAPABILITIES = """CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN
    NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD
    LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE""".split()


def process_checks(process: dict[str, Any]) -> list[list[object]]:
    user = process.get("user", {})
    found: list[list[object]] = [["user", user.get("uid", 0)], ["group", user.get("gid", 0)]]
    found += [["groups", group] for group in user.get("additionalGids") or []]
    if user.get("umask") is not None:
        found.append(["mask", user["umask"]])
    found += [["argument", at, word] for at, word in enumerate(process["args"])]
    found += [["variable", *text.split("=", 1)] for text in process.get("env") or []]
    found.append(["privileges", int(bool(process.get("noNewPrivileges")))])
    found += [["limit", RESOURCES.index(limit["type"][7:]), limit["soft"], limit["hard"]] for limit in process.get("rlimits") or []]
    if process.get("oomScoreAdj") is not None:
        found.append(["file", "/proc/self/oom_score_adj", process["oomScoreAdj"]])
    for key, name in SETS.items():
        if process.get("capabilities"):
            # Without ambient ones the program of an ordinary user has none, as on Linux.
            of = key if key == "bounding" or user.get("uid", 0) == 0 else "ambient"
            bits = sum(1 << CAPABILITIES.index(cap[4:]) for cap in process["capabilities"].get(of) or [] if cap[4:] in CAPABILITIES)
            found.append(["status", name, f"{bits & OWN:x}"])
    return found


def checks(config: dict[str, Any]) -> list[list[object]]:
    linux = config.get("linux", {})
    found = process_checks(config["process"])
    denied = [name for entry in (linux.get("seccomp") or {}).get("syscalls") or [] if entry["action"] != "SCMP_ACT_ALLOW" for name in entry["names"]]
    if "getcwd" not in denied:
        found.append(["directory", config["process"]["cwd"]])
    if config["root"].get("readonly") or config["process"].get("user", {}).get("uid", 0) == 0:
        found.append(["fixed" if config["root"].get("readonly") else "changeable", "/"])
    if config.get("hostname"):
        found.append(["host", config["hostname"]])
    found += [["link", path, target] for path, target in LINKS.items()]
    found += [["device", f"/dev/{name}", "c", 1, minor] for name, minor in DEVICES.items()] + [["device", "/dev/tty", "c", 5, 0]]
    found += [["device", device["path"], device["type"], device.get("major", 0), device.get("minor", 0)] for device in linux.get("devices") or []]
    # Message queues are there, but cages have no directory of them.
    found += [["mount", mount["destination"]] for mount in config.get("mounts") or [] if mount.get("type") != "mqueue"]
    found += [["masked", path] for path in linux.get("maskedPaths") or []] + [["fixed", path] for path in linux.get("readonlyPaths") or []]
    found += [["file", "/proc/sys/" + name.replace(".", "/"), value] for name, value in (linux.get("sysctl") or {}).items()]
    return found


def main() -> None:
    words = sys.argv[1:]
    if "create" in words and "--bundle" in words:
        bundle = Path(words[words.index("--bundle") + 1])
        try:
            config = json.loads((bundle / "config.json").read_text())
            lines = ["\t".join(map(str, line)) for line in checks(config)]
            (bundle / config["root"]["path"] / "expected").write_text("\n".join(lines) + "\n")
        except (OSError, KeyError, ValueError, AttributeError):
            # A case with a config.json that is wrong on purpose.
            pass
    os.execv(os.environ["LIND_OCI"], [os.environ["LIND_OCI"], *words])


main()
