"""The services of a sandbox, by the Connect protocol over HTTP."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import contextmanager
from typing import Any, TypeVar

from connectrpc.code import Code
from connectrpc.codec import proto_binary_codec, proto_json_codec
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo
from connectrpc.request import RequestContext
from connectrpc.server import ConnectASGIApplication, Endpoint
from protobuf import Message, Oneof

from ...errors import CommandNotStarted, FileError, LindError, RequestError, SandboxError
from ..core import Refusal, parsed
from ..telling import reason
from .box import Box

In = TypeVar("In", bound="Message[Any]")
Out = TypeVar("Out", bound="Message[Any]")
# One of several kinds of a message, and its contents. The library's types want a literal.
one: Callable[[str, object], Any] = Oneof
# The seconds of silence after which a stream says that it is there, unless the client says.
SILENCE = 45.0
# The most bytes of one message of a client.
MOST = 4 << 20

CODES = {400: Code.INVALID_ARGUMENT, 401: Code.UNAUTHENTICATED, 404: Code.NOT_FOUND, 409: Code.ALREADY_EXISTS, 429: Code.RESOURCE_EXHAUSTED,
         501: Code.UNIMPLEMENTED, 502: Code.UNAVAILABLE, 503: Code.UNAVAILABLE}
ERRNOS = {errno.ENOENT: Code.NOT_FOUND, errno.ENOTDIR: Code.INVALID_ARGUMENT, errno.EISDIR: Code.INVALID_ARGUMENT, errno.EEXIST: Code.ALREADY_EXISTS,
          errno.EACCES: Code.PERMISSION_DENIED, errno.EPERM: Code.PERMISSION_DENIED, errno.EROFS: Code.PERMISSION_DENIED,
          errno.ENOSPC: Code.RESOURCE_EXHAUSTED, errno.EOVERFLOW: Code.RESOURCE_EXHAUSTED, errno.ELOOP: Code.INVALID_ARGUMENT,
          errno.ENAMETOOLONG: Code.INVALID_ARGUMENT, errno.EINVAL: Code.INVALID_ARGUMENT, errno.EXDEV: Code.INVALID_ARGUMENT}


@contextmanager
def told() -> Any:
    """Turns errors into those of the protocol."""
    try:
        yield
    except Refusal as why:
        raise ConnectError(CODES.get(why.status, Code.INTERNAL), str(why)) from None
    except FileError as why:
        raise ConnectError(ERRNOS.get(why.errno or 0, Code.INTERNAL), reason(why)) from None
    except CommandNotStarted as why:
        raise ConnectError(Code.INVALID_ARGUMENT, str(why)) from None
    except SandboxError as why:
        raise ConnectError(Code.UNAVAILABLE, f"the sandbox was not found: {why}") from None
    except RequestError as why:
        raise ConnectError(Code.INVALID_ARGUMENT, str(why)) from None
    except (LindError, TimeoutError) as why:
        raise ConnectError(Code.DEADLINE_EXCEEDED if isinstance(why, TimeoutError) else Code.INTERNAL, str(why)) from None


def find(boxes: Callable[[str], Box], context: RequestContext[Any, Any]) -> Box:
    """The sandbox that a request is for."""
    return boxes(context.request_headers.get("e2b-sandbox-id") or "")


def silence(context: RequestContext[Any, Any]) -> float:
    """The seconds after which a silent stream has to say something."""
    asked = context.request_headers.get("keepalive-ping-interval") or ""
    return float(max(1, min(int(asked), 600))) * 0.9 if asked.isascii() and asked.isdigit() and len(asked) < 5 else SILENCE


class Service:
    """A service: its name, and its methods."""

    def __init__(self, name: str, boxes: Callable[[str], Box]) -> None:
        self.name, self._boxes = name, boxes
        self._endpoints: dict[str, Any] = {}

    def _info(self, name: str, given: type[In], answer: type[Out]) -> MethodInfo[In, Out]:
        return MethodInfo(name=name, service_name=self.name, input=given, output=answer, idempotency_level=IdempotencyLevel.UNKNOWN)

    def unary(self, name: str, given: type[In], answer: type[Out], work: Callable[[Box, In], Awaitable[Out]]) -> None:
        """A method with one message each way."""

        async def function(request: In, context: RequestContext[In, Out]) -> Out:
            with told():
                return await work(find(self._boxes, context), request)

        self._endpoints[f"/{self.name}/{name}"] = Endpoint.unary(method=self._info(name, given, answer), function=function)

    def stream(
        self, name: str, given: type[In], answer: type[Out], work: Callable[[Box, In, RequestContext[In, Out]], AsyncIterator[Out]]
    ) -> None:
        """A method that answers with many messages."""

        async def function(request: In, context: RequestContext[In, Out]) -> AsyncIterator[Out]:
            with told():
                messages = work(find(self._boxes, context), request, context)
                try:
                    async for message in messages:
                        yield message
                finally:
                    await messages.aclose()  # type: ignore[attr-defined]

        self._endpoints[f"/{self.name}/{name}"] = Endpoint.server_stream(method=self._info(name, given, answer), function=function)

    def input(self, name: str, given: type[In], answer: type[Out], work: Callable[[Box, AsyncIterator[In]], Awaitable[Out]]) -> None:
        """A method that is asked with many messages."""

        async def function(requests: AsyncIterator[In], context: RequestContext[In, Out]) -> Out:
            with told():
                return await work(find(self._boxes, context), requests)

        self._endpoints[f"/{self.name}/{name}"] = Endpoint.client_stream(method=self._info(name, given, answer), function=function)

    def app(self) -> ConnectASGIApplication[Any]:
        """The application that answers for it. Nothing is compressed: both ends are mostly one machine."""
        return _Application(f"/{self.name}", self._endpoints)


class _Checked:
    """A codec that refuses what is not a message. The library's own reader of JSON goes as deep as the text says, past the end of the stack."""

    def __init__(self, codec: Any) -> None:
        self._codec = codec
        self.name, self.encode = codec.name, codec.encode

    def decode(self, data: bytes | bytearray, message_class: type[In]) -> In:
        """The message of a client."""
        try:
            if self.name() == "json" and data:
                parsed(bytes(data))
            message: In = self._codec.decode(data, message_class)
        except (Refusal, ValueError, RecursionError) as why:
            raise ConnectError(Code.INVALID_ARGUMENT, f"not a {message_class.__name__}: {why}") from None
        return message


CODECS = (_Checked(proto_binary_codec()), _Checked(proto_json_codec()))


class _Application(ConnectASGIApplication[Any]):
    def __init__(self, path: str, endpoints: dict[str, Any]) -> None:
        super().__init__(service=None, endpoints=lambda _: endpoints, read_max_bytes=MOST, compressions=(), codecs=CODECS)
        self._path = path

    @property
    def path(self) -> str:
        """Where its methods begin."""
        return self._path
