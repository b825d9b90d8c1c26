"""Forks and snapshots by the stock Python client of E2B, against `lind e2b`."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

e2b = pytest.importorskip("e2b")
pytest.importorskip("connectrpc")

from e2b import NotFoundException, Sandbox

from .e2b_server import denied, pointed, refusal, server


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with server(tmp_path_factory.mktemp("e2b"), "--allow=192.0.2.0/24", "--sandboxes=20") as (_, found), pointed(found):
        yield found


@pytest.fixture
def sandbox(variables: dict[str, str]) -> Iterator[Sandbox]:
    made = Sandbox.create(timeout=120)
    yield made
    made.kill()


def test_forks(variables: dict[str, str]) -> None:
    with Sandbox.create(timeout=120, metadata={"test": "fork"}, envs={"FOO": "kept"}) as source:
        source.update_network({"deny_out": ["192.0.2.7"]})
        source.commands.run("echo 1 >file; mkdir d; ln -s /etc/passwd link")
        first, second = source.fork(timeout=120, count=2)
        assert isinstance(first, Sandbox) and isinstance(second, Sandbox)
        with first, second:
            assert len({source.sandbox_id, first.sandbox_id, second.sandbox_id}) == 3
            for fork in (first, second):
                assert fork.commands.run("cat file; ls; readlink link; echo $FOO").stdout == "1\nd\nfile\nlink\n/etc/passwd\nkept\n"
                assert fork.get_info().metadata == {"test": "fork"} and denied(fork)
            first.files.write("file", "2")
            source.files.write("file", "3")
            assert [one.files.read("file") for one in (source, first, second)] == ["3", "2", "1\n"]
            # The network of one is not that of the others.
            first.update_network({})
            assert not denied(first) and denied(source) and denied(second)
            (third,) = first.fork()
            assert isinstance(third, Sandbox)
            with third:
                assert third.files.read("file") == "2" and not denied(third)
                assert 0 < (third.get_info().end_at - third.get_info().started_at).total_seconds() < 60


def test_what_runs_is_not_forked(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("sleep 100", background=True)
    for refused in (sandbox.fork, sandbox.create_snapshot, lambda: sandbox.create_snapshot(mode="full")):
        with pytest.raises(e2b.SandboxException, match="501: programs run in the sandbox"):
            refused()
    sandbox.delete_snapshot(sandbox.create_snapshot(mode="filesystem").snapshot_id)
    handle.kill()
    # A program that a command has left runs, too.
    sandbox.commands.run("sleep 100 >/dev/null 2>&1 </dev/null & echo $! >pid")
    with pytest.raises(e2b.SandboxException, match="501: programs run in the sandbox"):
        sandbox.fork()
    sandbox.commands.run("kill $(cat pid)")
    limit = time.monotonic() + 20
    while sandbox.commands.run("kill -0 $(cat pid) 2>/dev/null && echo yes || echo no").stdout != "no\n":
        assert time.monotonic() < limit
    (fork,) = sandbox.fork()
    assert isinstance(fork, Sandbox) and fork.kill()
    sandbox.pause()
    with pytest.raises(e2b.SandboxException, match="409: the sandbox is paused"):
        sandbox.fork()


def test_forks_that_are_refused(sandbox: Sandbox, variables: dict[str, str]) -> None:
    url = f"{variables['E2B_API_URL']}/sandboxes/{sandbox.sandbox_id}"
    key = {"X-API-KEY": variables["E2B_API_KEY"], "Content-Type": "application/json"}
    for path, said in (("fork", {"count": 0}), ("fork", {"count": 21}), ("fork", {"count": True}), ("fork", {"count": "2"}), ("fork", {"timeout": -1}),
                       ("snapshots", {"name": 1}), ("snapshots", {"name": "../x"}), ("snapshots", {"name": "A b"}), ("snapshots", {"name": "base"}),
                       ("snapshots", {"name": "base:v2"}), ("snapshots", {"memory": "no"})):
        assert refusal(urllib.request.Request(f"{url}/{path}", json.dumps(said).encode(), key)) == 400, said
        assert refusal(urllib.request.Request(f"{url}/{path}", json.dumps(said).encode())) == 401
    for path in ("/snapshots", "/templates/x"):
        assert refusal(f"{variables['E2B_API_URL']}{path}") == 401
    with pytest.raises(NotFoundException):
        Sandbox.fork("no-such-sandbox")
    # Each fork is made, or not: the server has room for 20 sandboxes.
    results = sandbox.fork(timeout=60, count=20)
    try:
        made = [one for one in results if isinstance(one, Sandbox)]
        assert len(made) == 19 and isinstance(results[19], e2b.RateLimitException) and "20 sandboxes" in str(results[19])
    finally:
        for one in results:
            if isinstance(one, Sandbox):
                one.kill()


def test_snapshots(variables: dict[str, str]) -> None:
    with Sandbox.create(timeout=120) as source:
        source.files.write("file", "1")
        first = source.create_snapshot()
        source.files.write("file", "2")
        named = source.create_snapshot(name="my-work")
        assert named.names == [named.snapshot_id] == ["my-work:default"] and first.names == []
        listed = Sandbox.list_snapshots(sandbox_id=source.sandbox_id, limit=1)
        assert [one.snapshot_id for one in listed.next_items()] == [named.snapshot_id] and listed.has_next
        assert [one.snapshot_id for one in listed.next_items()] == [first.snapshot_id] and not listed.has_next
    # They outlast their sandbox, and each sandbox changes its own files.
    for template, text in ((first.snapshot_id, "1"), ("my-work", "2"), (named.snapshot_id, "2")):
        with Sandbox.create(template, timeout=60, envs={"FOO": "new"}, allow_internet_access=False) as made:
            assert made.files.read("file") == text and made.commands.run("echo $FOO").stdout == "new\n" and denied(made)
            made.files.write("file", "3")
            assert made.get_info().template_id == template
    with Sandbox.create("my-work", timeout=60) as made:
        made.files.write("file", "4")
        assert made.create_snapshot(name="my-work").snapshot_id == named.snapshot_id
    with Sandbox.create("my-work", timeout=60) as made:
        assert made.files.read("file") == "4"
    assert Sandbox.delete_snapshot(first.snapshot_id) and not Sandbox.delete_snapshot(first.snapshot_id) and not Sandbox.delete_snapshot("base")
    with pytest.raises(e2b.SandboxException, match="404: .*the server has base"):
        Sandbox.create(first.snapshot_id)
    assert Sandbox.delete_snapshot("my-work") and Sandbox.list_snapshots().next_items() == []


def test_copies_end_with_the_server(tmp_path: Path) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    with server(tmp_path, f"-v={project}:/project:overlay", "--sandboxes=3", state=state) as (_, found), pointed(found), Sandbox.create(timeout=60) as source:
        source.files.write("/project/file", "1")
        (fork,) = source.fork(timeout=60)
        assert isinstance(fork, Sandbox)
        fork.files.write("/project/file", "2")
        assert source.files.read("/project/file") == "1" and fork.files.read("/project/file") == "2"
        for _ in range(3):
            snapshot = fork.create_snapshot()
        with pytest.raises(e2b.RateLimitException, match="3 snapshots"):
            fork.create_snapshot()
        with Sandbox.create(snapshot.snapshot_id, timeout=60) as made:
            assert made.files.read("/project/file") == "2"
        assert len(list((state / "lind" / "copies").iterdir())) == 4
    assert list((state / "lind" / "copies").iterdir()) == list(project.iterdir()) == []
