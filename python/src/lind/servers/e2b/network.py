"""The hosts that a sandbox may reach: those that the server was started with, or fewer.

A client may ask for fewer hosts than the server allows, and not for more: what it says about the network is a claim.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from ... import AsyncSandbox
from ..core import Refusal

ALL = ("0.0.0.0/0", "::/0")
# Keys that ask for something that a sandbox does not have.
UNKNOWN = ("egressProxy", "rules", "dnsServers", "maskRequestHost", "httpsPorts")


def _list(network: dict[str, Any], key: str) -> list[str]:
    value = network.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) and one.isprintable() and len(one) < 256 for one in value) or len(value) > 256:
        raise Refusal(400, f"network.{key}: expected a list of hosts")
    return value


def _covers(rule: str, wanted: str) -> bool:
    """Whether a rule of the server allows what a client asks for: the same, or an address in a range, or a port of its host."""
    if rule in (wanted, wanted.partition(":")[0]):
        return True
    try:
        return ipaddress.ip_network(wanted).subnet_of(ipaddress.ip_network(rule))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False


def rules(server: Sequence[str], internet: object, network: object) -> tuple[list[str], list[str]]:
    """The rules to allow and to deny, of what a client asks for. `server` are those of the server."""
    if internet not in (None, True, False):
        raise Refusal(400, "allow_internet_access: expected true or false")
    if network is not None and not isinstance(network, dict):
        raise Refusal(400, "network: expected an object")
    asked = network or {}
    if unknown := [key for key in UNKNOWN if asked.get(key)]:
        raise Refusal(501, f"network.{unknown[0]}: sandboxes of Lind do not have this")
    allow, deny = _list(asked, "allowOut"), _list(asked, "denyOut")
    if internet is False or any(one in ALL for one in deny):
        for wanted in allow:
            if wanted not in ALL and not any(_covers(rule, wanted) for rule in server):
                raise Refusal(403, f"network.allowOut: {wanted} is not allowed by the server: start it with --allow {wanted}")
        return [*server] if any(one in ALL for one in allow) else allow, []
    return [*server], deny


async def hold(sandbox: AsyncSandbox, allow: Sequence[str], deny: Sequence[str], before: Sequence[int]) -> list[int]:
    """Has these rules hold instead of those of the numbers in `before`. Returns their numbers."""
    made = [await sandbox.deny(rule) for rule in deny]
    for number in before:
        await sandbox.revoke(number)
    # The newest rule counts, so what is denied comes last.
    made += [await sandbox.allow(rule) for rule in allow]
    for number in made[: len(deny)]:
        await sandbox.revoke(number)
    return made[len(deny) :] + [await sandbox.deny(rule) for rule in deny]
