"""Tables, times and raw values as text."""

from __future__ import annotations

import json
import re


def grid(headers: list[str], lines: list[list[str]], words: int = 1) -> str:
    """A table of Markdown. The first `words` columns are text, the others numbers."""
    rule = ["---" if i < words else "--:" for i in range(len(headers))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (headers, rule, *lines))


def digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def milliseconds(seconds: float) -> str:
    return digits(seconds * 1000)


def with_unit(ns: float) -> str:
    """`12.6 ns`, `2.54 µs`, `1.24 ms`."""
    for unit, size in (("ns", 1), ("µs", 1000)):
        if ns < 1000 * size:
            return f"{digits(ns / size)} {unit}"
    return f"{digits(ns / 1e6)} ms"


def lines_of_json(data: object) -> str:
    """JSON in which a list of numbers is one line. Only between values there are line ends."""
    return re.sub(r"\[\n[^\[\]{}\"]*\]", lambda found: re.sub(r"\s+", " ", found[0]), json.dumps(data, indent=1)) + "\n"
