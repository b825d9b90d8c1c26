"""The requests of `lind sandboxd` for files, and those of the older runtime."""

from __future__ import annotations

import http.client
import io
import json
import socket
import tarfile
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

pytest.importorskip("grpc")

from .loads import until
from .sandboxd_server import Client, server

ROOT = "/v1/files/"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with server(tmp_path_factory.mktemp("sandboxd")) as (_, found):
        yield found


@pytest.fixture(autouse=True)
def _empty(client: Client) -> None:
    assert client.ask("DELETE", ROOT + "?recursive=true").status == 204


def names(client: Client, path: str = "") -> list[str]:
    """The names in a directory."""
    return [one["name"] for one in client.ask("GET", ROOT + path).json["entries"]]


def form(name: str, data: bytes, filename: str | None = "x") -> tuple[bytes, str]:
    """A form with one file, and its type."""
    about = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename is not None else "")
    return b"--edge\r\nContent-Disposition: " + about.encode() + b"\r\nContent-Type: text/plain\r\n\r\n" + data + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"


def test_write_and_read(client: Client) -> None:
    for data in (b"", b"text", bytes(range(256)), b"x" * (3 << 20) + b"end"):
        assert client.ask("PUT", ROOT + "deep/er/file", data).status == 204
        answer = client.ask("GET", ROOT + "deep/er/file")
        assert answer.body == data and answer.headers["content-type"] == "application/octet-stream" and answer.headers["content-length"] == str(len(data))
    assert names(client, "deep/er") == ["file"]
    assert client.ask("PUT", ROOT + quote("a ä/ü%2e?#&", safe=""), b"name").status == 204
    assert client.execute("cat", "a ä/ü%2e?#&")[1] == b"name"
    answer = client.ask("HEAD", ROOT + "deep/er/file")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", str((3 << 20) + 3))
    assert client.ask("HEAD", ROOT + "deep/missing").status == 404


def test_modes(client: Client) -> None:
    for mode in ("0755", "0600", "0444"):
        for data in (b"small", b"x" * (3 << 20)):
            assert client.ask("PUT", f"{ROOT}m{mode}{len(data)}?mode={mode}", data).status == 204
            assert client.execute("stat", "-c", "%a", f"m{mode}{len(data)}")[1].decode().strip() == mode[1:]
    client.ask("PUT", ROOT + "plain", b"")
    assert next(one["mode"] for one in client.ask("GET", ROOT).json["entries"] if one["name"] == "plain") == "0644"
    for mode in ("644", "0888", "07777", "rwx", "0x1f", "0644 "):
        assert client.ask("PUT", f"{ROOT}never?mode={quote(mode)}", b"").code == "INVALID_ARGUMENT"
    assert "never" not in names(client)


def test_forms(client: Client) -> None:
    for data in (b"text", b"x" * (3 << 20), b"\r\n--edg", b""):
        body, kind = form("file", data)
        assert client.ask("PUT", ROOT + "form", body, content_type=kind).status == 204
        assert client.ask("GET", ROOT + "form").body == data
    body, kind = form("other", b"text")
    for broken in (body, b"", b"--edge", b"nothing", form("file", b"text")[0][:-12], b"--edge\r\n" + b"a: b\r\n" * 20_000):
        assert client.ask("PUT", ROOT + "never", broken, content_type=kind).status == 400, broken[:100]
    for boundary in ("", "; boundary=", "; boundary=" + "b" * 1000):
        assert client.ask("PUT", ROOT + "never", body, content_type="multipart/form-data" + boundary).status == 400
    assert names(client) == ["form"]


def test_what_is_not_written(client: Client) -> None:
    client.ask("PUT", ROOT + "folder/file", b"x")
    assert client.ask("PUT", ROOT + "folder", b"x").code == "INVALID_ARGUMENT"
    assert client.ask("PUT", ROOT, b"x").code == "INVALID_ARGUMENT"
    assert client.ask("PUT", ROOT + "folder/file/below", b"x").status in (400, 404)
    assert client.ask("PUT", ROOT + "gz", b"x", content_encoding="gzip").status == 415
    for data in (b"x", b"x" * (2 << 20)):
        assert client.ask("PUT", ROOT + "folder/file", data, if_none_match="*").status == 412
        assert client.ask("PUT", f"{ROOT}new{len(data)}", data, if_none_match="*").status == 204
    assert client.ask("GET", ROOT + "folder/file").body == b"x"
    assert names(client) == ["folder", "new1", "new2097152"]


@pytest.mark.parametrize("path", ["../x", "..%2fx", "%2e%2e/x", "a/../../x", "folder%2f..%2f..%2fetc%2fpasswd", "..", "workspace/../../etc"])
def test_paths_that_lead_out(client: Client, path: str) -> None:
    where = urlsplit(client.url)
    for method in ("GET", "HEAD", "PUT", "DELETE", "POST"):
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
        # The client sends it as it is.
        connection.request(method, ROOT + path, b'{"do": "mkdir"}', client.headers)
        answer = connection.getresponse()
        assert answer.status == 403, (method, path)
        assert method == "HEAD" or json.loads(answer.read())["code"] == "PERMISSION_DENIED"
        connection.close()
    for do in ("move", "copy"):
        client.ask("PUT", ROOT + "file", b"x")
        assert client.ask("POST", ROOT + "file", {"do": do, "to": "../file"}).status == 403


def test_links_of_guests(client: Client) -> None:
    line = ("mkdir -p real && echo in >real/file && ln -s real inner && ln -s real/file good && ln -s /workspace/real absolute && ln -s /etc etc && ln -s .. up"
            " && ln -s ../etc/passwd passwd && ln -s nowhere dangling && ln -s loop loop && ln -s inner/../../etc back && ln -s /workspace/../etc sly && ln -s / root")
    assert client.execute("sh", "-c", line)[0] == 0
    for path in ("inner/file", "good", "absolute/file", "real/../inner/file"):
        assert client.ask("GET", ROOT + path).body == b"in\n", path
    for path in ("etc/passwd", "up", "up/etc/passwd", "passwd", "back/passwd", "sly/passwd", "root/etc/passwd", "root/workspace/real/file"):
        for method in ("GET", "PUT", "HEAD"):
            assert client.ask(method, ROOT + path, b"" if method == "PUT" else None).status == 403, (method, path)
    for path in ("etc/new", "root/new", "up/new"):
        assert client.ask("DELETE", ROOT + path).status == 403
        assert client.ask("POST", ROOT + path, {"do": "mkdir"}).status == 403
        assert client.ask("POST", ROOT + "real/file", {"do": "copy", "to": path}).status == 403
    assert client.ask("GET", ROOT + "loop").status == 400
    listed = {one["name"]: one["type"] for one in client.ask("GET", ROOT).json["entries"]}
    assert listed == {"absolute": "directory", "good": "file", "inner": "directory", "real": "directory"}
    # A link is removed itself, and what it leads to stays.
    for path in ("inner", "etc", "dangling", "root"):
        assert client.ask("DELETE", f"{ROOT}{path}?recursive=true").status == 204
    assert client.ask("GET", ROOT + "real/file").body == b"in\n" and client.execute("cat", "/etc/passwd")[0] == 0
    client.ask("PUT", ROOT + "dangling", b"by the link") if client.execute("ln", "-s", "target", "dangling")[0] == 0 else None
    assert client.ask("GET", ROOT + "target").body == b"by the link"


def test_lists(client: Client) -> None:
    assert client.ask("GET", ROOT).json == {"path": "/", "entries": []}
    line = r"""mkdir -p a/b && echo text >a/file && chmod 640 a/file && touch -d @86400 a/file && mkfifo a/fifo && touch "$(printf 'a/\377')" """
    assert client.execute("sh", "-c", line)[0] == 0
    listed = client.ask("GET", ROOT + "a").json
    assert listed["path"] == "/a" and [one["name"] for one in listed["entries"]] == ["b", "fifo", "file", "\ufffd"]
    assert listed["entries"][2] == {"name": "file", "size": 5, "type": "file", "modified_at": "1970-01-02T00:00:00Z", "mode": "0640"}
    assert [one["name"] for one in client.ask("GET", ROOT + "?recursive=true").json["entries"]] == ["a", "a/b", "a/fifo", "a/file", "a/\ufffd"]
    assert client.ask("GET", ROOT + "missing").code == "NOT_FOUND" and client.ask("GET", ROOT + "a/file/below").code == "NOT_FOUND"
    # A FIFO is not opened: nobody would ever write.
    assert client.ask("GET", ROOT + "a/fifo").code == "INVALID_ARGUMENT"


def test_times_that_guests_set(client: Client) -> None:
    """No time of a file keeps clients from its directory."""
    for number, time in enumerate(("99999999999999", "253402300800", "-99999999999", "-1", "0")):
        client.execute("sh", "-c", f"touch t{number}; touch -d @{time} t{number}")
    client.execute("sh", "-c", "echo text >t9")
    entries = client.ask("GET", ROOT).json["entries"]
    assert entries[-1]["name"] == "t9" and all(len(one["modified_at"]) == 20 for one in entries)
    for one in entries:
        assert client.ask("GET", ROOT + one["name"]).status == client.ask("HEAD", ROOT + one["name"]).status == 200
    assert len(client.ask("GET", "/list/%2E").json) == len(entries)


def test_archives_at_once(client: Client) -> None:
    where = urlsplit(client.url)
    with socket.create_connection((where.hostname or "", where.port or 0)) as slow:
        head = f"POST {ROOT}slow HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/x-tar\r\nContent-Length: 10000\r\n"
        slow.sendall((head + "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())).encode() + b"\r\nx")
        until("one is taken at a time", lambda: client.ask("POST", ROOT + "b", archive(("a", b"")), content_type="application/x-tar").status == 429)
    until("the next is taken", lambda: client.ask("POST", ROOT + "b", archive(("a", b"")), content_type="application/x-tar").status == 200)


def test_names_of_guests(client: Client) -> None:
    for name in ("two\nlines", "\n", "end\n", "\x1b[2J", "a\rb", "q'\"\\", "\u2028"):
        path = quote(name, safe="")
        client.execute("sh", "-c", 'printf x >"$0"', name)
        assert names(client) == [name]
        assert client.ask("GET", ROOT + path).body == client.ask("GET", "/download/" + path).body == b"x"
        assert client.ask("GET", "/exists/" + path).json["exists"] is True
        assert client.ask("PUT", ROOT + path, b"new").status == 204 and client.execute("cat", name)[1] == b"new"
        assert client.ask("DELETE", ROOT + path).status == 204 and names(client) == []


def test_delete(client: Client) -> None:
    client.ask("PUT", ROOT + "a/b/file", b"x")
    assert client.ask("DELETE", ROOT + "a").code == "CONFLICT" and client.ask("DELETE", ROOT).code == "CONFLICT"
    assert client.ask("DELETE", ROOT + "a?recursive=perhaps").code == "INVALID_ARGUMENT"
    assert client.ask("DELETE", ROOT + "a/b/file").status == 204 and client.ask("DELETE", ROOT + "a/b").status == 204
    assert client.ask("DELETE", ROOT + "a/b").code == "NOT_FOUND"
    assert client.ask("DELETE", ROOT + "a?recursive=true").status == 204 and names(client) == []


@pytest.mark.parametrize(
    ("asked", "status", "found"),
    [("bytes=1-3", 206, b"123"), ("bytes=8-", 206, b"89"), ("bytes=-3", 206, b"789"), ("bytes=0-99", 206, b"0123456789"), ("bytes=10-", 416, b""), ("bytes=-0", 416, b""),
     ("bytes=3-1", 200, b"0123456789"), ("bytes=1-2,4-5", 200, b"0123456789"), ("bytes=-", 200, b"0123456789"), ("bytes=" + "9" * 30 + "-", 200, b"0123456789")],
)
def test_ranges(client: Client, asked: str, status: int, found: bytes) -> None:
    client.ask("PUT", ROOT + "digits", b"0123456789")
    answer = client.ask("GET", ROOT + "digits", range=asked)
    assert (answer.status, answer.body) == (status, found)


def test_move_and_copy(client: Client) -> None:
    client.ask("PUT", ROOT + "a/file", b"x")
    assert client.ask("POST", ROOT + "a", {"do": "copy", "to": "new/b"}).status == 204
    assert client.ask("POST", ROOT + "a", {"do": "move", "to": "/workspace/c"}).status == 204
    assert client.ask("GET", ROOT + "new/b/file").body == client.ask("GET", ROOT + "c/file").body == b"x" and names(client) == ["c", "new"]
    client.ask("PUT", ROOT + "other", b"y")
    assert client.ask("POST", ROOT + "other", {"do": "move", "to": "c/file", "create": True}).code == "CONFLICT"
    assert client.ask("POST", ROOT + "other", {"do": "copy", "to": "c/file", "create": True}).code == "CONFLICT"
    assert client.ask("POST", ROOT + "other", {"do": "move", "to": "c/file"}).status == 204 and client.ask("GET", ROOT + "c/file").body == b"y"
    assert client.ask("POST", ROOT + "missing", {"do": "move", "to": "d"}).code == "NOT_FOUND"
    for wanted in ({"do": "move", "to": "c/below"}, {"do": "copy", "to": "c"}, {"do": "move", "to": ""}, {"do": "move"}, {"do": "other"}, {}, {"do": "copy", "to": 3},
                   {"do": "mkdir", "create": 1}):
        assert client.ask("POST", ROOT + "c", wanted).code == "INVALID_ARGUMENT", wanted
    assert client.ask("POST", ROOT, {"do": "move", "to": "d"}).status == 400
    assert client.ask("POST", ROOT + "c", b"[" * 100_000).status == 400 and client.ask("POST", ROOT + "c", b" " * (2 << 20)).status == 413


def test_directories(client: Client) -> None:
    for _ in range(2):
        assert client.ask("POST", ROOT + "a/b", {"do": "mkdir"}).status == 204
    assert client.ask("POST", ROOT + "a/b", {"do": "mkdir", "create": True}).code == "CONFLICT"
    assert client.ask("POST", ROOT + "a/c", {"do": "mkdir", "create": True}).status == 204 and names(client, "a") == ["b", "c"]
    client.ask("PUT", ROOT + "file", b"")
    assert client.ask("POST", ROOT + "file", {"do": "mkdir"}).status == 409


def archive(*members: tuple[str, bytes | str]) -> bytes:
    """A tar of files, and of links to texts."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, data in members:
            about = tarfile.TarInfo(name)
            if isinstance(data, str):
                about.type, about.linkname = tarfile.SYMTYPE, data
                tar.addfile(about)
            else:
                about.size = len(data)
                tar.addfile(about, io.BytesIO(data))
    return raw.getvalue()


def test_archives(client: Client) -> None:
    good = client.ask("POST", ROOT + "into", archive(("a/b", b"text"), ("large", b"x" * (6 << 20))), content_type="application/x-tar")
    assert good.status == 200 and client.ask("GET", ROOT + "into/a/b").body == b"text" and len(client.ask("GET", ROOT + "into/large").body) == 6 << 20
    for member in ("../out", "/tmp/out", "a/../../../out"):
        client.ask("POST", ROOT + "deep/er", archive((member, b"x")), content_type="application/x-tar")
    client.ask("POST", ROOT + "deep/er", archive(("link", "/tmp"), ("link/out", b"x")), content_type="application/x-tar")
    assert client.execute("sh", "-c", "find / -name out 2>/dev/null | grep -v ^/workspace/deep/er/; true")[1] == b""
    assert client.ask("POST", ROOT + "bad", b"not a tar" * 200, content_type="application/x-tar").status == 400
    assert client.ask("POST", ROOT + "../x", archive(("a", b"")), content_type="application/x-tar").status == 403


def test_a_writer_that_leaves(client: Client) -> None:
    client.ask("PUT", ROOT + "file", b"old")
    where = urlsplit(client.url)
    with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
        head = f"PUT {ROOT}file HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Length: {8 << 20}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())
        connection.sendall(head.encode() + b"\r\n" + b"x" * (4 << 20))
        until("a part is written", lambda: b"lind-write" in client.execute("ls", "-a")[1])
        assert names(client) == ["file"]
    until("nothing is left", lambda: b"lind-write" not in client.execute("ls", "-a")[1])
    assert client.ask("GET", ROOT + "file").body == b"old"


def test_a_file_that_is_replaced_while_it_is_read(client: Client) -> None:
    client.ask("PUT", ROOT + "file", b"a" * (24 << 20))
    where = urlsplit(client.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)
    connection.request("GET", ROOT + "file", headers=client.headers)
    answer = connection.getresponse()
    got = answer.read(1000)
    client.ask("PUT", ROOT + "file", b"b" * (24 << 20))
    with pytest.raises(http.client.IncompleteRead) as caught:
        answer.read()
    assert set(got + caught.value.partial) == set(b"a")
    connection.close()


def test_writers_at_once(client: Client) -> None:
    sizes = [1 << 10, 3 << 20, 2 << 20]
    threads = [threading.Thread(target=client.ask, args=("PUT", ROOT + "file", bytes([65 + number]) * size)) for number, size in enumerate(sizes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    body = client.ask("GET", ROOT + "file").body
    assert body and set(body) == {body[0]} and len(body) == sizes[body[0] - 65] and names(client) == ["file"]


def test_requests_that_are_not(client: Client) -> None:
    assert client.ask("GET", "/v2/files").code == "NOT_FOUND" and client.ask("PATCH", ROOT).code == "UNIMPLEMENTED"
    assert client.ask("GET", ROOT + "a%00b").status == 400 and client.ask("GET", ROOT + "a" * 5000).status == 400
    assert client.ask("GET", ROOT, host="other.example").status == 421 and client.ask("GET", ROOT, origin="https://other.example").status == 403
    assert client.ask("GET", ROOT, authorization="Bearer wrong").headers["content-type"] == "application/json"


def ran(client: Client, command: str, **more: Any) -> Any:
    """The answer of the older runtime to a command."""
    answer = client.ask("POST", "/execute", {"command": command, **more})
    assert answer.status == 200, answer
    return answer.json


def test_the_older_runtime(client: Client) -> None:
    assert client.ask("GET", "/").json["status"] == "ok"
    assert ran(client, "echo out | tr o 0; echo err >&2; exit 3") == {"stdout": "0ut\n", "stderr": "err\n", "exit_code": 3, "timed_out": False}
    late = ran(client, "echo before; sleep 20", timeout_seconds=0.5)
    assert (late["stdout"], late["exit_code"], late["timed_out"]) == ("before\n", 124, True)
    body, kind = form("file", b"text", "deep/er/a b")
    assert client.ask("POST", "/upload", body, content_type=kind).status == 200
    assert client.ask("GET", "/download/deep%2Fer%2Fa%20b").body == b"text"
    (one,) = client.ask("GET", "/list/deep%2Fer").json
    assert (one["name"], one["size"], one["type"]) == ("a b", 4, "file") and isinstance(one["mod_time"], float)
    assert client.ask("GET", "/exists/deep").json == {"path": "deep", "exists": True} and client.ask("GET", "/exists/none").json["exists"] is False
    assert client.ask("GET", "/list/deep%2Fer%2Fa%20b").status == client.ask("GET", "/download/deep").status == 404
    for filename, status in (("../out", 403), (None, 400), ("", 400)):
        body, kind = form("file", b"text", filename)
        assert client.ask("POST", "/upload", body, content_type=kind).status == status
    for path in ("/download/..%2Fetc%2Fpasswd", "/list/..", "/exists/..%2F"):
        assert client.ask("GET", path).status == 403
    for wanted in ({}, {"command": 3}, {"command": "true", "timeout_seconds": 0}, {"command": "true", "timeout_seconds": True}, {"command": "true", "timeout_seconds": "x"}):
        assert client.ask("POST", "/execute", wanted).status == 400
