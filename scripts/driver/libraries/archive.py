"""Archives of ar: their members, and new ones."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from driver import place
from driver.place import Fail

MAGIC, THIN = b"!<arch>\n", b"!<thin>\n"
HEADER = 60


def is_archive(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) in (MAGIC, THIN)
    except OSError:
        return False


def members(path: str) -> Iterator[tuple[str, bytes]]:
    """The names and contents of an archive's members, without those that list its symbols."""
    with open(path, "rb") as file:
        data = file.read()
    thin = data.startswith(THIN)
    long_names = b""
    at = len(MAGIC)
    while at + HEADER <= len(data):
        header = data[at : at + HEADER]
        if not header[48:58].strip().isdigit() or at + HEADER + int(header[48:58]) > len(data) > 0 and not thin:
            raise Fail(f"{path}: the archive is damaged")
        size = int(header[48:58])
        name = header[:16].rstrip().decode(errors="surrogateescape")
        at += HEADER
        special = name in ("/", "//", "/SYM64/")
        body = data[at : at + size] if special or not thin else b""
        at += size + size % 2 if special or not thin else 0
        if name == "//":
            long_names = body
        if special:
            continue
        if name.startswith("/"):
            begin = int(name[1:]) if name[1:].isdecimal() else len(long_names)
            name = long_names[begin:].split(b"\n", 1)[0].decode(errors="surrogateescape")
        if name.startswith("#1/"):
            length = int(name[3:]) if name[3:].isdecimal() else 0
            name, body = body[:length].rstrip(b"\0").decode(errors="surrogateescape"), body[length:]
        name = name.rstrip("/")
        if not name.isprintable():
            raise Fail(f"{path}: the archive is damaged")
        if thin:
            with open(os.path.join(os.path.dirname(path), name), "rb") as file:
                body = file.read()
        yield name, body


def first_names(path: str) -> list[str]:
    """The names of the first three members, as they are in the headers."""
    names = []
    with open(path, "rb") as file:
        at = len(MAGIC)
        for _ in range(3):
            file.seek(at)
            header = file.read(HEADER)
            if len(header) < HEADER or not header[48:58].strip().isdigit():
                break
            names.append(header[:16].rstrip().decode(errors="surrogateescape").rstrip("/"))
            size = int(header[48:58])
            at += HEADER + size + size % 2
    return names


def index(path: str) -> set[str]:
    """The names in an archive's list of symbols."""
    with open(path, "rb") as file:
        data = file.read(len(MAGIC) + HEADER)
        if data[len(MAGIC) : len(MAGIC) + 2] != b"/ ":
            return set()
        size = data[len(MAGIC) + 48 : len(MAGIC) + 58].strip()
        body = file.read(int(size)) if size.isdigit() else b""
    count = int.from_bytes(body[:4], "big")
    return {name.decode(errors="surrogateescape") for name in body[4 + 4 * count :].split(b"\0") if name}


def with_members(path: str) -> bytes:
    """The contents of a file; those of a thin archive, whose members are files of their own, with these."""
    with open(path, "rb") as file:
        data = file.read()
    return b"".join(encoded(members(path))) if data.startswith(THIN) else data


def encoded(entries: Iterable[tuple[str, bytes]]) -> list[bytes]:
    """An archive, in pieces. Names only tell people which member it is: the end of a long one is
    kept, in plain characters."""
    parts = [MAGIC]
    for name, body in entries:
        plain = "".join(sign if " " <= sign <= "~" else "?" for sign in name[-15:])
        header = f"{plain + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(body):<10}`\n"
        parts += [header.encode(), body, b"\n" * (len(body) % 2)]
    return parts


def write(path: str, entries: list[tuple[str, bytes]]) -> None:
    """Writes an archive, which replaces the file when all of it is there; a device is written to."""
    parts = encoded(entries)
    if place.is_device(path):
        with open(path, "wb") as file:
            file.writelines(parts)
        return
    beside = f"{path}.{os.getpid()}.new"
    try:
        with open(beside, "wb") as file:
            file.writelines(parts)
        os.replace(beside, path)
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
