"""Hostile tests that take a hand from outside: files that change while they are loaded. Used by `run`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

ALL: dict[str, Callable[[Path, Path], str]] = {}
