"""The statistics of a list of measurements: the only place where numbers are condensed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the measurements lie; between two of them it is interpolated."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def spread(values: Sequence[float]) -> float:
    """(largest - smallest) / median."""
    median = statistics.median(values)
    return (max(values) - min(values)) / median if median else 0.0


def noise(values: Sequence[float]) -> float:
    """The distance of the quartiles; single slow measurements do not count."""
    return quantile(values, 0.75) - quantile(values, 0.25)


def verdict(before: Sequence[float], after: Sequence[float], least: float | None = None) -> str:
    """slower or faster if the medians differ by more than 5 % and by more than `least`, or than the noise of either side; else same."""
    old, new = statistics.median(before), statistics.median(after)
    least = max(noise(before), noise(after)) if least is None else least
    return "same" if abs(new - old) <= max(0.05 * old, least) else "slower" if new > old else "faster"
