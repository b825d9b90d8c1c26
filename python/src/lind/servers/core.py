"""The common part of the servers over HTTP: where they listen, who may ask, which sandboxes they have, and how they end.

A server listens on the loopback unless another address is given, and answers nobody without its token. A page in a browser cannot reach it: requests
for another host, or from a page of another, are refused. All sandboxes end with the server, also by SIGKILL.
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import ipaddress
import json
import logging
import os
import secrets
import socket
import stat
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import LindError
from .sending import Protocol

log = logging.getLogger("lind.servers")
T = TypeVar("T")

# How many sandboxes start at once.
STARTS = 4
# The seconds that answers have to end when the server does.
GRACE = 3
# How long a client may leave a connection without a request, in seconds.
KEPT_ALIVE = 330
# How many connections and requests there may be at once; others get the status 503.
CONNECTIONS = 4096


class Unusable(Exception):
    """The server cannot start as it was asked to."""


class Refusal(Exception):
    """A request that is not carried out: the status of HTTP, and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def config(name: str) -> Path:
    """A file of the user's settings."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(home, "lind", name)


def token(file: Path, prefix: str = "") -> str:
    """The token in a file that nobody else can read. If the file is not there, it is made, with a new token."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return _kept(file)
        with os.fdopen(made, "w") as new:
            text = prefix + secrets.token_hex(20)
            new.write(text + "\n")
        return text
    except OSError as why:
        raise Unusable(f"{file}: the file of the token cannot be used: {why.strerror}; name another with --token-file") from None


def _kept(file: Path) -> str:
    with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), encoding="ascii", errors="replace") as kept:
        about = os.fstat(kept.fileno())
        text = kept.read(4096).strip()
    if about.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(about.st_mode) & 0o077:
        raise Unusable(f"{file}: others can read the token: chmod 600 {file}")
    if len(text) < 16 or not text.isprintable() or not text.isascii():
        raise Unusable(f"{file}: expected a token of 16 characters or more in one line; without the file a new one is made")
    return text


def is_same(given: str | None, expected: str) -> bool:
    """Whether a secret is the expected one, in a time that does not tell how much of it is."""
    return given is not None and hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def bearer(headers: Mapping[str, str]) -> str | None:
    """The token in a header `Authorization: Bearer TOKEN`."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else None


@dataclass(frozen=True)
class Address:
    """An address to listen on: as numbers, and the name by which it was given."""

    host: str
    port: int
    family: socket.AddressFamily
    name: str

    @classmethod
    def find(cls, where: str) -> Address:
        """The address that "ADDRESS:PORT" means."""
        try:
            parts = urlsplit(f"//{where}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if host is None or port is None or parts.path or parts.username is not None:
            raise Unusable(f"{where}: expected ADDRESS:PORT, as 127.0.0.1:8600")
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except OSError as why:
            raise Unusable(f"{where}: cannot listen there: {why.strerror}") from None
        return cls(str(found[4][0]), int(found[4][1]), found[0], host)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Place:
    """Where a server listens. `hosts` are the names by which it may be asked, or None for any."""

    socket: socket.socket
    address: str
    port: int
    hosts: frozenset[str] | None

    @property
    def url(self) -> str:
        """The URL by which programs of this machine reach it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.address, self.address)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @classmethod
    def listen(cls, where: str, names: tuple[str, ...] = ()) -> Place:
        """Listens on "ADDRESS:PORT". Beyond the loopback, `names` are the hosts that requests may be for; any without them."""
        wanted = Address.find(where)
        try:
            listening = socket.create_server((wanted.host, wanted.port), family=wanted.family, backlog=1024)
        except OSError as why:
            raise Unusable(f"{where}: cannot listen there: {why.strerror}") from None
        address, port = listening.getsockname()[:2]
        hosts = frozenset({"localhost", "127.0.0.1", "::1", address, wanted.name, *names}) if wanted.is_loopback or names else None
        return cls(listening, address, port, hosts)


class Guard:
    """Lets requests through that are for this host, from no page of another, and that `admits` admits. `admits` must compare by `is_same`.
    `answer` makes the answers to the others."""

    def __init__(
        self, app: ASGIApp, hosts: frozenset[str] | None, admits: Callable[[Request], bool], answer: Callable[[Refusal], Response] | None = None
    ) -> None:
        self._app, self._hosts, self._admits, self._answer = app, hosts, admits, answer or refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            try:
                self._check(Request(scope))
            except Refusal as why:
                await self._answer(why)(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _check(self, request: Request) -> None:
        host = self._name(f"//{request.headers.get('host', '')}")
        if self._hosts is not None and host not in self._hosts:
            raise Refusal(421, "this server is not asked by that name of a host")
        origin = request.headers.get("origin")
        if origin is not None and self._name(origin) != host:
            raise Refusal(403, "pages of other hosts may not ask this server")
        if not self._admits(request):
            raise Refusal(401, "the token is missing or wrong")

    @staticmethod
    def _name(url: str) -> str | None:
        try:
            return urlsplit(url).hostname
        except ValueError:
            return None


def refused(why: Refusal) -> Response:
    """The answer to a request that is refused."""
    return JSONResponse({"code": why.status, "message": str(why)}, why.status)


def parsed(data: bytes) -> Any:
    """The value in a request's JSON, which is not nested deeper than Python's own stack allows.

    >>> parsed(b'{"a": "\\\\u00e4"}')
    {'a': 'ä'}
    """
    try:
        value = json.loads(data)
        if b"\\u" in data:
            # Half of a character cannot be told to a sandbox.
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refusal(400, "the request has half of a character, a surrogate without the other") from None
    except (ValueError, RecursionError):
        raise Refusal(400, "the request is not JSON") from None
    return value


async def body(request: Request, most: int = 1 << 20) -> dict[str, Any]:
    """The object that is the body of a request, an empty one without a body; of so many bytes at most."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > most:
            raise Refusal(413, f"a request may have {most} bytes")
    value = parsed(bytes(data) or b"{}")
    if not isinstance(value, dict):
        raise Refusal(400, "the request is not a JSON object")
    return value


@dataclass(eq=False)
class Held(Generic[T]):
    """A sandbox of a server, or whatever a face makes of one. `end` is when its time is over, by the loop's clock; None for never."""

    id: str
    what: T
    close: Callable[[], Coroutine[Any, Any, None]]
    end: float | None = None
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)


class Sandboxes(Generic[T]):
    """The sandboxes of a server by their ids. Each ends when its time is over, and all when this is closed."""

    def __init__(self, most: int, over: Callable[[Held[T]], Coroutine[Any, Any, object]] | None = None) -> None:
        self._held: dict[str, Held[T]] = {}
        self._most, self._begun, self._closed = most, 0, False
        self._starts = asyncio.Semaphore(STARTS)
        self._over: Callable[[Held[T]], Coroutine[Any, Any, object]] = over or (lambda held: self.end(held.id))
        self._tasks: set[asyncio.Task[object]] = set()

    async def add(
        self,
        make: Callable[[str], Coroutine[Any, Any, T]],
        close: Callable[[T], Coroutine[Any, Any, None]],
        seconds: float | None,
        id: str | None = None,
    ) -> Held[T]:
        """Makes one. It ends after so many seconds."""
        if self._closed:
            raise Refusal(503, "the server is ending")
        if len(self._held) + self._begun >= self._most:
            raise Refusal(429, f"there are {self._most} sandboxes already: end some, or start the server with a larger --sandboxes")
        name = id or secrets.token_hex(10)
        self._begun += 1
        try:
            async with self._starts:
                what = await make(name)
        finally:
            self._begun -= 1
        if self._closed:
            await close(what)
            raise Refusal(503, "the server is ending")
        held = self._held[name] = Held(name, what, lambda: close(what))
        self.limit(held, seconds)
        return held

    def limit(self, held: Held[T], seconds: float | None) -> None:
        """Has it end so many seconds from now."""
        if held.timer is not None:
            held.timer.cancel()
        loop = asyncio.get_running_loop()
        held.end = None if seconds is None else loop.time() + seconds
        held.timer = None if held.end is None else loop.call_at(held.end, self._expire, held)

    def _expire(self, held: Held[T]) -> None:
        task = asyncio.get_running_loop().create_task(self._over(held))
        # The loop alone does not hold it.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def get(self, id: str) -> Held[T]:
        """The sandbox of that id."""
        try:
            return self._held[id]
        except KeyError:
            raise Refusal(404, "there is no sandbox of this id") from None

    def all(self) -> list[Held[T]]:
        """All of them, the oldest first."""
        return list(self._held.values())

    async def end(self, id: str) -> bool:
        """Ends a sandbox. False if there is none of that id."""
        held = self._held.pop(id, None)
        if held is None:
            return False
        self.limit(held, None)
        try:
            await held.close()
        except LindError as why:
            log.warning("sandbox %s: %s", held.id, why)
        return True

    async def close(self) -> None:
        """Ends all of them; no other can be made then."""
        self._closed = True
        await asyncio.gather(*(self.end(id) for id in list(self._held)))


class _Server(uvicorn.Server):
    """A server that ends its sandboxes before it waits for answers, some of which last as long as a command."""

    def __init__(self, settings: uvicorn.Config, before: Callable[[], Coroutine[Any, Any, None]]) -> None:
        super().__init__(settings)
        self._before = before

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._before()
        await super().shutdown(sockets)


async def serve(app: ASGIApp, place: Place, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Answers requests until SIGTERM or SIGINT. `end` ends the sandboxes then."""
    settings = uvicorn.Config(app, http=Protocol, log_config=None, access_log=False, server_header=False, proxy_headers=False, ws="none", timeout_keep_alive=KEPT_ALIVE,
                              timeout_graceful_shutdown=GRACE, limit_concurrency=CONNECTIONS)
    try:
        await _Server(settings, end).serve([place.socket])
    finally:
        await end()


def options(name: str, about: str, listen: str) -> argparse.ArgumentParser:
    """The command line that servers have in common."""
    parser = argparse.ArgumentParser(prog=f"lind {name}", description=about)
    parser.add_argument("--listen", metavar="ADDRESS:PORT", default=listen, help=f"where the server listens; {listen} unless given")
    parser.add_argument("--host", metavar="NAME", action="append", default=[], help="a name by which it may be asked, where it listens beyond the loopback; any unless given")
    parser.add_argument("--token-file", metavar="FILE", type=Path, default=config(f"{name}.token"), help="the file of the token; made if it is not there")
    parser.add_argument("--sandboxes", metavar="N", type=int, default=200, help="how many sandboxes there may be at once; 200 unless given")
    return parser


def run(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Runs a server to its end. The status of its command."""
    logging.basicConfig(stream=sys.stderr, format=f"lind {name}: %(message)s", level=logging.WARNING)
    try:
        asyncio.run(work())
    except (Unusable, LindError) as why:
        print(f"lind {name}: {why}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        # uvicorn raises the signal again when it has ended.
        pass
    return 0


