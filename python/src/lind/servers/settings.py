"""The options of sandboxes that the command lines of servers have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from .core import Unusable


def add(parser: argparse.ArgumentParser) -> None:
    """Adds them to a command line."""
    parser.add_argument("-v", "--volume", metavar="DIR[:PATH]:HOW", action="append", default=[], help="a directory that all sandboxes see; HOW is ro, rw or overlay")
    parser.add_argument("--allow", metavar="HOST[:PORT]", action="append", default=[], help="a host that sandboxes may reach")
    parser.add_argument("--policy", metavar="NAME", help="the policy of all sandboxes; agent unless given")
    parser.add_argument("--memory", metavar="SIZE", help="the memory that a sandbox may have")
    parser.add_argument("--processes", metavar="N", type=int, help="how many processes a sandbox may have")


def read(given: argparse.Namespace) -> dict[str, Any]:
    """The keywords of a sandbox, but for the hosts that it may reach."""
    return {"volumes": volumes(given.volume), "policy": given.policy, "memory": given.memory, "processes": given.processes}


def volumes(given: Sequence[str]) -> dict[str, str]:
    """The directories that sandboxes see."""
    found = {}
    for volume in given:
        host, colon, how = volume.partition(":")
        if not host or not colon or not how:
            raise Unusable(f"--volume {volume}: expected DIR[:PATH]:HOW, as .:/project:overlay")
        found[host] = how
    return found
