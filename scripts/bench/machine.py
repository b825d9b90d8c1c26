"""Describes the machine that the numbers were measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from pathlib import Path

from bench.model import REPOSITORY, Failed


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


def facts_of_run(form: str, place: Path) -> dict[str, object]:
    """The first entries of every suite's results. `form` names the suite and the version of its format."""
    return {
        "format": form,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "version": first_line_of(["git", "describe", "--always", "--dirty"]),
        "machine": machine(),
        "load": list(os.getloadavg()),
        "filesystem": filesystem_of(place),
        "user": "root" if os.geteuid() == 0 else "an ordinary user",
    }


def load_results(file: Path, form: str) -> dict:
    """The results that a suite wrote into a file."""
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Failed(f"{file}: {error}") from error
    if not isinstance(data, dict) or data.get("format") != form:
        raise Failed(f"{file}: not a result of {form.split()[0]}")
    return data


def write_results(directory: Path, name: str, data: dict, text: str, page: str) -> list[Path]:
    """Writes a run's JSON and its page of Markdown, under a name with the time of the run."""
    directory.mkdir(parents=True, exist_ok=True)
    stamp = data["date"].replace("-", "").replace(":", "").replace("T", "-").rstrip("Z")
    files = [directory / f"{name}-{stamp}{suffix}" for suffix in (".json", ".md")]
    files[0].write_text(text)
    files[1].write_text(page)
    return files
