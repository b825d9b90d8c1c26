"""The services of a sandbox by gRPC: who may call, for which sandbox, and how errors are told."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Protocol, TypeVar

from protobuf import Message, Oneof

# Helpers of a fork are of no use to the sandboxes' programs, which are started without one.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc  # type: ignore[import-untyped]
from grpc import aio

from ...errors import CommandNotStarted, FileError, LindError, RequestError, SandboxError
from ..core import Held, Refusal
from ..telling import reason
from .names import DEFAULT, HEADER, Tokens, checked
from .pod import Box, Pod

In = TypeVar("In", bound="Message[Any]")
# One of several kinds of a message, and its contents. The library's types want a literal.
one: Callable[[str, object], Any] = Oneof
# The most bytes of one message of a client, and the most calls at once.
MOST, CALLS = 4 << 20, 4096
OPTIONS = [("grpc.max_receive_message_length", MOST), ("grpc.so_reuseport", 0), ("grpc.max_metadata_size", 16 << 10)]

Code = grpc.StatusCode
CODES = {400: Code.INVALID_ARGUMENT, 401: Code.UNAUTHENTICATED, 403: Code.PERMISSION_DENIED, 404: Code.NOT_FOUND, 409: Code.FAILED_PRECONDITION,
         429: Code.RESOURCE_EXHAUSTED, 503: Code.UNAVAILABLE, 504: Code.DEADLINE_EXCEEDED}
ERRNOS = {"ENOENT": Code.NOT_FOUND, "ENOTDIR": Code.NOT_FOUND, "EACCES": Code.PERMISSION_DENIED, "EPERM": Code.PERMISSION_DENIED,
          "EROFS": Code.PERMISSION_DENIED, "ENOSPC": Code.RESOURCE_EXHAUSTED, "EAGAIN": Code.RESOURCE_EXHAUSTED}


class Status(Exception):
    """The end of a call that fails."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def told() -> Any:
    """Turns errors into those of gRPC."""
    try:
        yield
    except Refusal as why:
        raise Status(CODES.get(why.status, Code.INTERNAL), str(why)) from None
    except FileError as why:
        raise Status(ERRNOS.get(errno.errorcode.get(why.errno or 0, ""), Code.INVALID_ARGUMENT), reason(why)) from None
    except CommandNotStarted as why:
        raise Status(ERRNOS.get(why.errno or "", Code.INVALID_ARGUMENT), str(why)) from None
    except SandboxError as why:
        raise Status(Code.UNAVAILABLE, str(why)) from None
    except RequestError as why:
        raise Status(ERRNOS.get(why.errno or "", Code.INVALID_ARGUMENT), str(why)) from None
    except (LindError, TimeoutError) as why:
        raise Status(Code.DEADLINE_EXCEEDED if isinstance(why, TimeoutError) else Code.INTERNAL, str(why)) from None


class Context(Protocol):
    """A call, as far as the methods know it."""

    async def abort(self, code: object, details: str) -> None:
        """Ends it with an error."""

    async def send_initial_metadata(self, metadata: Sequence[tuple[str, str]]) -> None:
        """Tells the client that the answer begins."""

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None:
        """The pairs that the client has sent beside its message."""


class Service:
    """A service: its name, and its methods."""

    def __init__(self, name: str, pod: Pod, tokens: Tokens) -> None:
        self.name, self._pod, self._tokens = name, pod, tokens
        self._methods: dict[str, Any] = {}

    def unary(self, name: str, given: type[In], work: Callable[[Box, In, Context], Awaitable[Message[Any]]]) -> None:
        """A method with one message each way."""

        async def function(raw: bytes, context: Context) -> bytes:
            try:
                held = await self._sandbox(context)
                with self._pod.using(held) as box:
                    try:
                        with told():
                            return (await work(box, _read(given, raw), context)).to_binary()
                    except Status as why:
                        raise await self._final(held, why) from None
            except Status as why:
                await context.abort(why.code, str(why))
                raise

        self._methods[name] = grpc.unary_unary_rpc_method_handler(function)

    def stream(self, name: str, given: type[In], work: Callable[[Box, In, Context], AsyncIterator[Any]]) -> None:
        """A method that answers with many messages."""

        async def function(raw: bytes, context: Context) -> AsyncIterator[bytes]:
            try:
                held = await self._sandbox(context)
                with self._pod.using(held) as box:
                    try:
                        with told():
                            messages = work(box, _read(given, raw), context)
                            async with aclosing(messages):  # type: ignore[type-var]
                                async for message in messages:
                                    yield message.to_binary()
                    except Status as why:
                        raise await self._final(held, why) from None
            except Status as why:
                await context.abort(why.code, str(why))

        self._methods[name] = grpc.unary_stream_rpc_method_handler(function)

    async def _sandbox(self, context: Context) -> Held[Box]:
        """The sandbox that a call is for, if the caller has its token."""
        headers = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        with told():
            id = checked(headers.get(HEADER, DEFAULT))
            if not self._tokens.admit(headers, id):
                raise Refusal(401, "the token is missing or wrong")
            return await self._pod.use(id)

    async def _final(self, held: Held[Box], why: Status) -> Status:
        """The error, which says so if the sandbox has ended."""
        if why.code is Code.UNAVAILABLE and await self._pod.drop(held):
            return Status(why.code, f"{why}: the next call begins another")
        return why

    def add_to(self, server: aio.Server) -> None:
        """Has a server answer for it."""
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(self.name, self._methods),))


def _read(kind: type[In], raw: bytes) -> In:
    """The message of a client."""
    try:
        return kind.from_binary(raw)
    except (ValueError, RecursionError) as why:
        raise Refusal(400, f"not a {kind.__name__}: {why}") from None


def make(*services: Service) -> aio.Server:
    """A server of these services. It is started where it listens."""
    server = aio.server(options=OPTIONS, maximum_concurrent_rpcs=CALLS)
    for service in services:
        service.add_to(server)
    return server
