"""The networks that a task of Harbor may reach, as rules of a sandbox."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from ipaddress import IPv4Network

from harbor.models.task.config import NetworkMode, NetworkPolicy

# Networks that are not public: this host, private ones, a cloud's metadata, multicast.
PRIVATE = ("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16",
           "198.18.0.0/15", "224.0.0.0/3")
# The addresses of IPv6 that are given out.
GLOBAL = "2000::/3"
# The kinds of hosts that rules can name, in the words of Harbor's capabilities.
ALLOWLISTS = ("network_allowlist", "network_allowlist_hostnames", "network_allowlist_wildcard_hostnames", "network_allowlist_ipv4_addresses",
              "network_allowlist_ipv4_cidrs", "network_allowlist_ipv6_addresses", "network_allowlist_ipv6_cidrs")


def allowed(policy: NetworkPolicy) -> Sequence[str]:
    """The rules of a policy. They allow nothing that it does not; in particular, the public network is not this host's."""
    if policy.network_mode == NetworkMode.PUBLIC:
        return public()
    return policy.allowed_hosts if policy.network_mode == NetworkMode.ALLOWLIST else ()


@cache
def public() -> tuple[str, ...]:
    """Rules for the addresses of the internet, and for none of this host's or of a private network.

    >>> "8.0.0.0/7" in public(), any(rule.startswith(("10.", "127.", "192.168.")) for rule in public())
    (True, False)
    """
    left = [IPv4Network("0.0.0.0/0")]
    for private in map(IPv4Network, PRIVATE):
        left = [part for whole in left for part in (whole.address_exclude(private) if private.subnet_of(whole) else [whole])]
    return (*map(str, sorted(left)), GLOBAL)
