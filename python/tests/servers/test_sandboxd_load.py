"""Clients of `lind sandboxd` that leave, do not read, or read much, many at once, and servers that end meanwhile."""

from __future__ import annotations

import http.client
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

grpc = pytest.importorskip("grpc")

from lind.servers.sandboxd import process_v1_pb as pb

from .loads import GROWTH, IS_LONG, MUCH, is_alive, resident, sessions, until
from .sandboxd_server import SERVICE, Client, first, rest, server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with server(tmp_path_factory.mktemp("load"), "--sandboxes=200") as (_, found):
        yield found


def exists(client: Client, name: str) -> bool:
    return client.ask("HEAD", f"/v1/files/{name}").status == 200


def test_a_client_that_does_not_read(client: Client) -> None:
    client.execute("true")
    before = resident(client.pid)
    events = client.start("sh", "-c", f"head -c {MUCH} /dev/zero; echo done >end", timeout=600)
    first(events)
    time.sleep(2)
    # The command waits, the server keeps little, and others are served.
    assert not exists(client, "end") and resident(client.pid) - before < GROWTH
    assert client.execute("echo", "others")[1] == b"others\n"
    total = 0
    for event in events:
        total += len(event.value) if event.field == "stdout" else 0
    assert total == MUCH and exists(client, "end")
    client.ask("DELETE", "/v1/files/end")


def test_much_output(client: Client) -> None:
    before, most, total = resident(client.pid), 0, 0
    events = client.start("head", "-c", str(MUCH), "/dev/zero", timeout=600)
    first(events)
    for event in events:
        total += len(event.value) if event.field == "stdout" else 0
        most = max(most, resident(client.pid)) if total % (1 << 20) < 1 << 17 else most
    assert total == MUCH and most - before < GROWTH


def test_a_client_that_disconnects(client: Client) -> None:
    """Without it the command ends, as in the daemon of agent-sandbox, also in the middle of its output."""
    channel = Client(client.url, client.target, client.token).channel
    method = channel.unary_stream(SERVICE + "Start")
    config = pb.ProcessConfig(command=["sh", "-c", f"head -c {MUCH} /dev/zero; echo done >end"])
    events = method(pb.StartRequest(config=config).to_binary(), metadata=list(client.headers.items()), timeout=60)
    next(events)
    next(events)
    channel.close()
    until("nothing of it runs", lambda: b"head" not in client.execute("ps")[1])
    assert not exists(client, "end")


def test_a_reader_of_a_file_that_does_not_read(client: Client) -> None:
    client.execute("sh", "-c", "head -c 100000000 /dev/zero >large")
    before, where = resident(client.pid), urlsplit(client.url)
    readers = [http.client.HTTPConnection(where.hostname or "", where.port, timeout=60) for _ in range(20)]
    for reader in readers:
        reader.request("GET", "/v1/files/large", headers=client.headers)
    answers = [reader.getresponse() for reader in readers]
    # They keep nobody from anything: the sandbox has eight programs for files.
    assert client.ask("PUT", "/v1/files/other", b"x").status == 204 and client.ask("GET", "/v1/files/other").body == b"x"
    assert len(answers[0].read()) == 100_000_000 and resident(client.pid) - before < 20 * (4 << 20) + GROWTH
    for reader in readers:
        reader.close()
    client.ask("DELETE", "/v1/files/large")


def test_many_sandboxes_and_commands(client: Client) -> None:
    """Each command gives its own output, and the server does not grow with their number."""
    boxes, times = (199, 100) if IS_LONG else (12, 10)
    lost: list[Any] = []

    def work(worker: int, workers: int, count: int) -> None:
        method = client.channel.unary_unary(SERVICE + "Execute")
        for number in range(worker, count, workers):
            config = pb.ProcessConfig(command=["echo", str(number)])
            given = [*client.headers.items(), ("x-sandbox-id", f"box{number % boxes}")]
            answer = pb.ExecuteResponse.from_binary(method(pb.ExecuteRequest(config=config).to_binary(), metadata=given, timeout=300))
            if (answer.exit_code, answer.stdout, answer.stderr) != (0, f"{number}\n".encode(), b""):
                lost.append((number, answer))

    def all_of(count: int) -> int:
        threads = [threading.Thread(target=work, args=(worker, 32, count)) for worker in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert not lost and not any(thread.is_alive() for thread in threads)
        return resident(client.pid)

    few = all_of(boxes * 2)
    assert len(client.ask("GET", "/v1/sandboxes").json["sandboxes"]) >= boxes
    assert all_of(boxes * times) - few < GROWTH
    for number in range(boxes):
        assert client.ask("DELETE", f"/v1/sandboxes/box{number}").status == 204


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_that_ends_midway(tmp_path: Path, number: int) -> None:
    with server(tmp_path) as (process, client):
        boxes = [client.of(id) for id in ("one", "two", "three")]
        streams = [box.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done") for box in boxes]
        asked = boxes[0].start("sh", "-c", "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.05; done")
        for stream in [*streams, asked]:
            first(stream)
            assert next(stream).value == b"ready\n"
        started = sessions(process.pid)
        assert len(started) >= 3
        process.send_signal(number)
        if number == signal.SIGTERM:
            # Commands that want to may end well.
            output, _, status = rest(asked)
            assert (output, status) == (b"asked\n", 5)
        process.wait(30)
        until("all sessions end", lambda: not any(map(is_alive, started)))
        for stream in streams:
            try:
                assert rest(stream)[2] == 137
            except grpc.RpcError as why:
                assert why.code() is grpc.StatusCode.UNAVAILABLE
