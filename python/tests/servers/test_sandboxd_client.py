"""The stock Python client of agent-sandbox, against `lind sandboxd`. The Kubernetes that it asks where a sandbox is answers from this file."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

client = pytest.importorskip("k8s_agent_sandbox")

from k8s_agent_sandbox.async_sandbox import AsyncSandbox
from k8s_agent_sandbox.exceptions import SandboxRequestError
from k8s_agent_sandbox.models import SandboxdInClusterConnectionConfig, SandboxDirectConnectionConfig
from k8s_agent_sandbox.sandbox import Sandbox

from .sandboxd_server import Client, server


class Cluster:
    """Kubernetes, as far as the client asks it."""

    injected_api_client = None

    def get_sandbox(self, name: str, namespace: str) -> dict[str, Any]:
        """A sandbox whose pod and service are here."""
        return {"metadata": {"name": name}, "status": {"podIPs": ["127.0.0.1"], "serviceFQDN": "localhost"}}


class AsyncCluster(Cluster):
    """The same for asyncio."""

    async def get_sandbox(self, name: str, namespace: str) -> dict[str, Any]:  # type: ignore[override]
        """A sandbox whose pod and service are here."""
        return super().get_sandbox(name, namespace)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A server without a token, as this client has none to send to a pod."""
    with server(tmp_path_factory.mktemp("open"), "--open") as (_, found):
        yield found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with server(tmp_path_factory.mktemp("guarded")) as (_, found):
        yield found


def in_pod(where: Client, mode: str) -> Any:
    """How the client reaches a pod."""
    rest, calls = urlsplit(where.url).port, urlsplit(f"//{where.target}").port
    return SandboxdInClusterConnectionConfig(mode=mode, rest_port=rest, grpc_port=calls)


def by_url(where: Client, token: str | None) -> Any:
    """How the client reaches a router, which is the server itself."""
    return SandboxDirectConnectionConfig(api_url=where.url, extra_headers={"Authorization": f"Bearer {token}"})


def made(id: str, config: Any) -> Sandbox:
    return Sandbox("claim", id, connection_config=config, k8s_helper=Cluster())


@pytest.mark.parametrize("mode", ["in-cluster-pod-ip", "in-cluster-service"])
def test_in_a_pod(opened: Client, mode: str) -> None:
    sandbox = made("box", in_pod(opened, mode))
    result = sandbox.commands.run("echo out; echo err >&2; echo $A; pwd; exit 3", env={"A": "b"}, cwd="/")
    assert (result.exit_code, result.stdout, result.stderr, result.timed_out) == (3, "out\nb\n/workspace\n", "err\n", False)
    late = sandbox.commands.run("sleep 20", command_timeout=1)
    assert late.timed_out and late.exit_code == 124
    files = sandbox.files
    files.write("src/a b/main.py", "print(1)\n")
    assert files.read("src/a b/main.py") == b"print(1)\n" and sandbox.commands.run("cat 'src/a b/main.py'").stdout == "print(1)\n"
    files.write("src/stream", io.BytesIO(b"x" * (5 << 20)))
    into = io.BytesIO()
    assert files.read_to("src/stream", into) == 5 << 20 and into.getvalue() == b"x" * (5 << 20)
    with pytest.raises(RuntimeError):
        files.read_to("src/stream", io.BytesIO(), max_bytes=1000)
    assert [(one.name, one.type, one.mode) for one in files.list("src")] == [("a b", "directory", "0755"), ("stream", "file", "0644")]
    assert files.exists("src/stream") and not files.exists("src/none")
    for path, status in (("src", 409), ("none", 404)):
        with pytest.raises(SandboxRequestError) as caught:
            files.delete(path)
        assert caught.value.status_code == status
    files.delete("src", recursive=True)
    assert files.list(".") == []
    for path in ("../../etc/passwd", "src/../../etc"):
        with pytest.raises(SandboxRequestError) as caught:
            files.read(path, allow_unsafe_paths=True)
        assert caught.value.status_code == 403
    with pytest.raises(RuntimeError, match="PERMISSION_DENIED"):
        sandbox.commands.run("true", cwd="../..")
    sandbox.close_connection()


def test_by_a_url(guarded: Client) -> None:
    boxes = [made(id, by_url(guarded, guarded.token)) for id in ("one", "two")]
    for box in boxes:
        box.files.write("deep/er/mine", box.sandbox_id)
    assert [box.commands.run("cat deep/er/mine").stdout for box in boxes] == ["one", "two"]
    one = boxes[0]
    result = one.commands.run("echo $((6 * 7)); echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, "42\n", "err\n")
    late = one.commands.run("echo before; sleep 20", command_timeout=1)
    assert (late.stdout, late.timed_out) == ("before\n", True)
    one.files.write("deep/a b", io.BytesIO(b"x" * (3 << 20)))
    assert one.files.read("deep/a b") == b"x" * (3 << 20)
    assert [(entry.name, entry.type) for entry in one.files.list("deep")] == [("a b", "file"), ("er", "directory")]
    assert one.files.exists("deep") and not one.files.exists("none")
    for box in boxes:
        box.close_connection()


def test_tokens(guarded: Client) -> None:
    for token in ("", "wrong", None):
        box = made("one", by_url(guarded, token))
        with pytest.raises(SandboxRequestError) as caught:
            box.commands.run("true")
        assert caught.value.status_code == 401
        box.close_connection()


def test_many_clients_at_once(opened: Client) -> None:
    answers: dict[int, str] = {}

    def work(number: int) -> None:
        box = made("box", in_pod(opened, "in-cluster-pod-ip"))
        for time in range(5):
            answers[number * 5 + time] = box.commands.run(f"echo {number * 5 + time}").stdout
        box.close_connection()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert answers == {number: f"{number}\n" for number in range(40)}


async def _asks(opened: Client) -> None:
    sandbox = AsyncSandbox("claim", "box", connection_config=in_pod(opened, "in-cluster-pod-ip"), k8s_helper=AsyncCluster())
    result = await sandbox.commands.run("echo out; exit 3")
    assert (result.exit_code, result.stdout) == (3, "out\n")
    assert sandbox.files is not None
    await sandbox.files.write("file", b"text")
    assert await sandbox.files.read("file") == b"text" and "file" in [one.name for one in await sandbox.files.list(".")]
    await sandbox.files.delete("file")
    assert not await sandbox.files.exists("file")
    await sandbox.close_connection()


def test_the_client_for_asyncio(opened: Client) -> None:
    asyncio.run(_asks(opened))


def test_the_example_of_the_document(opened: Client, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "sandboxd.md").read_text()
    program = page.split("```python\n")[1].split("```")[0].replace("http://127.0.0.1:8080", opened.url)
    token = tmp_path / ".config" / "lind" / "sandboxd.token"
    token.parent.mkdir(parents=True)
    token.write_text("a token that nobody asks for\n")
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
