"""The table about the speed of containers, from what tests/oci/engines/run has noted."""

from __future__ import annotations

import statistics

from bench.stats import quantile
from bench.tables import grid


def speed(raw: dict) -> str:
    """The medians of each runtime, with the quarters around them."""
    lines = []
    for name, found in raw["speed"].items():
        times = [f"{statistics.median(found[part]):.1f} ({quantile(found[part], 0.25):.1f} to {quantile(found[part], 0.75):.1f})" for part in ("life", "exec")]
        lines.append([name, *times, f"{found['memory']:.1f}" if "memory" in found else ""])
    facts, times = raw["machine"], len(next(iter(raw["speed"].values()))["life"])
    about = f"{facts['cpu']}, {facts['cpus']} processors, {facts['kernel']}, load {raw['load'][0]:.1f}. Medians of {times} turns, and the middle half."
    return f"{about}\n\n" + grid(["", "create, start, delete: ms", "exec: ms", "idle: MiB"], lines)
