"""The protocol, without a session."""

from __future__ import annotations

import json
import random

import pytest

from lind._messages import MOST, PIECE, Decoder, ProtocolError, encode, pieces, text, word
from lind._reading import read_end, read_file
from lind.errors import CommandError, DeniedError, FileError, NotFoundError, RequestError, refusal
from lind.results import Result


def joined(**keys: object) -> bytes:
    body = keys.pop("body", b"")
    assert isinstance(body, bytes)
    return b"".join(encode(keys, body))


def test_messages_come_in_any_pieces() -> None:
    sent: list[tuple[dict[str, object], bytes]] = [({"do": "a"}, b""), ({"do": "b", "n": 1}, b"body"), ({"do": "\u00e4"}, bytes(70_000))]
    stream = b"".join(joined(body=body, **keys) for keys, body in sent)
    for step in (1, 3, 17, 4096, len(stream)):
        decoder, found = Decoder(), []
        for at in range(0, len(stream), step):
            decoder.feed(stream[at : at + step])
            while (message := decoder.next()) is not None:
                found.append(({key: value for key, value in message.keys.items() if key not in ("lind", "bytes")}, message.body))
        assert found == sent


def test_what_is_no_message_is_refused() -> None:
    for wrong in (b"\xff\xff\xff\x7f", b"\x02\0\0\0{]", b"\x02\0\0\0[]", b"\x01\0\0\0\xff"):
        decoder = Decoder()
        decoder.feed(wrong)
        with pytest.raises(ProtocolError):
            decoder.next()
    for count in (-1, MOST + 1, "x", 1.5, None):
        line = json.dumps({"bytes": count}).encode()
        decoder = Decoder()
        decoder.feed(len(line).to_bytes(4, "little") + line)
        with pytest.raises(ProtocolError):
            decoder.next()


def test_any_bytes_raise_no_other_error() -> None:
    chance = random.Random(1)
    good = joined(do="x", body=b"12345")
    for _ in range(2000):
        raw = bytearray(good)
        for _ in range(chance.randrange(1, 6)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        decoder = Decoder()
        decoder.feed(bytes(raw))
        try:
            while decoder.next() is not None:
                pass
        except ProtocolError:
            pass


def test_deep_nesting_is_a_mistake_of_the_other_side() -> None:
    line = b"[" * 1_000_000
    decoder = Decoder()
    decoder.feed(len(line).to_bytes(4, "little") + line)
    with pytest.raises(ProtocolError):
        decoder.next()


def test_names_are_any_bytes() -> None:
    for raw in (b"a", "\u00e4".encode(), b"\xff\xfe", b""):
        assert word(text(word(raw))) == word(raw)
    assert (word(b"a\xff"), text([97, 255])) == ([97, 255], "a\udcff")
    wrong: object
    for wrong in (1, None, [256], ["a"], {}):
        with pytest.raises(ProtocolError):
            text(wrong)


def test_requests_that_are_too_long() -> None:
    with pytest.raises(ProtocolError):
        encode({"argv": ["x" * MOST]})
    with pytest.raises(ProtocolError):
        encode({}, bytes(MOST + 1))
    assert [len(piece) for piece in pieces(bytes(PIECE + 1))] == [PIECE, 1]
    assert [len(piece) for piece in pieces(b"")] == [0]


def test_answers_become_errors() -> None:
    error = refusal({"error": "/a: No such file", "status": 125, "errno": "ENOENT", "path": "/a"})
    assert isinstance(error, NotFoundError) and error.filename == "/a"
    assert isinstance(refusal({"error": "x", "errno": "EROFS", "path": [255]}), DeniedError)
    assert type(refusal({"error": "x", "errno": "EXDEV", "path": "/"})) is FileError
    other = refusal({"error": "bad\x1b]0;x\x07", "status": "x", "errno": "NONSENSE", "path": "/"})
    assert isinstance(other, RequestError) and str(other) == "bad\\x1b]0;x\\x07"


def test_claims_about_files_and_ends_are_checked() -> None:
    with pytest.raises(ProtocolError):
        read_file({"name": "a", "type": "file", "size": "1"})
    with pytest.raises(ProtocolError):
        read_file([])
    with pytest.raises(ProtocolError):
        read_end({"status": None, "signal": None, "wall": 1})
    assert read_end({"status": None, "signal": 9, "wall": 1}).exit_code == 137


def test_errors_can_be_printed() -> None:
    error = CommandError("a\nb", Result(1, stderr_bytes="first\n\u202elast \u00e4\n".encode()))
    assert str(error) == "a\\nb has exited with status 1: \\u202elast \u00e4"
