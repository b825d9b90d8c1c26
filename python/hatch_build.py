"""Puts the directory that LIND_BUNDLE names into the wheel, which is then one for Linux on x86-64: `scripts/wheel.py` makes it."""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The runner is static: it needs no C library of the host.
TAG = "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"


class Bundle(BuildHookInterface[Any]):
    """The hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files."""
        bundle = os.environ.get("LIND_BUNDLE")
        if bundle and self.target_name == "wheel" and version == "standard":
            build_data["pure_python"] = False
            build_data["tag"] = TAG
            build_data["force_include"][bundle] = "lind/_bundle"
