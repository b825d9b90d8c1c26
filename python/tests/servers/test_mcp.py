"""`lind mcp` by standard input and output, with the official client: each tool, in both eras of the protocol."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from .support import ERAS, connected, data, text

pytestmark = pytest.mark.parametrize("era", ERAS)
TOOLS = {"run", "poll", "kill", "read_file", "write_file", "list_files", "search_files", "diff", "apply", "discard", "snapshot", "rollback", "explain"}


async def test_what_clients_are_told(era: str, project: Path) -> None:
    async with connected(era) as client:
        assert client.server_info is not None and client.server_info.name == "lind" and "overlay" in (client.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == TOOLS
        for tool in tools.values():
            hints = tool.annotations
            assert hints is not None and tool.output_schema is not None and tool.description
            assert None not in (hints.title, hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint} == {
            "poll", "read_file", "list_files", "search_files", "diff", "explain"}
        assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.open_world_hint} == {"run"}


async def test_without_a_network_the_world_is_closed(era: str, project: Path) -> None:
    async with connected(era, "--no-ask") as client:
        run = next(tool for tool in (await client.list_tools()).tools if tool.name == "run")
        assert run.annotations is not None and run.annotations.open_world_hint is False


async def test_a_command(era: str, project: Path) -> None:
    (project / "there").write_text("one\n")
    async with connected(era, "-e", "NAME=value") as client:
        result = await client.call_tool("run", {"command": 'cat there; echo "$NAME $OTHER"; read line; echo $line >&2; exit 3', "env": {"OTHER": "x"}, "input": "in\n"})
        ran = data(result)
        assert sorted(ran["output"].splitlines()) == ["in", "one", "value x"]
        assert (ran["exit_code"], ran["running"], ran["ended_by"]) == (3, False, None) and text(result) == ran["output"] + "[exit status 3]"
        missing = await client.call_tool("run", {"command": "true", "cwd": "/nowhere"})
        assert data(missing)["ended_by"] == "not started" and "No such file" in text(missing)
        wrong = await client.call_tool("run", {"command": "true", "timeout": -1})
        assert wrong.is_error


async def test_a_timeout_kills(era: str, project: Path) -> None:
    async with connected(era) as client:
        ran = data(await client.call_tool("run", {"command": "echo before; sleep 600", "timeout": 0.5}))
        assert (ran["output"], ran["exit_code"], ran["ended_by"]) == ("before\n", 137, "timeout")


async def test_output_has_an_end(era: str, project: Path) -> None:
    async with connected(era, "--max-output", "1000") as client:
        result = await client.call_tool("run", {"command": "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i + 1)); done"})
        ran = data(result)
        assert ran["output"].startswith("line 0\n") and ran["output"].endswith("line 1999\n")
        assert ran["left_out"] == ran["next"] - 1000 and f"[{ran['left_out']} bytes are left out here]" in text(result)
        assert len(ran["output"]) < 1100


async def test_in_the_background(era: str, project: Path) -> None:
    async with connected(era) as client:
        began = data(await client.call_tool("run", {"command": "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exit 4", "background": True}))
        assert began["running"] and began["exit_code"] is None
        first = data(await client.call_tool("poll", {"id": began["id"], "wait": 0.1}))
        while not first["output"]:
            first = data(await client.call_tool("poll", {"id": began["id"], "wait": 0.1}))
        assert (first["output"], first["running"]) == ("one\n", True)
        data(await client.call_tool("run", {"command": "touch go"}))
        last = data(await client.call_tool("poll", {"id": began["id"], "wait": 60, "start": first["next"]}))
        assert (last["output"], last["running"], last["exit_code"]) == ("two\n", False, 4)
        assert data(await client.call_tool("poll", {"id": began["id"]}))["output"] == "one\ntwo\n"
        assert (await client.call_tool("poll", {"id": 999})).is_error


async def test_signals_and_the_end(era: str, project: Path) -> None:
    async with connected(era) as client:
        command = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.02; done"
        began = data(await client.call_tool("run", {"command": command, "background": True}))
        while not data(await client.call_tool("poll", {"id": began["id"]}))["output"]:
            await anyio.sleep(0.02)
        asked = data(await client.call_tool("kill", {"id": began["id"], "signal": "TERM"}))
        asked = data(await client.call_tool("poll", {"id": began["id"], "wait": 30}))
        assert "asked" in asked["output"] and asked["exit_code"] == 5
        began = data(await client.call_tool("run", {"command": "sleep 600 & sleep 600", "background": True}))
        killed = data(await client.call_tool("kill", {"id": began["id"]}))
        assert (killed["running"], killed["ended_by"], killed["exit_code"]) == (False, "killed", 137)


async def test_files(era: str, project: Path) -> None:
    async with connected(era, "--max-output", "1000") as client:
        assert data(await client.call_tool("write_file", {"path": "deep/notes.txt", "content": "é" * 600})) == {"path": "deep/notes.txt", "size": 1200}
        assert not (project / "deep").exists(), "the overlay has it, and not the directory"
        read = data(await client.call_tool("read_file", {"path": "deep/notes.txt", "count": 5}))
        assert (read["content"], read["encoding"], read["size"], read["more"], read["next"]) == ("éé", "utf-8", 1200, True, 4)
        rest = data(await client.call_tool("read_file", {"path": "deep/notes.txt", "start": 4}))
        assert (rest["content"], rest["more"], rest["next"]) == ("é" * 500, True, 1004)
        assert (await client.call_tool("write_file", {"path": "deep/notes.txt", "content": "", "create": True})).is_error
        raw = bytes(range(256))
        data(await client.call_tool("write_file", {"path": "raw", "content": base64.b64encode(raw).decode(), "encoding": "base64"}))
        read = data(await client.call_tool("read_file", {"path": "raw"}))
        assert (read["encoding"], base64.b64decode(read["content"])) == ("base64", raw)
        listed = data(await client.call_tool("list_files", {"depth": 3}))
        assert [(entry["path"], entry["type"]) for entry in listed["entries"]] == [("deep", "directory"), ("deep/notes.txt", "file"), ("raw", "file")]
        for name, argument in (("read_file", "missing"), ("list_files", "missing")):
            missing = await client.call_tool(name, {"path": argument})
            assert missing.is_error and "missing: No such file or directory" in text(missing)


async def test_search(era: str, project: Path) -> None:
    (project / "src").mkdir()
    (project / "src" / "a.txt").write_text("one\ntwo (2)\n")
    (project / "src" / "many").write_text("".join(f"line {number}\n" for number in range(5000)))
    async with connected(era) as client:
        found = data(await client.call_tool("search_files", {"pattern": "tw|x{9}"}))
        assert found == {"matches": [{"path": "./src/a.txt", "line": 2, "text": "two (2)"}], "more": False}
        assert data(await client.call_tool("search_files", {"pattern": "(2)", "path": "src", "literal": True}))["matches"][0]["path"] == "src/a.txt"
        assert data(await client.call_tool("search_files", {"pattern": "nowhere"})) == {"matches": [], "more": False}
        many = data(await client.call_tool("search_files", {"pattern": "line"}))
        assert len(many["matches"]) == 200 and many["more"]
        assert (await client.call_tool("search_files", {"pattern": "x", "path": "nothing"})).is_error
        wrong = await client.call_tool("search_files", {"pattern": "(x"})
        assert wrong.is_error and "regular expression" in text(wrong)


async def test_a_search_reads_files_alone(era: str, project: Path) -> None:
    # Opening a FIFO would wait, and a device or a link out of the tree has no end.
    os.mkfifo(project / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(project / "socket"))
    (project / "zero").symlink_to("/dev/zero")
    (project / "up").symlink_to("..")
    (project / "sub" / ".git").mkdir(parents=True)
    (project / "sub" / ".git" / "config").write_text("{} it\n")
    (project / "sub" / "-a file\n").write_text("one\n{} it\n")
    (project / "sub" / ".hidden").write_text("{} it\n")
    (project / "-e").write_text("{} it\n")
    (project / "to").symlink_to("sub")
    async with connected(era) as client:

        async def search(**arguments: object) -> list[str]:
            found = data(await client.call_tool("search_files", {"pattern": "{} it", "literal": True, **arguments}))
            assert not found["more"]
            return sorted(match["path"] for match in found["matches"])

        assert await search() == ["./-e", "./sub/.hidden"]
        assert await search(path="-e") == ["-e"] and await search(path="to") == ["to/.hidden"]
        assert await search(path="fifo") == [] and await search(path="/dev") == []
        assert await search(pattern="\\{} it|\\{} it", literal=False) == ["./-e", "./sub/.hidden"]


async def test_changes(era: str, project: Path) -> None:
    (project / "a.txt").write_text("one\n")
    (project / "b.txt").write_text("two\n")
    async with connected(era) as client:
        assert data(await client.call_tool("diff"))["changes"] == []
        data(await client.call_tool("run", {"command": "echo more >>a.txt; rm b.txt; echo new >c.txt"}))
        result = await client.call_tool("diff")
        assert [(change["kind"], change["path"]) for change in data(result)["changes"]] == [("M", "a.txt"), ("D", "b.txt"), ("A", "c.txt")]
        assert "+more" in data(result)["patch"] and text(result).startswith("M a.txt\nD b.txt\nA c.txt\n")
        data(await client.call_tool("snapshot", {"label": "first"}))
        data(await client.call_tool("run", {"command": "rm c.txt"}))
        data(await client.call_tool("rollback", {"label": "first"}))
        data(await client.call_tool("apply", {"paths": ["a.txt"]}))
        assert (project / "a.txt").read_text() == "one\nmore\n" and (project / "b.txt").exists() and not (project / "c.txt").exists()
        data(await client.call_tool("discard", {"paths": ["b.txt"]}))
        assert [change["path"] for change in data(await client.call_tool("diff"))["changes"]] == ["c.txt"]
        data(await client.call_tool("apply"))
        assert (project / "c.txt").read_text() == "new\n"
        assert (await client.call_tool("rollback", {"label": "unknown"})).is_error


async def test_a_patch_has_an_end(era: str, project: Path) -> None:
    async with connected(era, "--max-output", "1000") as client:
        data(await client.call_tool("run", {"command": "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i + 1)); done >long"}))
        diff = data(await client.call_tool("diff"))
        assert len(diff["patch"]) <= 1000 and diff["left_out"] > 0 and len(diff["changes"]) == 1


async def test_what_is_allowed(era: str, project: Path) -> None:
    async with connected(era, "--allow", "example.org:443", "--no-ask") as client:
        ran = data(await client.call_tool("run", {"command": ": </dev/tcp/192.0.2.1/80"}))
        (denied,) = ran["denials"]
        assert (denied["what"], denied["to_allow"]) == ("connect tcp 192.0.2.1:80", "--allow 192.0.2.1:80") and ran["exit_code"] == 1
        said = data(await client.call_tool("explain"))
        assert said["denials"] == [denied] and not said["asks"] and said["added"] == []
        assert any("overlay" in volume and str(project) in volume for volume in said["volumes"])
        assert any("example.org" in rule for rule in said["rules"])


async def test_progress(era: str, project: Path) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with connected(era) as client:
        data(await client.call_tool("run", {"command": "printf 'first\\n\\033[2Jbusy'; sleep 2.5"}, progress_callback=hear))
    assert len(heard) >= 2 and heard[0][1] == "\\x1b[2Jbusy"
    assert [progress for progress, _ in heard] == sorted({progress for progress, _ in heard})


async def test_a_cancelled_call_ends_its_command(era: str, project: Path) -> None:
    async with connected(era, "-v", ".:rw") as client:
        with anyio.move_on_after(1) as scope:
            await client.call_tool("run", {"command": "echo $$ >pid; while :; do echo x >>alive; sleep 0.02; done"})
        assert scope.cancelled_caught and (project / "pid").exists()
        await anyio.sleep(0.5)
        size = (project / "alive").stat().st_size
        await anyio.sleep(0.3)
        assert (project / "alive").stat().st_size == size
        assert data(await client.call_tool("run", {"command": "echo still here"}))["output"] == "still here\n"


async def test_what_a_hostile_guest_supplies(era: str, project: Path) -> None:
    """Names with control characters, links to the user's files, programs of the image that lie, and output that is not text."""
    secret = project.parent / "secret"
    secret.write_text("of the host\n")
    hostile = "printf 'x' >$'evil\\e[2J\\nname'; ln -s " + str(secret) + " link; ln -s / root; printf '\\033]0;title\\007\\377\\xe2\\x80\\xaeend'"
    async with connected(era) as client:
        result = await client.call_tool("run", {"command": hostile})
        assert data(result)["output"] == "\\x1b]0;title\\x07\ufffd\\u202eend" == text(result)
        for name, arguments in (("list_files", {}), ("diff", {}), ("search_files", {"pattern": "x"})):
            result = await client.call_tool(name, arguments)
            shown = text(result) + str(data(result))
            # grep writes a name of two lines as two lines, of which the last one looks like a name.
            assert "\x1b" not in shown and ("evil" in shown or name == "search_files")
        assert (await client.call_tool("read_file", {"path": "link"})).is_error
        assert (await client.call_tool("read_file", {"path": "root/../" + str(secret)})).is_error
        assert (await client.call_tool("write_file", {"path": "link", "content": "overwritten"})).is_error or secret.read_text() == "of the host\n"
        data(await client.call_tool("apply"))
        assert secret.read_text() == "of the host\n"


async def test_arguments_are_no_options(era: str, project: Path) -> None:
    """Names that begin with a dash are names."""
    async with connected(era) as client:
        data(await client.call_tool("run", {"command": "echo x >./--force; echo x >other"}))
        data(await client.call_tool("apply", {"paths": ["--force"]}))
        assert (project / "--force").exists() and not (project / "other").exists()
        assert data(await client.call_tool("search_files", {"pattern": "-x|x", "path": "--force"}))["matches"][0]["path"] == "--force"


async def test_too_many_commands(era: str, project: Path) -> None:
    async with connected(era) as client:
        for _ in range(32):
            data(await client.call_tool("run", {"command": "sleep 600", "background": True}))
        more = await client.call_tool("run", {"command": "true"})
        assert more.is_error and "32 commands run already" in text(more)


async def test_what_is_not_there(era: str, project: Path) -> None:
    async with connected(era) as client:
        with pytest.raises(MCPError):
            await client.read_resource("file:///etc/passwd")
        unknown: Any = await client.call_tool("unknown", {})
        assert unknown.is_error and isinstance(unknown.content[0], TextContent)
