"""Commands that are run to their end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lind import AsyncSandbox, CommandError, CommandNotStarted, RequestError, TimeoutExpired


async def test_output_and_status() -> None:
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run("echo out; echo err >&2; exit 3")
        assert (result.exit_code, result.stdout, result.stderr, result.signal, result.ok) == (3, "out\n", "err\n", None, False)
        assert result.timed_out is None and result.wall > 0
        result = await sandbox.run(["printf", "%s|", "a b", "*", "$HOME"])
        assert (result.ok, result.stdout) == (True, "a b|*|$HOME|")


async def test_a_command_that_is_too_long_is_not_started() -> None:
    async with AsyncSandbox() as sandbox:
        with pytest.raises(CommandNotStarted, match="too long") as why:
            await sandbox.run("echo " + "x" * (5 << 20))
        assert (why.value.status, why.value.errno) == (126, "E2BIG")
        with pytest.raises(RequestError, match="too long"):
            await sandbox.files.stat("x" * (5 << 20))
        assert (await sandbox.run("echo and goes on")).ok


async def test_signal() -> None:
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run("kill -TERM $$; sleep 10")
        assert (result.exit_code, result.signal) == (143, 15)


async def test_input_of_any_size() -> None:
    much = os.urandom(3_000_000)
    async with AsyncSandbox() as sandbox:
        for given in (b"", b"x", much):
            assert (await sandbox.run(["cat"], input=given)).stdout_bytes == given
        assert (await sandbox.run("head -c 5; echo", input=much)).stdout_bytes == much[:5] + b"\n"
        assert (await sandbox.run(["cat"])).stdout == ""
        assert (await sandbox.run("wc -c", input="\u00e4")).stdout.strip() == "2"


async def test_input_that_nobody_reads_leaves_no_trace() -> None:
    async with AsyncSandbox() as sandbox:
        for _ in range(3):
            assert (await sandbox.run(["true"], input=bytes(3_000_000))).ok
        assert (await sandbox.run("echo fine")).stdout == "fine\n"


async def test_output_that_is_no_text() -> None:
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run(r"printf 'a\377b'")
        assert (result.stdout_bytes, result.stdout) == (b"a\xffb", "a\ufffdb")
        result = await sandbox.run(["printf", "%s", b"\xff\xfe"])
        assert result.stdout_bytes == b"\xff\xfe"


async def test_check() -> None:
    async with AsyncSandbox() as sandbox:
        assert (await sandbox.run("true", check=True)).ok
        with pytest.raises(CommandError, match="status 5: why it failed") as caught:
            await sandbox.run("echo 'why it failed' >&2; exit 5", check=True)
        assert caught.value.result.exit_code == 5
        with pytest.raises(CommandError) as caught:
            await sandbox.run(r"printf '\033]0;title\007' >&2; exit 1", check=True)
        assert "\033" not in str(caught.value) and "\\x1b" in str(caught.value)


async def test_a_program_that_is_not_there() -> None:
    async with AsyncSandbox() as sandbox:
        with pytest.raises(CommandNotStarted, match="no-such-program") as caught:
            await sandbox.run(["no-such-program"])
        assert (caught.value.status, caught.value.errno) == (127, "ENOENT")
        assert (await sandbox.run("no-such-program")).exit_code == 127


async def test_timeout_has_what_was_said() -> None:
    async with AsyncSandbox() as sandbox:
        with pytest.raises(TimeoutError) as caught:
            await sandbox.run("echo before; echo error >&2; sleep 100", timeout=0.5)
        assert isinstance(caught.value, TimeoutExpired)
        assert (caught.value.stdout, caught.value.stderr, caught.value.timeout) == ("before\n", "error\n", 0.5)
        assert caught.value.result is not None and caught.value.result.timed_out == 0.5
        assert (await sandbox.run("echo after")).stdout == "after\n"


async def test_no_more_output_than_wanted() -> None:
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run("head -c 100000 /dev/zero; exit 4", max_output=1000)
        assert (len(result.stdout_bytes), result.dropped, result.exit_code) == (1000, 99_000, 4)


async def test_callbacks() -> None:
    out: list[bytes] = []
    err: list[bytes] = []
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run("echo one; echo two >&2; echo three", on_stdout=out.append, on_stderr=err.append)
    assert (b"".join(out), b"".join(err)) == (b"one\nthree\n", b"two\n")
    assert result.stdout_bytes == b"one\nthree\n"


async def test_a_callback_that_fails_ends_the_command() -> None:
    def fail(data: bytes) -> None:
        raise KeyError(data)

    async with AsyncSandbox() as sandbox:
        with pytest.raises(KeyError, match="go"):
            await sandbox.run("echo go; sleep 100", on_stdout=fail)
        assert (await sandbox.run("echo fine")).stdout == "fine\n"


async def test_environment_and_directory(project: Path) -> None:
    (project / "inner").mkdir()
    async with AsyncSandbox(volumes={".": "ro"}, env={"ONE": "1", "TWO": "a=b\nc"}) as sandbox:
        result = await sandbox.run('echo "$ONE|$TWO|$THREE|$LIND_BOOT"', env={"THREE": "3"})
        assert result.stdout == "1|a=b\nc|3|\n"
        assert (await sandbox.run("pwd")).stdout == f"{project}\n"
        assert (await sandbox.run("pwd", cwd=project / "inner")).stdout == f"{project}/inner\n"


async def test_volumes(project: Path) -> None:
    for name in ("a", "b", "c"):
        (project / name).mkdir()
        (project / name / "file").write_text(name)
    async with AsyncSandbox(volumes={"a": "/a:ro", project / "b": "rw", "c": "overlay"}) as sandbox:
        assert (await sandbox.run("cat /a/file; echo new >/a/file")).stdout == "a"
        assert (await sandbox.run(f"echo new >{project}/b/file; echo new >{project}/c/file; cat {project}/c/file")).stdout == "new\n"
    assert [(project / name / "file").read_text() for name in ("a", "b", "c")] == ["a", "new\n", "c"]


async def test_limits() -> None:
    async with AsyncSandbox(memory="64M", processes=5) as sandbox:
        result = await sandbox.run("for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait")
        assert result.stderr != ""
        result = await sandbox.run("while :; do :; done", cpu=0.2)
        assert not result.ok


async def test_no_network_unless_it_is_allowed() -> None:
    async with AsyncSandbox() as sandbox:
        result = await sandbox.run("exec 3<>/dev/tcp/192.0.2.1/22")
        assert not result.ok and "192.0.2.1" in result.stderr
