"""Processes as the host's /proc shows them, for tests in any folder."""

from __future__ import annotations

from pathlib import Path


def family(runner: int) -> list[int]:
    """A process and all its descendants."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            pass
    found = [runner]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found
