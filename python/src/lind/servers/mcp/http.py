"""The server by streamable HTTP, with a token."""

from __future__ import annotations

import argparse
import ipaddress
import secrets
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from ..core import Guard, Place, Unusable, bearer, is_same, serve, token

PATH = "/mcp"
# A token that is made for one run has so many bytes.
BYTES = 32
REQUEST = 8 << 20


@dataclass(frozen=True)
class Front:
    """Where the server listens, and the token that it wants."""

    place: Place
    token: str
    is_made: bool

    @classmethod
    def of(cls, given: argparse.Namespace) -> Front:
        """Listens as the options say. Raises Unusable if others would reach it without a token of their own, or by any name."""
        expected = token(Path(given.token_file)) if given.token_file else secrets.token_urlsafe(BYTES)
        place = Place.listen(given.listen, tuple(given.host))
        if not ipaddress.ip_address(place.address).is_loopback and not (given.token_file and given.host):
            place.socket.close()
            raise Unusable(f"{given.listen}: others reach that address: give --token-file FILE, and --host NAME for each name by which they ask")
        return cls(place, expected, not given.token_file)

    async def serve(self, server: MCPServer[Any], end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Serves until a signal ends it. `end` ends the commands then."""
        # The guard has checked the names of hosts and pages, for all paths.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server.streamable_http_app(streamable_http_path=PATH, transport_security=unchecked, max_request_body_size=REQUEST)
        print(f"lind mcp: {self.place.url}{PATH}", file=sys.stderr, flush=True)
        if self.is_made:
            print(f"lind mcp: the token is {self.token}", file=sys.stderr, flush=True)
        await serve(Guard(app, self.place.hosts, lambda request: is_same(bearer(request.headers), self.token)), self.place, end)
