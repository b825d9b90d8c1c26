"""The client for OpenAI's SDK: the SDK's own tests of sessions, run in sandboxes, and the contract of its sessions."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agents.sandbox import Manifest
from agents.sandbox.entries import Dir, File
from agents.sandbox.errors import ExecTimeoutError, InvalidManifestPathError, PtySessionNotFoundError, WorkspaceReadNotFoundError
from agents.sandbox.manifest import Environment
from agents.sandbox.session.sandbox_session import SandboxSession
from agents.sandbox.snapshot import LocalSnapshotSpec
from agents.sandbox.types import User

import lind
from lind.adapters.openai_agents import LindClient, LindClientOptions, LindSession

SOURCES = os.environ.get("LIND_TEST_SOURCES")
# The tests that are about any session, and not about the host's.
THEIRS = {
    "integration_tests": None,
    "test_extract.py": None,
    "test_run_cwd.py": None,
    "capabilities/test_filesystem_capability.py": None,
    "test_unix_local.py": "apply_patch_create_through or create_accepts or supports_a_symlinked",
    "test_unix_local_file_io.py": "rename_replaces or rename_onto or same_file_answers or (preserve_leaf_symlinks and None) or move_destination",
}
# Names in archives of sessions on the host begin with "./"; those here do not, as with Docker.
NOT = "not excludes_resolved_mount_path"


@pytest.mark.skipif(SOURCES is None, reason="scripts/sdk_test.py gets the source archive")
@pytest.mark.parametrize("tests", THEIRS)
def test_of_the_sdk(tests: str, tmp_path: Path) -> None:
    chosen = f"({THEIRS[tests]}) and {NOT}" if THEIRS[tests] else NOT
    words = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "openai_in_lind", f"--basetemp={tmp_path}/t", "-k", chosen, f"tests/sandbox/{tests}"]
    known = os.environ | {"PYTHONPATH": f"{os.environ['PYTHONPATH']}:{Path(__file__).parent}"}
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=SOURCES, env=known, capture_output=True, text=True, timeout=600, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout


@pytest.fixture
async def session() -> AsyncIterator[SandboxSession]:
    manifest = Manifest(entries={"a.txt": File(content=b"hello\n")}, environment=Environment(value={"NAME": "value"}))
    async with await LindClient().create(manifest=manifest) as session:
        yield session


async def test_runs_commands_in_the_workspace(session: SandboxSession) -> None:
    done = await session.exec("cat a.txt; pwd; echo $NAME; echo bad >&2; exit 3")
    assert (done.stdout, done.stderr, done.exit_code) == (b"hello\n/workspace\nvalue\n", b"bad\n", 3)
    assert (await session.exec("no-such-program", shell=False)).exit_code == 127
    with pytest.raises(ExecTimeoutError):
        await session.exec("sleep 60", timeout=0.5)


async def test_reads_and_writes_files(session: SandboxSession) -> None:
    await session.write(Path("new/b.bin"), io.BytesIO(bytes(range(256))))
    assert (await session.read(Path("new/b.bin"))).read() == bytes(range(256))
    assert await session.read_bounded(Path("new/b.bin"), max_bytes=3) == b"\0\1\2"
    assert [Path(entry.path).name for entry in await session.ls("new")] == ["b.bin"]
    with pytest.raises(WorkspaceReadNotFoundError):
        await session.read(Path("missing"))
    with pytest.raises(InvalidManifestPathError):
        await session.read(Path("/etc/passwd"))


async def test_a_link_out_of_the_workspace_is_not_followed(session: SandboxSession) -> None:
    await session.exec("ln -s /etc/passwd link; ln -s /tmp dir")
    with pytest.raises(InvalidManifestPathError):
        await session.read(Path("link"))
    with pytest.raises(InvalidManifestPathError):
        await session.write(Path("dir/out"), io.BytesIO(b""))


async def test_users_are_refused(session: SandboxSession) -> None:
    with pytest.raises(ValueError, match="one user"):
        await session.exec("id", user="somebody")
    with pytest.raises(ValueError, match="one user"):
        async with await LindClient().create(manifest=Manifest(users=[User(name="somebody")])):
            pass


async def test_a_command_at_a_terminal(session: SandboxSession) -> None:
    begun = await session.pty_exec_start("tty; stty size; read word; echo got $word; exit 4", tty=True, yield_time_s=1)
    assert begun.process_id is not None and begun.exit_code is None
    assert b"/dev/pts/" in begun.output and b"24 80" in begun.output
    ended = await session.pty_write_stdin(session_id=begun.process_id, chars="it\n", yield_time_s=5)
    assert ended.output.endswith(b"got it\r\n")
    assert (ended.exit_code, ended.process_id) == (4, None)
    with pytest.raises(PtySessionNotFoundError):
        await session.pty_write_stdin(session_id=begun.process_id, chars="")


async def test_a_command_that_goes_on_can_be_interrupted_and_ended(session: SandboxSession) -> None:
    begun = await session.pty_exec_start("echo begun; exec sleep 1000", tty=True, yield_time_s=0.5)
    assert begun.process_id is not None
    ended = await session.pty_write_stdin(session_id=begun.process_id, chars="\x03", yield_time_s=5)
    assert ended.exit_code == 130
    await session.pty_exec_start("exec sleep 1001", yield_time_s=0.3)
    await session.pty_terminate_all()
    while (await session.exec("ps", "-o", "args")).stdout.count(b"sleep 1001"):
        await asyncio.sleep(0.1)


async def test_without_a_terminal_nothing_can_be_typed(session: SandboxSession) -> None:
    begun = await session.pty_exec_start("cat; sleep 1000", yield_time_s=0.3)
    assert begun.process_id is not None
    with pytest.raises(RuntimeError, match="stdin"):
        await session.pty_write_stdin(session_id=begun.process_id, chars="text")


async def test_a_session_is_resumed_from_its_snapshot(tmp_path: Path) -> None:
    client = LindClient()
    entries = {"kept": File(content=b"1"), "dir": Dir(children={"passing": File(content=b"2", ephemeral=True)})}
    session = await client.create(manifest=Manifest(entries=entries), snapshot=LocalSnapshotSpec(base_path=tmp_path))
    async with session:
        await session.exec("echo 3 >kept; mkdir bin; echo 'echo run' >bin/run; chmod +x bin/run; ln -s bin/run link; mkfifo pipe; ln -s /workspace/kept absolute")
    payload = client.serialize_session_state(session.state)
    assert not await session.running()
    resumed = await client.resume(client.deserialize_session_state(payload))
    async with resumed:
        done = await resumed.exec("cat kept; sh -c ./link; cat absolute dir/passing; ls -p")
        assert done.stdout.decode().split() == ["3", "run", "3", "2absolute", "bin/", "dir/", "kept", "link"]


async def test_a_state_says_nothing_of_what_a_sandbox_may_do() -> None:
    client = LindClient(allow=["example.org:443"])
    session = await client.create()
    payload = client.serialize_session_state(session.state)
    assert "example.org" not in str(payload)
    resumed = await LindClient().resume(client.deserialize_session_state({**payload, "allow": ["example.org:443"], "volumes": {"/": "rw"}}))
    inner = resumed._inner
    assert isinstance(inner, LindSession)
    assert not inner.sandbox._options.allow and not inner.sandbox._options.volumes


async def test_a_workspace_on_a_volume(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host\n")
    client = LindClient(volumes={tmp_path: "/workspace:overlay"})
    async with await client.create(manifest=Manifest(entries={"new": File(content=b"new\n")})) as session:
        assert (await session.exec("cat file new; echo changed >file; cat file")).stdout == b"of the host\nnew\nchanged\n"
    assert (tmp_path / "file").read_text() == "of the host\n"
    assert not (tmp_path / "new").exists()


async def test_an_exposed_port_leads_into_the_sandbox() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with await LindClient().create(options=LindClientOptions(exposed_ports=(port,))) as session:
        await session.pty_exec_start(f"echo hello | nc -l -p {port}", yield_time_s=0.5)
        end = await session.resolve_exposed_port(port)
        reader, writer = await asyncio.open_connection(end.host, end.port)
        assert await asyncio.wait_for(reader.readline(), 20) == b"hello\n"
        writer.close()


async def test_delete_ends_the_sandbox(session: SandboxSession) -> None:
    inner = session._inner
    assert isinstance(inner, LindSession)
    assert await session.running()
    await LindClient().delete(session)
    assert not await session.running()
    with pytest.raises(lind.SandboxError):
        await inner.sandbox.run("true")
