"""The services of `lind sandboxd` for commands and watches, its tokens, and its many sandboxes. README.md says which tests of agent-sandbox these restate."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

grpc = pytest.importorskip("grpc")

from protobuf import Oneof
from protobuf.wkt import Empty

from lind.servers.core import Refusal
from lind.servers.sandboxd import process_v1_pb as pb
from lind.servers.sandboxd.main import main
from lind.servers.sandboxd.names import Tokens
from lind.servers.sandboxd.processes import Kept
from lind.servers.sandboxd.watcher_v1_pb import FileEventType as Kind

from .loads import until
from .sandboxd_server import SERVICE, Client, first, rest, server

Code = grpc.StatusCode
OUTSIDE = ("../outside", "a/../../etc")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with server(tmp_path_factory.mktemp("sandboxd"), "--max-output=100000", "--sandboxes=6", "--processes=500") as (_, found):
        yield found


def refused(code: Any, work: Callable[..., object], *words: Any, **more: Any) -> str:
    """The message of a call that fails so."""
    with pytest.raises(grpc.RpcError) as caught:
        work(*words, **more)
    assert caught.value.code() is code, caught.value
    return str(caught.value.details())


def test_execute(client: Client) -> None:
    assert client.execute("echo", "hello world", "$HOME") == (0, b"hello world $HOME\n", b"")
    assert client.execute("sh", "-c", "echo out; echo err >&2; exit 42") == (42, b"out\n", b"err\n")
    assert client.execute("sh", "-c", "kill -9 $$") == (137, b"", b"")
    assert client.execute("cat") == (0, b"", b"")
    assert client.execute("sh", "-c", r"printf '\xff\0\xfe'") == (0, b"\xff\0\xfe", b"")


def test_variables_and_directories(client: Client) -> None:
    assert client.ask("PUT", "/v1/files/sub/file", b"x").status == 204
    assert client.execute("sh", "-c", 'echo "$FOO"; pwd', FOO="b=r\nz")[1] == b"b=r\nz\n/workspace\n"
    for path in ("sub", "/sub", "/workspace/sub", "sub/../sub/"):
        assert client.execute("pwd", cwd=path)[1] == b"/workspace/sub\n"
    for path in OUTSIDE:
        refused(Code.PERMISSION_DENIED, client.execute, "pwd", cwd=path)
    client.execute("ln", "-s", "/etc", "leads-out")
    refused(Code.PERMISSION_DENIED, lambda: client.execute("pwd", cwd="leads-out"))
    refused(Code.NOT_FOUND, lambda: client.execute("pwd", cwd="missing"))


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (None, Code.INVALID_ARGUMENT),
        (pb.ProcessConfig(), Code.INVALID_ARGUMENT),
        (pb.ProcessConfig(command=["echo", "a\0b"]), Code.INVALID_ARGUMENT),
        (pb.ProcessConfig(command=["no-such-program"]), Code.NOT_FOUND),
        (pb.ProcessConfig(command=["/etc"]), Code.PERMISSION_DENIED),
        (pb.ProcessConfig(command=["true"], env_vars={"": "a"}), Code.INVALID_ARGUMENT),
        (pb.ProcessConfig(command=["true"], env_vars={"a=b": "a"}), Code.INVALID_ARGUMENT),
        (pb.ProcessConfig(command=["true"], env_vars={"a": "a\0"}), Code.INVALID_ARGUMENT),
        (pb.ProcessConfig(command=["true"], cwd="a\0"), Code.INVALID_ARGUMENT),
        (pb.ProcessConfig(command=["true"], cwd="a" * 5000), Code.INVALID_ARGUMENT),
    ],
)
def test_commands_that_cannot_be_started(client: Client, config: pb.ProcessConfig | None, code: Any) -> None:
    refused(code, lambda: client.call("Execute", pb.ExecuteRequest(config=config)))
    stream = client.channel.unary_stream(SERVICE + "Start")
    refused(code, lambda: list(stream(pb.StartRequest(config=config).to_binary(), metadata=list(client.headers.items()), timeout=60)))


def test_limits_of_commands(client: Client) -> None:
    assert len(client.execute("head", "-c", "100000", "/dev/zero")[1]) == 100_000
    assert "100000 bytes" in refused(Code.RESOURCE_EXHAUSTED, lambda: client.execute("sh", "-c", "yes; echo never >after"))
    refused(Code.DEADLINE_EXCEEDED, lambda: client.execute("sh", "-c", "sleep 20; echo never >after", timeout=1))
    until("both are killed", lambda: not running(client))
    assert client.ask("GET", "/v1/files/after").status == 404


def test_output_that_the_server_keeps() -> None:
    kept = Kept(100)
    with kept.count() as add:
        add(60)
        with pytest.raises(Refusal), kept.count() as other:
            other(30)
            other(30)
        assert kept.now == 60
    assert kept.now == 0


def running(client: Client) -> int:
    """How many commands run in the sandbox."""
    answer = client.of(None).ask("GET", "/v1/sandboxes")
    return int(next(one["commands"] for one in answer.json["sandboxes"] if one["id"] == (client.id or "default")))


def test_start(client: Client) -> None:
    events = client.start("sh", "-c", "echo out; echo err >&2; exit 7")
    assert first(events) > 0 and rest(events) == (b"out\n", b"err\n", 7)
    events = client.start("head", "-c", "3000000", "/dev/zero")
    first(events)
    assert len(rest(events)[0]) == 3_000_000


def test_input(client: Client) -> None:
    events = client.start("sh", "-c", "read line; echo got $line; cat")
    number = first(events)
    client.call("WriteStdin", stdin(number, b"one\n"))
    assert next(events).value == b"got one\n"
    client.call("WriteStdin", stdin(number, b"two"))
    client.call("WriteStdin", stdin(number, None))
    assert rest(events) == (b"two", b"", 0)
    refused(Code.NOT_FOUND, lambda: client.call("WriteStdin", stdin(number, b"x")))
    events = client.start("sleep", "100")
    refused(Code.INVALID_ARGUMENT, lambda: client.call("WriteStdin", pb.WriteStdinRequest(process_id=first(events))))
    events.cancel()


def stdin(number: int, data: bytes | None) -> pb.WriteStdinRequest:
    """Input, or its end."""
    payload: Any = Oneof("eof", Empty()) if data is None else Oneof("input", data)
    return pb.WriteStdinRequest(process_id=number, payload=payload)


def test_signals(client: Client) -> None:
    for name, status in (("SIGTERM", 143), ("SIGINT", 130), ("SIGKILL", 137)):
        # A shell has what it starts behind it ignore SIGINT.
        events = client.start("sh", "-c", "echo ready; sh -c 'sleep 100; true'; true")
        number = first(events)
        assert next(events).value == b"ready\n"
        client.call("SendSignal", pb.SendSignalRequest(process_id=number, signal=pb.Signal[name]))
        assert rest(events)[2] == status
        refused(Code.NOT_FOUND, client.call, "SendSignal", pb.SendSignalRequest(process_id=number, signal=pb.Signal.SIGTERM))
    # The shells' children were in their groups.
    until("the whole group ends", lambda: b"sleep" not in client.execute("ps")[1])
    events = client.start("sleep", "100")
    refused(Code.INVALID_ARGUMENT, lambda: client.call("SendSignal", pb.SendSignalRequest(process_id=first(events))))
    events.cancel()


def test_terminals(client: Client) -> None:
    events = client.start("sh", "-c", "stty size; read line; stty size; test -t 0 && test -t 1 && echo terminal", pty=pb.PTY(cols=120, rows=50))
    number = first(events)
    assert b"50 120" in next(events).value
    client.call("ResizeTTY", pb.ResizeTTYRequest(process_id=number, cols=70, rows=20))
    refused(Code.INVALID_ARGUMENT, lambda: client.call("ResizeTTY", pb.ResizeTTYRequest(process_id=number, cols=0, rows=20)))
    refused(Code.INVALID_ARGUMENT, lambda: client.call("ResizeTTY", pb.ResizeTTYRequest(process_id=number, cols=1 << 31, rows=20)))
    client.call("WriteStdin", stdin(number, b"x\n"))
    output, errors, status = rest(events)
    assert b"20 70" in output and b"terminal" in output and (errors, status) == (b"", 0)
    events = client.start("sleep", "100")
    refused(Code.FAILED_PRECONDITION, lambda: client.call("ResizeTTY", pb.ResizeTTYRequest(process_id=first(events), cols=1, rows=1)))
    events.cancel()
    refused(Code.NOT_FOUND, lambda: client.call("ResizeTTY", pb.ResizeTTYRequest(process_id=number, cols=70, rows=20)))


def test_a_client_that_goes_away_ends_its_command(client: Client) -> None:
    events = client.start("sh", "-c", "while :; do echo x; sleep 0.05; done")
    first(events)
    assert next(events).value == b"x\n" and running(client) >= 1
    events.cancel()
    until("the command ends", lambda: not running(client))


def test_messages_that_are_not(client: Client) -> None:
    method = client.channel.unary_unary(SERVICE + "Execute")
    for raw in (b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x0f"):
        refused(Code.INVALID_ARGUMENT, method, raw, metadata=list(client.headers.items()), timeout=30)
    refused(Code.RESOURCE_EXHAUSTED, lambda: method(b"\x0a" * (5 << 20), metadata=list(client.headers.items()), timeout=30))
    refused(Code.UNIMPLEMENTED, lambda: client.channel.unary_unary(SERVICE + "Other")(b"", metadata=list(client.headers.items()), timeout=30))


def test_watches(client: Client) -> None:
    client.ask("POST", "/v1/files/watched/below", {"do": "mkdir"})
    events = client.watch("watched", recursive=True)
    found: list[tuple[Any, str]] = []
    reader = threading.Thread(target=lambda: found.extend((event.type, event.path) for event in events), daemon=True)
    reader.start()

    def sees(*wanted: tuple[Any, str]) -> None:
        until(f"a watch tells {wanted}", lambda: set(wanted) <= set(found))

    # A file that is written in pieces appears at once.
    client.ask("PUT", "/v1/files/watched/new", b"x" * (3 << 20))
    sees((Kind.CREATE, "watched/new"))
    client.execute("sh", "-c", "echo >>watched/below/deep; chmod 600 watched/new; mv watched/new watched/other; rm watched/other")
    sees((Kind.CREATE, "watched/below/deep"), (Kind.WRITE, "watched/below/deep"), (Kind.CHMOD, "watched/new"), (Kind.RENAME, "watched/new"),
         (Kind.CREATE, "watched/other"), (Kind.REMOVE, "watched/other"))
    assert all(path.startswith("watched/") and "lind" not in path for _, path in found), found
    assert client.ask("DELETE", "/v1/files/watched?recursive=true").status == 204
    reader.join(30)
    assert not reader.is_alive() and found[-1] == (Kind.ERROR, "watched")


def test_watches_that_cannot_begin(client: Client) -> None:
    client.ask("PUT", "/v1/files/file", b"")
    for path, code in (("missing", Code.NOT_FOUND), ("file", Code.INVALID_ARGUMENT), ("../etc", Code.PERMISSION_DENIED)):
        refused(code, list, client.watch(path))
    begun = [client.watch("") for _ in range(8)]
    refused(Code.RESOURCE_EXHAUSTED, lambda: list(client.watch("")))
    # Files are still read and written.
    assert client.ask("GET", "/v1/files/file").status == 200
    for events in begun:
        events.cancel()


def test_tokens(client: Client) -> None:
    scoped = Tokens(client.token).of("one")
    for id, token, good in (("one", scoped, True), ("two", scoped, False), (None, scoped, False), ("one", client.token, True), ("one", scoped[:-1] + "x", False),
                            ("one", "x" * 10, False), (None, "", False)):
        asked = Client(client.url, client.target, token, id)
        assert asked.ask("GET", "/v1/files").status == (200 if good else 401)
        if good:
            assert asked.execute("true")[0] == 0
        else:
            assert asked.ask("GET", "/v1/files").code == "UNAUTHENTICATED"
            refused(Code.UNAUTHENTICATED, asked.execute, "true")
            refused(Code.UNAUTHENTICATED, list, asked.start("true"))
            refused(Code.UNAUTHENTICATED, list, asked.watch(""))
    one = client.of("one", scoped)
    # The path names a sandbox too, and the token has to be for that one.
    assert client.of(None, scoped).ask("GET", "/sandboxes/one/v1/files").status == 200
    assert client.of(None, scoped).ask("GET", "/sandboxes/two/v1/files").status == 401
    assert one.ask("GET", "/sandboxes/two/v1/files").status == 400
    assert one.ask("GET", "/v1/sandboxes").status == one.ask("DELETE", "/v1/sandboxes/default").status == one.ask("GET", "/v1/metadata").status - 200 + 401 == 401
    assert client.ask("GET", "/v1/health", authorization="").status == 200
    assert one.ask("DELETE", "/v1/sandboxes/one").status == 204 and client.ask("DELETE", "/v1/sandboxes/one").status == 404


def test_many_sandboxes(client: Client) -> None:
    assert client.execute("true")[0] == 0
    ids = ["first", "second", "third"]
    boxes = [client.of(id) for id in ids]
    for box in boxes:
        assert box.ask("PUT", "/v1/files/mine", (box.id or "").encode()).status == 204
    assert [box.execute("cat", "mine")[1].decode() for box in boxes] == ids
    # The others do not see it.
    boxes[0].execute("sh", "-c", "echo >/tmp/trace; sleep 100 &")
    assert boxes[1].ask("GET", "/v1/files/trace").status == 404 and b"sleep" not in boxes[1].execute("ps")[1]
    events = boxes[0].start("sleep", "100")
    number = first(events)
    for box in boxes[1:]:
        refused(Code.NOT_FOUND, box.call, "SendSignal", pb.SendSignalRequest(process_id=number, signal=pb.Signal.SIGKILL))
    assert {"default", *ids} <= {one["id"] for one in client.ask("GET", "/v1/sandboxes").json["sandboxes"]}
    for id in ids:
        assert client.ask("DELETE", f"/v1/sandboxes/{id}").status == 204
    assert rest(events) == (b"", b"", 137)
    # The name begins another.
    assert boxes[0].ask("GET", "/v1/files/mine").status == 404
    assert client.ask("DELETE", "/v1/sandboxes/first").status == 204


def test_what_belongs_to_another(tmp_path: Path) -> None:
    """A client of one sandbox, with the token for it, names commands and files of another in each way that there is."""
    kept = tmp_path / "kept"
    kept.mkdir()
    with server(tmp_path, f"--keep={kept}") as (_, root):
        one, two = (root.of(id, Tokens(root.token or "").of(id)) for id in ("one", "two"))
        assert two.ask("PUT", "/v1/files/secret", b"of two").status == 204
        events = two.start("sh", "-c", "echo $$; read -r line; echo got $line", pty=pb.PTY(cols=80, rows=24))
        number = first(events)
        pid = int(next(events).value)
        assert one.execute("true")[0] == 0
        for id in (number, pid, 0, -1, number + 1, 2**31 - 1):
            for message in (stdin(id, b"x\n"), pb.SendSignalRequest(process_id=id, signal=pb.Signal.SIGKILL),
                            pb.ResizeTTYRequest(process_id=id, cols=20, rows=20)):
                refused(Code.NOT_FOUND, one.call, type(message).__name__.removesuffix("Request"), message)
        for path in ("../two/secret", "%2e%2e/two/secret", f"..{kept}/two/secret"):
            assert one.ask("GET", f"/v1/files/{path}").status in (400, 403, 404)
            assert one.ask("PUT", f"/v1/files/{path}", b"x").status in (400, 403, 404)
        look = f"cat /proc/[0-9]*/cmdline /proc/[0-9]*/root/workspace/s* {kept}/two/s*; ls -R / /proc/[0-9]*/root/workspace {kept} 2>&1 | grep -v ' '; ps"
        said = one.execute("sh", "-c", look)[1]
        assert b"of two" not in said and b"secret" not in said and b"read -r line" not in said
        assert one.ask("PUT", "/v1/files/way", b"").status == 204
        assert one.execute("ln", "-s", f"{kept}/two", "link")[0] == 0
        assert one.ask("GET", "/v1/files/link/secret").status in (400, 403, 404)
        # The other goes on as if nothing had been tried.
        two.call("WriteStdin", stdin(number, b"mine\n"))
        assert b"got mine" in rest(events)[0] and (kept / "two" / "secret").read_bytes() == b"of two"


@pytest.mark.parametrize("id", ["UPPER", "a.b", "..", "a/b", "-a", "a" * 64, "a b", "\xe4"])
def test_ids_that_are_not(client: Client, id: str) -> None:
    asked = client.of(id)
    assert asked.ask("GET", "/v1/files").status == 400
    if id.isascii():
        refused(Code.INVALID_ARGUMENT, lambda: asked.execute("true"))


def test_no_more_sandboxes_than_there_may_be(client: Client) -> None:
    made = [client.of(f"n{number}").ask("GET", "/v1/files").status for number in range(6)]
    assert made == [200] * 5 + [429]
    refused(Code.RESOURCE_EXHAUSTED, lambda: client.of("n9").execute("true"))
    for number in range(5):
        assert client.ask("DELETE", f"/v1/sandboxes/n{number}").status == 204


def test_one_start_for_requests_at_once(client: Client) -> None:
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(client.of("once").execute("sh", "-c", "echo x >>/workspace/times")[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [0] * 8 and client.of("once").ask("GET", "/v1/files/times").body == b"x\n" * 8
    assert client.ask("DELETE", "/v1/sandboxes/once").status == 204


def test_files_that_are_kept(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for _ in range(2):
        with server(tmp_path, f"--keep={kept}") as (_, client):
            box = client.of("a")
            assert box.execute("sh", "-c", "echo x >>lines; cat ../../../../kept/* 2>/dev/null; ls /") [0] == 0
            text = box.ask("GET", "/v1/files/lines").body
    assert text == b"x\nx\n" == (kept / "a" / "lines").read_bytes() and os.listdir(kept) == ["a"]
    # Nobody leads a sandbox elsewhere by a link in its place.
    (tmp_path / "elsewhere").mkdir()
    (kept / "b").symlink_to(tmp_path / "elsewhere")
    with server(tmp_path, f"--keep={kept}") as (_, client):
        assert client.of("b").ask("PUT", "/v1/files/x", b"").status == 500
    assert not os.listdir(tmp_path / "elsewhere")


def test_sandboxes_that_nobody_uses(tmp_path: Path) -> None:
    with server(tmp_path, "--idle=1") as (_, client):
        assert client.execute("true")[0] == client.of("a").execute("true")[0] == client.of("b").execute("true")[0] == 0
        events = client.of("b").start("sleep", "100")
        first(events)
        until("the one without a command ends", lambda: {one["id"] for one in client.ask("GET", "/v1/sandboxes").json["sandboxes"]} == {"default", "b"})
        time.sleep(1.5)
        assert running(client.of("b")) == 1
        events.cancel()
        until("the other ends too", lambda: {one["id"] for one in client.ask("GET", "/v1/sandboxes").json["sandboxes"]} == {"default"})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--listen=0.0.0.0:0", "--open"], "beyond the loopback a token is asked for"),
        (["--grpc=0.0.0.0:0", "--open"], "beyond the loopback a token is asked for"),
        (["--listen=nowhere"], "expected ADDRESS:PORT"),
        (["--grpc=127.0.0.1"], "expected ADDRESS:PORT"),
        (["--keep=/no/such/directory"], "is not a directory"),
        (["--token-for=A"], "the id of a sandbox"),
        (["-v", "x"], "expected DIR[:PATH]:HOW"),
    ],
)
def test_servers_that_do_not_start(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str) -> None:
    assert main([f"--token-file={tmp_path}/token", "--listen=127.0.0.1:0", "--grpc=127.0.0.1:0", *words]) == 2
    said = capsys.readouterr()
    assert why in said.err and not said.out


def test_the_token_of_a_variable(tmp_path: Path) -> None:
    os.environ["LIND_SANDBOXD_TOKEN"] = token = "a token of this test, by a variable"
    try:
        with server(tmp_path) as (_, client):
            assert client.ask("GET", "/v1/files").status == 401 and not (tmp_path / "token").exists()
            told = Client(client.url, client.target, token)
            assert told.ask("GET", "/v1/files").status == 200
            assert token.encode() not in told.execute("env")[1] + told.ask("GET", "/v1/metadata").body
    finally:
        del os.environ["LIND_SANDBOXD_TOKEN"]


def test_metadata(tmp_path: Path) -> None:
    os.environ |= {"SANDBOX_NAME": "a name", "SANDBOX_API_KEY": "a key", "OTHER": "another"}
    try:
        with server(tmp_path, "--open") as (_, client):
            assert client.token is None and client.ask("GET", "/v1/metadata").json == {"env": {"SANDBOX_NAME": "a name"}}
    finally:
        for name in ("SANDBOX_NAME", "SANDBOX_API_KEY", "OTHER"):
            del os.environ[name]
