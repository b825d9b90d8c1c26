"""`lind`: the servers that put a sandbox behind a protocol which other programs speak.

    lind mcp [OPTIONS]       for agents and editors that speak the Model Context Protocol
    lind e2b [OPTIONS]       for programs that use the client of E2B
    lind sandboxd [OPTIONS]  for the clients of the Kubernetes project agent-sandbox
    lind hook [OPTIONS]      no server: the hook by which Claude Code runs its commands in a sandbox

`lind-boot` is the command for everything else. `lind SERVER --help` lists the options.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence

from lind import hook

# Each is a module with a function `main`, and the extra of the package that brings what it imports.
SERVERS = {"e2b": ("lind.servers.e2b.main", "connectrpc", "e2b"), "mcp": ("lind.servers.mcp.main", "mcp", "mcp"),
           "sandboxd": ("lind.servers.sandboxd.main", "grpc", "sandboxd")}
HOOK = "hook"


def main(words: Sequence[str] | None = None) -> int:
    """Runs a server. Its status is that of the command."""
    given = sys.argv[1:] if words is None else list(words)
    if not given or given[0] in ("-h", "--help"):
        print(__doc__.strip() if __doc__ else "")
        return 0 if given else 2
    if given[0] == HOOK:
        return hook.main(given[1:])
    if given[0] not in SERVERS:
        print(f"lind: {given[0]!r} is not a command: there are {', '.join([*SERVERS, HOOK])}; lind-boot has the other commands", file=sys.stderr)
        return 2
    module, needed, extra = SERVERS[given[0]]
    if importlib.util.find_spec(needed) is None:
        print(f"lind {given[0]}: the Python package {needed} is not installed: pip install 'lind-sandbox[{extra}]'", file=sys.stderr)
        return 2
    status = importlib.import_module(module).main(given[1:])
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
