"""Texts of a guest as others may print them."""

from __future__ import annotations

import codecs

from lind.errors import shown

# The longest name in a result or a question.
LONGEST = 1000
KEPT = "\n\t"


def name(text: str, most: int = LONGEST) -> str:
    """A name, in one line and not too long.

    >>> name("a\\x1b[2Jb\\nc")
    'a\\\\x1b[2Jb\\\\nc'
    """
    escaped = shown(text)
    return escaped if len(escaped) <= most else f"{escaped[: most // 2]}...{escaped[-most // 2 :]}"


def lines(text: str) -> str:
    """Lines of text. Line ends and tabs stay, and what else a terminal would act on is escaped.

    >>> lines("a\\r\\n\\tb\\x1b[2J")
    'a\\n\\tb\\\\x1b[2J'
    """
    return "".join(char if char in KEPT or char.isprintable() else shown(char) for char in text.replace("\r\n", "\n"))


def decoded(data: bytes, final: bool) -> tuple[str, int]:
    """Bytes as text, and how many at the end are the beginning of a character that has not come whole.

    >>> decoded("aé".encode()[:2], final=False), decoded("aé".encode()[:2], final=True)
    (('a', 1), ('a\\ufffd', 0))
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(data, final)
    return text, len(decoder.getstate()[0])
