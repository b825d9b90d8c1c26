"""A `lind sandboxd` that tests ask, and the calls of its services without the clients of agent-sandbox."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]

from lind.servers.sandboxd import process_v1_pb as process
from lind.servers.sandboxd import watcher_v1_pb as watcher

SERVICE = "/process.v1.ProcessService/"
WHERE = re.compile(r"lind sandboxd: (\S+), and gRPC at (\S+)")
ANSWERS: dict[str, Any] = {"Execute": process.ExecuteResponse, "WriteStdin": process.WriteStdinResponse, "SendSignal": process.SendSignalResponse,
                           "ResizeTTY": process.ResizeTTYResponse}


@dataclass
class Asked:
    """An answer by HTTP."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def code(self) -> str:
        """The word that says what is wrong."""
        return str(self.json["code"])

    @property
    def json(self) -> Any:
        """The object that it is."""
        return json.loads(self.body)


@dataclass
class Client:
    """Asks a server for one of its sandboxes."""

    url: str
    target: str
    token: str | None
    id: str | None = None
    pid: int = 0
    channel: Any = field(init=False)

    def __post_init__(self) -> None:
        self.channel = grpc.insecure_channel(self.target)

    def of(self, id: str | None, token: str | None = None) -> Client:
        """A client of another sandbox."""
        return Client(self.url, self.target, token or self.token, id, self.pid)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request."""
        return ({"authorization": f"Bearer {self.token}"} if self.token else {}) | ({"x-sandbox-id": self.id} if self.id else {})

    def ask(self, method: str, path: str, data: Any = None, **headers: str) -> Asked:
        """A request by HTTP. An object is sent as JSON."""
        if isinstance(data, dict):
            data, headers = json.dumps(data).encode(), {"content-type": "application/json", **headers}
        given = {name.replace("_", "-"): value for name, value in {**self.headers, **headers}.items()}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data, headers=given, method=method), timeout=60) as answer:
                return Asked(answer.status, answer.read(), {name.lower(): value for name, value in answer.headers.items()})
        except urllib.error.HTTPError as why:
            return Asked(why.code, why.read(), dict(why.headers))

    def call(self, name: str, message: Any, timeout: float = 60) -> Any:
        """A call with one answer."""
        method = self.channel.unary_unary(SERVICE + name)
        return ANSWERS[name].from_binary(method(message.to_binary(), metadata=list(self.headers.items()), timeout=timeout))

    def execute(self, *words: str, cwd: str | None = None, timeout: float = 60, **variables: str) -> tuple[int, bytes, bytes]:
        """The status of a command, and its output."""
        answer = self.call("Execute", process.ExecuteRequest(config=process.ProcessConfig(command=list(words), cwd=cwd, env_vars=variables)), timeout)
        return answer.exit_code, answer.stdout, answer.stderr

    def start(self, *words: str, pty: process.PTY | None = None, timeout: float = 60) -> Any:
        """A command whose events come as they happen: the name of each and its contents."""
        message = process.StartRequest(config=process.ProcessConfig(command=list(words)), pty=pty)
        stream = self.channel.unary_stream(SERVICE + "Start", response_deserializer=lambda raw: process.StartResponse.from_binary(raw).event)
        return stream(message.to_binary(), metadata=list(self.headers.items()), timeout=timeout)

    def watch(self, path: str, *, recursive: bool = False) -> Any:
        """A watch that has begun."""
        stream = self.channel.unary_stream("/watcher.v1.FileWatcherService/WatchDir", response_deserializer=watcher.FileEvent.from_binary)
        message = watcher.WatchDirRequest(path=path, recursive=recursive)
        events = stream(message.to_binary(), metadata=list(self.headers.items()), timeout=60)
        # They come when it has begun, or with the error.
        events.initial_metadata()
        return events


def first(events: Any) -> int:
    """The number of a command, which its first event has."""
    event = next(events)
    assert event.field == "init", event
    return int(event.value.process_id)


def rest(events: Any) -> tuple[bytes, bytes, int]:
    """The output of a command from now on, and its status."""
    kept = {"stdout": b"", "stderr": b""}
    for event in events:
        if event.field == "exit":
            code = int(event.value.exit_code)
            assert next(events, None) is None
            return kept["stdout"], kept["stderr"], code
        kept[event.field] += event.value
    raise AssertionError("a stream without an end")


@contextmanager
def server(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """A server with these options, and a client of its sandbox without a name."""
    file = folder / "token"
    command = [sys.executable, "-m", "lind._cli", "sandboxd", f"--token-file={file}", "--listen=127.0.0.1:0", "--grpc=127.0.0.1:0", *words]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as running:
        try:
            assert running.stdout is not None
            found = WHERE.fullmatch(running.stdout.readline().strip())
            assert found is not None, (folder / "log").read_text()
            yield running, Client(found[1], found[2], file.read_text().strip() if file.exists() else None, pid=running.pid)
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(30)
    said = (folder / "log").read_text()
    assert "Traceback" not in said, said
    assert not file.exists() or file.read_text().strip() not in said
