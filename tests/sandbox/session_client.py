#!/usr/bin/env python3
"""A small client of sessions, as an example of the protocol in docs/session.md. It needs nothing but Python.

    lind-boot session start work -v .
    tests/sandbox/session_client.py work ls -l
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path


class Refused(ValueError):
    """The answer of a session that refuses; `errno` is a name such as ENOENT, or None."""

    def __init__(self, answer: dict) -> None:
        super().__init__(answer["error"])
        self.status, self.errno = answer.get("status"), answer.get("errno")


def place(name: str) -> Path:
    """The socket of a session."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return (Path(runtime) / "lind" if runtime else Path(f"/tmp/lind-{os.geteuid()}")) / f"{name}.sock"


class Session:
    """A connection, for one request after another."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.stream = self.socket.makefile("rb")

    def send(self, body: bytes = b"", **message: object) -> None:
        text = json.dumps({"lind": 2, "bytes": len(body), **message}).encode()
        self.socket.sendall(len(text).to_bytes(4, "little") + text + body)

    def receive(self) -> tuple[dict, bytes]:
        head = self.stream.read(4)
        if len(head) < 4:
            raise ConnectionError("the session has ended")
        message = json.loads(self.stream.read(int.from_bytes(head, "little")))
        body = self.stream.read(message.get("bytes", 0))
        if "error" in message:
            raise Refused(message)
        return message, body

    def ask(self, verb: str, body: bytes = b"", **keys: object) -> dict:
        """The answer to a request that has one answer."""
        self.send(body, do=verb, **keys)
        return self.receive()[0]

    def events(self, last: str = "ended") -> Iterator[tuple[dict, bytes]]:
        """The messages up to the one with this key."""
        while True:
            message, body = self.receive()
            yield message, body
            if last in message:
                return

    def run(self, *argv: str, stdin: bytes = b"", **keys: object) -> tuple[dict, bytes, bytes]:
        """How a command has ended, and what it has written to its standard output and error."""
        self.send(do="exec", argv=argv, stdin=True, **keys)
        self.send(stdin, do="input", close=True)
        out = {"stdout": b"", "stderr": b"", "terminal": b""}
        for message, body in self.events():
            if "output" in message:
                out[message["output"]] += body
        return message["ended"], out["stdout"], out["stderr"]


if __name__ == "__main__":
    end, stdout, stderr = Session(place(sys.argv[1])).run(*sys.argv[2:], env=[f"TERM={os.environ.get('TERM', 'dumb')}"])
    sys.stdout.buffer.write(stdout)
    sys.stderr.buffer.write(stderr)
    sys.exit(end["status"] if end["status"] is not None else 128 + end["signal"])
