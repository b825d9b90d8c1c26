"""The table of the servers of the Python package, from what python/tests/servers/measure.py has measured."""

from __future__ import annotations

from bench.tables import grid

CLIENTS = {"sandboxd": "gRPC without more", "e2b": "E2B's", "mcp": "the official one"}


def table(raw: dict) -> str:
    """A row for each server."""
    lines = []
    for name, row in raw["rows"].items():
        times = [f"{row[part]:.2f}" for part in ("client", "server", "sessions")]
        lines.append([f"`lind {name}`", CLIENTS[name], str(row["sandboxes"]), f"{row['commands']:,}", str(row["wrong"]), f"{row['commands'] / row['seconds']:,.0f}",
                      *times, f"{row['memory'] / (1 << 20):.0f}"])
    facts = raw["machine"]
    about = f"{facts['cpu']}, {facts['cpus']} processors, load {raw['load'][0]:.1f} before."
    heads = ["", "client", "sandboxes", "commands", "lost or wrong", "a second", "client, ms", "server, ms", "sessions, ms", "server, MiB at most"]
    return f"{about}\n\n" + grid(heads, lines)
