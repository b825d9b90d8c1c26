"""The sandbox for inspect_ai: the framework's own check of sandboxes, and what that leaves out."""

from __future__ import annotations

import asyncio
import importlib
import os
import shlex
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import tomllib
from inspect_ai.util import (
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxEnvironmentSpec,
    SandboxUserUnsupportedError,
)
from inspect_ai.util._sandbox.environment import SandboxUnavailableError
from inspect_ai.util._sandbox.limits import override_max_exec_output_size
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *

from lind.adapters._users import Account
from lind.adapters.inspect_ai import LindConfig, LindSandboxEnvironment

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"

# Programs that add a user change /etc, which is read-only in the image.
ACCOUNTS = {"/etc/passwd": "root:x:0:0:root:/:/bin/sh\n", "/etc/group": "root:x:0:\n", "/etc/shadow": "root:*:::::::\n"}
# The checks that inspect_ai's runner expects to fail in a container whose user is root. If the
# caller is root, so are the commands of a sandbox.
OF_ROOT = {
    "test_read_file_not_allowed": "root may read any file",
    "test_write_text_file_without_permissions": "root may write any file",
    "test_write_binary_file_without_permissions": "root may write any file",
}
OF_OTHERS = {"test_exec_as_user": "only root can become another user"}
ROOT = os.geteuid() == 0
KNOWN = OF_ROOT if ROOT else OF_OTHERS


async def started(**options: Any) -> LindSandboxEnvironment:
    environments = await LindSandboxEnvironment.sample_init("check", LindConfig(**options), {})
    return environments["default"].as_type(LindSandboxEnvironment)


@pytest.fixture
async def sandbox_env(request: pytest.FixtureRequest) -> AsyncIterator[SandboxEnvironment]:
    if reason := KNOWN.get(request.node.originalname):
        request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))
    accounts = request.node.originalname == "test_exec_as_user"
    environment = await started(**({"tmpfs": ["/etc"]} if accounts else {}))
    try:
        if accounts:
            for file, text in ACCOUNTS.items():
                await environment.write_file(file, text)
        yield environment
    finally:
        await LindSandboxEnvironment.sample_cleanup("check", None, {"default": environment}, False)


def test_the_framework_finds_it_by_its_name() -> None:
    points = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["inspect_ai"]
    module = importlib.import_module(points["lind"])
    assert registry_find_sandboxenv("lind") is module.LindSandboxEnvironment


async def test_options_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "sandbox.yaml"
    file.write_text("hostname: from-a-file\nenv: {GREETING: hello}\n")
    environments = await LindSandboxEnvironment.sample_init("check", str(file), {})
    try:
        said = await environments["default"].exec(["sh", "-c", "uname -n; echo $GREETING"])
        assert said.stdout == "from-a-file\nhello\n"
    finally:
        await LindSandboxEnvironment.sample_cleanup("check", str(file), environments, False)


async def test_an_option_that_is_not_known_is_an_error() -> None:
    with pytest.raises(TypeError, match="not_an_option"):
        await started(not_an_option=1)


def test_options_survive_a_log() -> None:
    spec = SandboxEnvironmentSpec("lind", LindConfig(allow=["example.org:443"], volumes={"/a": "ro"}))
    assert SandboxEnvironmentSpec.model_validate(spec.model_dump()) == spec


async def test_each_sample_has_a_sandbox_of_its_own() -> None:
    one, two = await started(), await started()
    try:
        await one.write_file("/tmp/of-one", "text")
        with pytest.raises(FileNotFoundError):
            await two.read_file("/tmp/of-one")
    finally:
        await LindSandboxEnvironment.sample_cleanup("check", None, {"one": one, "two": two}, True)
    with pytest.raises(SandboxUnavailableError):
        await one.exec(["true"])


async def test_long_output_is_an_error_and_not_a_part(sandbox_env: SandboxEnvironment) -> None:
    with override_max_exec_output_size(1000):
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR
        assert len((await sandbox_env.exec(["sh", "-c", "head -c 1000 /dev/zero; head -c 1000 /dev/zero >&2"])).stdout) == 1000
        for command in ("head -c 1001 /dev/zero", "head -c 5000 /dev/zero >&2"):
            with pytest.raises(OutputLimitExceededError, match=limit):
                await sandbox_env.exec(["sh", "-c", command])


async def test_a_program_that_does_not_exist_is_a_result(sandbox_env: SandboxEnvironment) -> None:
    done = await sandbox_env.exec(["not-there"])
    assert (done.success, done.returncode) == (False, 127)
    assert "not-there" in done.stderr


def test_only_root_becomes_another_user() -> None:
    assert Account("1000", "user", "/").words(["id"], "user") == ["id"]
    with pytest.raises(RuntimeError, match="as 'root': its user is user"):
        Account("1000", "user", "/").words(["id"], "root")


async def test_another_user_without_root_is_not_supported(sandbox_env: LindSandboxEnvironment) -> None:
    sandbox_env._known = Account("1000", "user", "/")
    with pytest.raises(SandboxUserUnsupportedError):
        await sandbox_env.exec(["id"], user="root")


async def test_a_person_can_look_in(sandbox_env: SandboxEnvironment) -> None:
    await sandbox_env.write_file("/tmp/left", "by the sample")
    words = [*shlex.split((await sandbox_env.connection()).command), "-c", "cat /tmp/left"]
    said = await asyncio.to_thread(subprocess.run, words, capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "by the sample"
