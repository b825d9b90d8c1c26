"""The second version of the protocol of sessions, without input and output: bytes to messages, messages to bytes.

A message is four bytes with the length of a text, the text, which is a JSON object, and as many bytes as its key `bytes` says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

VERSION = 2
# The most that the text of a message and the bytes behind it may have.
MOST = 4 << 20
# How many bytes are sent with one message.
PIECE = 1 << 20
_HEAD = 4


class ProtocolError(ValueError):
    """The bytes are not a message."""


@dataclass(frozen=True)
class Message:
    """A message that has come."""

    keys: dict[str, Any]
    body: bytes


def word(value: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str | list[int]:
    """A name, or a word of a command line, for JSON: a text, or a list of numbers where it is not UTF-8."""
    raw = os.fsencode(value)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return list(raw)


def text(value: object) -> str:
    """A name from JSON. Bytes that are not UTF-8 become surrogates, as in names that `os` returns.

    >>> text("a"), text([97, 255])
    ('a', 'a\\udcff')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        try:
            return os.fsdecode(bytes(value))
        except (TypeError, ValueError):
            pass
    raise ProtocolError(f"expected a text or a list of bytes, not {value!r}")


def text_or_none(value: object) -> str | None:
    """The same, or None."""
    return None if value is None else text(value)


def encode(keys: dict[str, Any], body: bytes | memoryview = b"") -> list[bytes | memoryview]:
    """The parts of a message, to be sent one after the other. Keys whose value is None are left out."""
    if len(body) > MOST:
        raise ProtocolError(f"a message has at most {MOST} bytes")
    head = {"lind": VERSION, **{key: value for key, value in keys.items() if value is not None}}
    if len(body):
        head["bytes"] = len(body)
    line = json.dumps(head, separators=(",", ":")).encode()
    if len(line) > MOST:
        raise ProtocolError(f"the request is too long: {len(line)} bytes, {MOST} are allowed")
    parts: list[bytes | memoryview] = [len(line).to_bytes(_HEAD, "little") + line]
    return [*parts, body] if len(body) else parts


def pieces(data: bytes | memoryview) -> Iterator[memoryview]:
    """The data in parts that a message can have; one empty part for no data."""
    view = memoryview(data)
    for at in range(0, max(len(view), 1), PIECE):
        yield view[at : at + PIECE]


class Decoder:
    """Makes messages of the bytes that come.

    >>> decoder = Decoder()
    >>> decoder.feed(b"".join(encode({"output": "stdout"}, b"hello")))
    >>> decoder.next()
    Message(keys={'lind': 2, 'output': 'stdout', 'bytes': 5}, body=b'hello')
    >>> decoder.next() is None
    True
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._keys: dict[str, Any] | None = None
        self._body = 0

    def feed(self, data: bytes) -> None:
        """Takes bytes."""
        self._buffer += data

    def next(self) -> Message | None:
        """The next message, or None if it has not come whole."""
        if self._keys is None:
            self._keys = self._head()
        if self._keys is None or len(self._buffer) < self._body:
            return None
        message = Message(self._keys, bytes(self._buffer[: self._body]))
        del self._buffer[: self._body]
        self._keys = None
        return message

    def _head(self) -> dict[str, Any] | None:
        if len(self._buffer) < _HEAD:
            return None
        length = int.from_bytes(self._buffer[:_HEAD], "little")
        if length > MOST:
            raise ProtocolError(f"a message of {length} bytes, {MOST} are allowed")
        if len(self._buffer) < _HEAD + length:
            return None
        try:
            keys = json.loads(self._buffer[_HEAD : _HEAD + length])
        except (ValueError, RecursionError) as why:
            raise ProtocolError(f"a message is not JSON: {why}") from None
        if not isinstance(keys, dict):
            raise ProtocolError("a message is not an object")
        body = keys.get("bytes", 0)
        if not isinstance(body, int) or not 0 <= body <= MOST:
            raise ProtocolError(f"a message with {body!r} bytes, {MOST} are allowed")
        del self._buffer[: _HEAD + length]
        self._body = body
        return keys
