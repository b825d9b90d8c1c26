"""Connections of HTTP whose answers are sent in as few pieces as they can be: each piece costs a call of the host, and wakes the client."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

# The bytes that wait for the end of a turn of the loop at most.
MOST = 64 << 10


class Gathering:
    """A transport that sends at once what is written to it in one turn of the loop."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Has bytes sent."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        self._size += len(data)
        if self._size > MOST:
            self._send()

    def close(self) -> None:
        """Closes it when all has been sent."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))


class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """uvicorn's own, on such a transport."""

    def connection_made(self, transport: Any) -> None:
        """A client has connected."""
        super().connection_made(Gathering(transport))
