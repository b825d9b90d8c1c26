"""The stock Python client of E2B, against `lind e2b`. README.md says which of the client's own tests these restate."""

from __future__ import annotations

import asyncio
import io
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

e2b = pytest.importorskip("e2b")
pytest.importorskip("connectrpc")

from e2b import AsyncSandbox, CommandExitException, FilesystemEventType, FileType, NotFoundException, Sandbox, SandboxQuery, SandboxState, TimeoutException
from e2b.sandbox.commands.command_handle import PtySize

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


def test_run(sandbox: Sandbox) -> None:
    for text in ("Hello, World!", "!@#%^&*()_+", "Hello,\nWorld!"):
        result = sandbox.commands.run(f'echo "{text}"')
        assert (result.exit_code, result.stdout, result.stderr) == (0, f"{text}\n", "")
    heard: list[str] = []
    result = sandbox.commands.run("echo out; echo err >&2", on_stdout=heard.append, on_stderr=heard.append)
    assert (result.stdout, result.stderr) == ("out\n", "err\n") and sorted(heard) == ["err\n", "out\n"]
    with pytest.raises(CommandExitException) as caught:
        sandbox.commands.run("echo before; exit 3")
    assert (caught.value.exit_code, caught.value.stdout) == (3, "before\n")


def test_text_that_is_not_utf8(sandbox: Sandbox) -> None:
    assert sandbox.commands.run(r"printf '%08191d\xe2' 0").stdout == "0" * 8191 + "\ufffd"


def test_the_time_of_a_command(sandbox: Sandbox) -> None:
    assert sandbox.commands.run("echo done", timeout=60).stdout == "done\n"
    with pytest.raises(TimeoutException):
        sandbox.commands.run("echo $$ >pid; sleep 100", timeout=2)
    limit = time.monotonic() + 10
    while sandbox.commands.list():
        # The server has killed it.
        assert time.monotonic() < limit
    handle = sandbox.commands.run("sleep 100", timeout=2, background=True)
    with pytest.raises(TimeoutException):
        list(handle)


def test_variables_and_directories(variables: dict[str, str]) -> None:
    with Sandbox.create(envs={"FOO": "sandbox", "OTHER": "kept"}, timeout=60) as sandbox:
        line = "echo $FOO $OTHER $HOME; pwd"
        assert sandbox.commands.run(line).stdout == "sandbox kept /home/user\n/home/user\n"
        assert sandbox.commands.run(line, envs={"FOO": "command"}, cwd="/tmp").stdout == "command kept /home/user\n/tmp\n"
        with pytest.raises(e2b.InvalidArgumentException):
            sandbox.commands.run("true", cwd="/not-there")


def test_list_connect_and_kill(sandbox: Sandbox) -> None:
    first, second = (sandbox.commands.run("sleep 100", background=True) for _ in range(2))
    assert {first.pid, second.pid} <= {info.pid for info in sandbox.commands.list()}
    assert sandbox.commands.connect(first.pid).pid == first.pid
    assert sandbox.commands.kill(first.pid) and second.kill()
    for handle in (first, second):
        with pytest.raises(CommandExitException) as caught:
            handle.wait()
        assert (caught.value.exit_code, caught.value.error) == (-1, "signal: killed")
    assert not sandbox.commands.kill(first.pid) and not sandbox.commands.kill(999_999)
    with pytest.raises(NotFoundException):
        sandbox.commands.connect(999_999)


def test_input(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("cat", background=True, stdin=True)
    for text in ("Hello, World!", "", "!@#$\n", "\u00e9\n"):
        handle.send_stdin(text)
    sandbox.commands.send_stdin(handle.pid, b"bytes\n")
    handle.close_stdin()
    assert handle.wait().stdout == "Hello, World!!@#$\n\u00e9\nbytes\n"
    handle = sandbox.commands.run("wc -c", background=True, stdin=True)
    sandbox.commands.stream_input(handle.pid, (b"x" * 100_000 for _ in range(10)))
    handle.close_stdin()
    assert handle.wait().stdout.strip() == "1000000"
    assert sandbox.commands.run("cat").stdout == ""


def test_a_client_that_leaves_and_comes_back(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("echo first; read line; echo got $line; exit 4", background=True, stdin=True, timeout=60)
    assert next(iter(handle))[0] == "first\n"
    handle.disconnect()
    again = sandbox.commands.connect(handle.pid)
    sandbox.commands.send_stdin(handle.pid, "word\n")
    with pytest.raises(CommandExitException) as caught:
        again.wait()
    assert (caught.value.exit_code, caught.value.stdout) == (4, "got word\n")


def test_a_command_goes_on_without_its_client(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("for i in 1 2 3 4 5 6 7 8; do head -c 200000 /dev/zero; done; echo done >end", background=True, timeout=60)
    handle.disconnect()
    limit = time.monotonic() + 30
    while not sandbox.files.exists("end"):
        assert time.monotonic() < limit
        time.sleep(0.1)


def test_the_sandbox_ends_while_a_command_runs(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("sleep 100", background=True)
    assert sandbox.is_running() and sandbox.kill() and not sandbox.kill()
    with pytest.raises(TimeoutException, match="killed or reached its end of life"):
        handle.wait()
    assert not sandbox.is_running()
    with pytest.raises(TimeoutException):
        sandbox.commands.run("true")


def test_terminals(sandbox: Sandbox) -> None:
    terminal = sandbox.pty.create(PtySize(cols=80, rows=24), envs={"FOO": "bar"}, cwd="/")
    seen = bytearray()
    # A shell at its prompt may write back the size that it has read a moment before.
    sandbox.pty.send_stdin(terminal.pid, b"echo $FOO$FOO; stty size; pwd; read; stty size; exit 0\n")
    for _, _, shown in terminal:
        seen += shown or b""
        if b"\n/\r\n" in seen:
            break
    assert b"barbar\r\n24 80\r\n" in seen
    sandbox.pty.resize(terminal.pid, PtySize(cols=100, rows=30))
    again = sandbox.pty.connect(terminal.pid)
    sandbox.pty.send_stdin(terminal.pid, b"\n")
    shown = bytearray()
    assert again.wait(on_pty=shown.extend).exit_code == 0 and b"30 100\r\n" in shown
    other = sandbox.pty.create(PtySize(cols=80, rows=24))
    assert sandbox.pty.kill(other.pid) and not sandbox.pty.kill(999_999)


def test_files(sandbox: Sandbox) -> None:
    files = sandbox.files
    assert files.write("deep/down/a.txt", "text \u00e9").path == "/home/user/deep/down/a.txt"
    assert files.read("deep/down/a.txt") == "text \u00e9" and files.read("~/deep/down/a.txt", format="bytes") == "text \u00e9".encode()
    files.write("deep/down/a.txt", b"\0\xff")
    assert files.read("/home/user/deep/down/a.txt", format="bytes") == b"\0\xff"
    assert files.write("empty", "").name == "empty" and files.read("empty") == ""
    many = files.write_files([{"path": f"many/{name}", "data": name} for name in ("one", "two")])
    assert [info.path for info in many] == ["/home/user/many/one", "/home/user/many/two"] and files.read("many/two") == "two"
    with pytest.raises(e2b.FileNotFoundException):
        files.read("not-there")
    with pytest.raises(e2b.InvalidArgumentException):
        files.read("many")
    info = files.get_info("many/one")
    assert (info.name, info.type, info.path, info.size, info.permissions) == ("one", FileType.FILE, "/home/user/many/one", 3, "-rw-r--r--")
    assert abs(info.modified_time.timestamp() - time.time()) < 300
    assert files.rename("many/one", "other/three").path == "/home/user/other/three" and not files.exists("many/one")
    with pytest.raises(e2b.FileNotFoundException):
        files.rename("many/one", "other/four")
    assert files.make_dir("new/er") and not files.make_dir("new/er") and files.get_info("new").type == FileType.DIR
    files.remove("many")
    files.remove("many")
    assert not files.exists("many")


def test_lists_of_files(sandbox: Sandbox) -> None:
    sandbox.commands.run("mkdir -p top/a/b; touch top/file top/a/one top/a/b/two; ln -s file top/link")
    names = {depth: [entry.path.removeprefix("/home/user/top/") for entry in sandbox.files.list("top", depth=depth)] for depth in (1, 2, 3)}
    assert names[1] == ["a", "file", "link"]
    assert set(names[2]) == {*names[1], "a/b", "a/one"} and set(names[3]) == {*names[2], "a/b/two"}
    kinds = {entry.name: (entry.type, entry.symlink_target) for entry in sandbox.files.list("top")}
    assert kinds == {"a": (FileType.DIR, None), "file": (FileType.FILE, None), "link": (FileType.SYMLINK, "/home/user/top/file")}
    # Guests set any time.
    sandbox.commands.run("touch -d @99999999999999 top/file; touch -d @-99999999999 top/a/one")
    assert len(sandbox.files.list("top", depth=3)) == 6
    # A link that leads nowhere, or to itself, is there too.
    sandbox.commands.run("cd top && ln -s nowhere dangling && ln -s loop loop")
    for depth in (1, 2):
        found = {entry.name: (entry.type, entry.symlink_target) for entry in sandbox.files.list("top", depth=depth)}
        assert found["dangling"] == (FileType.SYMLINK, "/home/user/top/nowhere") and found["loop"] == (FileType.SYMLINK, "/home/user/top/loop")
    with pytest.raises(e2b.FileNotFoundException):
        sandbox.files.list("not-there")
    with pytest.raises(e2b.InvalidArgumentException):
        sandbox.files.list("top/file")
    with pytest.raises(e2b.InvalidArgumentException):
        sandbox.files.list("top", depth=0)


def test_large_files(sandbox: Sandbox) -> None:
    data = bytes(range(256)) * 20_000
    sandbox.files.write("form", data)
    sandbox.files.write("stream", io.BytesIO(data))
    sandbox.files.write("packed", data, gzip=True)
    assert sandbox.commands.run("cmp form stream && cmp form packed && stat -c %s form").stdout == f"{len(data)}\n"
    assert sandbox.files.read("form", format="bytes") == data
    assert b"".join(sandbox.files.read("stream", format="stream")) == data


def test_urls_that_are_signed(sandbox: Sandbox) -> None:
    sandbox.files.write("file", "text")
    for user, seconds in (("user", None), (None, None), ("user", 120)):
        with urllib.request.urlopen(sandbox.download_url("file", user, seconds)) as answer:
            assert answer.read() == b"text"
    refused = [sandbox.download_url("file", "user", -120), sandbox.download_url("file").replace("path=file", "path=other"),
               sandbox.upload_url("file"), sandbox.download_url("file").partition("&signature")[0]]
    assert [refusal(url) for url in refused] == [401] * 4


def changes(watch: Any, wanted: tuple[FilesystemEventType, str]) -> set[tuple[FilesystemEventType, str]]:
    """The events up to this one."""
    found: set[tuple[FilesystemEventType, str]] = set()
    limit = time.monotonic() + 20
    while wanted not in found:
        assert time.monotonic() < limit, found
        found |= {(event.type, event.name) for event in watch.get_new_events()}
    return found


def test_watches(sandbox: Sandbox) -> None:
    sandbox.files.make_dir("watched/below")
    flat, deep = sandbox.files.watch_dir("watched"), sandbox.files.watch_dir("watched", recursive=True)
    sandbox.files.write("watched/file", "1")
    assert (FilesystemEventType.CREATE, "file") in changes(flat, (FilesystemEventType.WRITE, "file"))
    sandbox.files.write("watched/below/file", "1")
    changes(deep, (FilesystemEventType.CREATE, "below/file"))
    sandbox.commands.run("chmod 600 watched/file; mv watched/file watched/renamed; rm watched/renamed")
    found = changes(flat, (FilesystemEventType.REMOVE, "renamed"))
    assert {(FilesystemEventType.CHMOD, "file"), (FilesystemEventType.RENAME, "file"), (FilesystemEventType.CREATE, "renamed")} <= found
    flat.stop()
    deep.stop()
    with pytest.raises(e2b.SandboxException):
        flat.get_new_events()
    with pytest.raises(e2b.FileNotFoundException):
        sandbox.files.watch_dir("not-there")
    with pytest.raises(e2b.InvalidArgumentException):
        sandbox.files.write("plain", "")
        sandbox.files.watch_dir("plain")


def test_lists_of_sandboxes(variables: dict[str, str]) -> None:
    made = [Sandbox.create(metadata={"test": "list", "n": str(number)}, timeout=60) for number in range(3)]
    try:
        query = SandboxQuery(metadata={"test": "list"})
        pages = Sandbox.list(query, limit=2)
        first = pages.next_items()
        assert len(first) == 2 and pages.has_next
        found = first + pages.next_items()
        assert [info.sandbox_id for info in found] == [sandbox.sandbox_id for sandbox in reversed(made)] and not pages.has_next
        info = made[0].get_info()
        assert (info.metadata, info.state, info.template_id) == ({"test": "list", "n": "0"}, SandboxState.RUNNING, "base")
        assert Sandbox.list(SandboxQuery(metadata={"test": "none"})).next_items() == []
        made[1].pause()
        paused = Sandbox.list(SandboxQuery(metadata={"test": "list"}, state=[SandboxState.PAUSED])).next_items()
        assert [info.sandbox_id for info in paused] == [made[1].sandbox_id]
        (metric,) = made[0].get_metrics()
        assert metric.mem_used > 0 and metric.cpu_used_pct >= 0
    finally:
        for sandbox in made:
            sandbox.kill()
    with pytest.raises(NotFoundException):
        made[0].get_info()


def test_the_time_of_a_sandbox(variables: dict[str, str]) -> None:
    short = Sandbox.create(timeout=1)
    limit = time.monotonic() + 20
    while short.is_running():
        assert time.monotonic() < limit
        time.sleep(0.1)
    longer = Sandbox.create(timeout=60)
    before = longer.get_info().end_at
    longer.set_timeout(1000)
    assert (longer.get_info().end_at - before).total_seconds() > 900
    # Less time than there is left changes nothing.
    longer.connect(timeout=5)
    assert (longer.get_info().end_at - before).total_seconds() > 900
    longer.kill()


def test_pause_and_resume(sandbox: Sandbox) -> None:
    handle = sandbox.commands.run("n=0; while :; do n=$((n + 1)); echo $n >count; sleep 0.05; done", background=True, timeout=0)
    while not sandbox.files.exists("count"):
        pass
    assert sandbox.pause() and not sandbox.pause() and sandbox.get_info().state == SandboxState.PAUSED
    with pytest.raises(TimeoutException):
        handle.wait()
    assert not sandbox.is_running()
    with pytest.raises(TimeoutException):
        sandbox.commands.list()
    time.sleep(0.5)
    sandbox.connect(timeout=60)
    first = int(sandbox.files.read("count"))
    while int(sandbox.files.read("count") or 0) <= first:
        pass
    assert first < 200 and [info.pid for info in sandbox.commands.list()] == [handle.pid]
    # Without its memory, a sandbox keeps its files alone.
    assert sandbox.pause(mode="filesystem") and sandbox.connect(timeout=60).commands.list() == []
    assert int(sandbox.files.read("count")) > first


def test_a_sandbox_that_pauses_when_its_time_is_over(variables: dict[str, str]) -> None:
    sandbox = Sandbox.create(timeout=1, lifecycle={"on_timeout": "pause", "auto_resume": True})
    sandbox.files.write("file", "kept")
    limit = time.monotonic() + 20
    while sandbox.get_info().state != SandboxState.PAUSED:
        assert time.monotonic() < limit
        time.sleep(0.1)
    assert sandbox.files.read("file") == "kept"
    sandbox.kill()


def test_the_network(variables: dict[str, str]) -> None:
    with Sandbox.create(timeout=120) as sandbox:
        assert not denied(sandbox)
        sandbox.update_network({"allow_internet_access": False})
        assert denied(sandbox)
        sandbox.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["192.0.2.7"]})
        assert not denied(sandbox)
        sandbox.update_network({"deny_out": ["192.0.2.7"]})
        assert denied(sandbox)
        sandbox.update_network({})
        assert not denied(sandbox)
        with pytest.raises(e2b.SandboxException, match="403.*--allow example.org"):
            sandbox.update_network({"deny_out": ["0.0.0.0/0"], "allow_out": ["example.org"]})
    with Sandbox.create(timeout=60, allow_internet_access=False) as closed:
        assert denied(closed)


def test_requests_that_are_refused(variables: dict[str, str]) -> None:
    for wrong in ({"template": "no-such"}, {"network": {"deny_out": ["0.0.0.0/0"], "allow_out": ["8.8.8.8"]}}):
        with pytest.raises(e2b.SandboxException, match="404: .*the server has base|403: .*--allow 8.8.8.8"):
            Sandbox.create(**wrong)
    with pytest.raises(e2b.AuthenticationException):
        Sandbox.create(api_key="e2b_0000000000000000000000000000000000000000")
    with Sandbox.create(timeout=60) as sandbox:
        url = variables["E2B_SANDBOX_URL"]
        for headers, status in (({}, 401), ({"X-Access-Token": "0" * 40}, 401), ({"X-API-KEY": variables["E2B_API_KEY"]}, 401)):
            request = urllib.request.Request(f"{url}/process.Process/List", b"{}", {"E2b-Sandbox-Id": sandbox.sandbox_id, "Content-Type": "application/json", **headers})
            assert refusal(request) == status


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"a":' * 200_000, b'{"a":' + b"[" * 200_000, b'{"a":' + b"[" * 900 + b"]" * 900 + b"}", b"{", b"\xff", b"", b'{"process": {"tag": "\\ud800"}}'], ids=range(8))
def test_messages_that_are_not(sandbox: Sandbox, variables: dict[str, str], body: bytes) -> None:
    """They are refused, and the server goes on."""
    headers = {"E2b-Sandbox-Id": sandbox.sandbox_id, "X-Access-Token": sandbox._envd_access_token or ""}
    for method, kind, sent in (("SendSignal", "application/json", body), ("SendSignal", "application/proto", b"\x7b" * len(body)),
                               ("Start", "application/connect+json", b"\0" + len(body).to_bytes(4, "big") + body)):
        request = urllib.request.Request(f"{variables['E2B_SANDBOX_URL']}/process.Process/{method}", sent, {"Content-Type": kind, **headers})
        if method == "Start":
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert b"invalid_argument" in answer.read()
        else:
            # A message without a process is refused as well.
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request, timeout=60)
            assert caught.value.code in (400, 404)
            caught.value.close()
    assert sandbox.commands.run("echo alive").stdout == "alive\n"


def test_no_more_sandboxes_than_the_server_was_given(variables: dict[str, str]) -> None:
    made: list[Sandbox] = []
    try:
        with pytest.raises(e2b.RateLimitException, match="20 sandboxes"):
            while len(made) < 30:
                made.append(Sandbox.create(timeout=60, retries=0))
        assert len(made) == 20
    finally:
        for sandbox in made:
            sandbox.kill()


def test_the_client_for_asyncio(variables: dict[str, str]) -> None:
    async def work() -> None:
        async with await AsyncSandbox.create(timeout=120) as sandbox:
            results = await asyncio.gather(*(sandbox.commands.run(f"echo {number}; exit 0") for number in range(30)))
            assert [result.stdout for result in results] == [f"{number}\n" for number in range(30)]
            await sandbox.files.write("file", "text")
            assert await sandbox.files.read("file") == "text"
            events: list[Any] = []
            watch = await sandbox.files.watch_dir("/home/user", on_event=events.append)
            await sandbox.files.write("file", "more")
            while not any(event.type == FilesystemEventType.WRITE for event in events):
                await asyncio.sleep(0.01)
            await watch.stop()

    asyncio.run(work())


def test_a_token_is_made_once(tmp_path: Path) -> None:
    with server(tmp_path) as (_, first), server(tmp_path) as (_, second):
        assert first["E2B_API_KEY"] == second["E2B_API_KEY"] != ""
