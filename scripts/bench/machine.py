"""Describes the machine that the numbers were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from bench.model import REPOSITORY


def first_line_of(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
    except OSError as error:
        return f"unknown ({error.strerror})"
    return (done.stdout or done.stderr).split("\n", 1)[0].strip()


def filesystem_of(directory: Path) -> str:
    """`ext4 on /dev/vda1`, from the longest mount point above the directory."""
    best = ("", "unknown", "")
    for line in Path("/proc/self/mounts").read_text().splitlines():
        device, point, kind = line.split()[:3]
        if directory.resolve().is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind, device)
    return f"{best[1]} on {best[2]}"


def machine() -> dict[str, str]:
    cpus = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")]
    memory = Path("/proc/meminfo").read_text().split("\n", 1)[0].split(":")[1].strip()
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {"cpu": cpus[0] if cpus else platform.processor(), "cpus": str(os.cpu_count()), "memory": memory,
            "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
            "governor": governor.read_text().strip() if governor.exists() else "unknown"}
