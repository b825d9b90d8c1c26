"""The environment for Harbor: what the framework's class of environments asks of each, and a whole trial."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from harbor.environments.base import BaseEnvironment, HealthcheckError, SandboxBuildFailedError, ServiceOperationsUnsupportedError
from harbor.environments.factory import EnvironmentFactory
from harbor.models.task.config import EnvironmentConfig, HealthcheckConfig, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

from lind.adapters._dockerfile import DockerfileError
from lind.adapters._networks import PRIVATE, public
from lind.adapters.harbor import LindEnvironment

Maker = Callable[..., LindEnvironment]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Makes an environment that has not been started. `files` are those of its directory."""

    def made(files: dict[str, str] | None = None, config: dict[str, Any] | None = None, **options: Any) -> LindEnvironment:
        folder = tmp_path / "environment"
        folder.mkdir()
        for name, text in (files or {"Dockerfile": "FROM ubuntu:24.04\nWORKDIR /app\n"}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        paths = TrialPaths(tmp_path / "trial")
        paths.mkdir()
        return LindEnvironment(folder, "task", "task__1__env", paths, EnvironmentConfig(**(config or {})), **{"network_policy": OFFLINE, **options})

    return made


OFFLINE = NetworkPolicy(network_mode="no-network")


@pytest.fixture
async def env(make: Maker) -> AsyncIterator[LindEnvironment]:
    environment = make()
    await environment.start(force_build=False)
    yield environment
    await environment.stop(delete=True)


async def run(environment: BaseEnvironment, command: str, **more: Any) -> str:
    done = await environment.exec(command, **more)
    assert done.return_code == 0, done
    return done.stdout or ""


async def test_tells_output_and_status(env: LindEnvironment) -> None:
    done = await env.exec("echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.return_code) == ("out\n", "err\n", 3)


async def test_a_command_that_takes_too_long(env: LindEnvironment) -> None:
    done = await env.exec("echo begun; sleep 60", timeout_sec=1)
    assert (done.stdout, done.return_code) == ("begun\n", 124)
    assert "timed out after 1 seconds" in (done.stderr or "")


async def test_a_directory_that_does_not_exist(env: LindEnvironment) -> None:
    done = await env.exec("pwd", cwd="/not/there")
    assert done.return_code != 0
    assert "working directory" in (done.stderr or "")


async def test_variables_go_before_one_another_as_the_framework_says(make: Maker) -> None:
    environment = make({"Dockerfile": "FROM x\nENV A=docker B=docker C=docker D=docker\n"}, {"env": {"B": "task", "C": "task", "D": "task"}})
    await environment.start(force_build=False)
    try:
        with environment.scoped_exec_env({"D": "scope"}):
            assert await run(environment, "echo $A $B $C $D", env={"C": "call", "D": "call"}) == "docker task call scope\n"
    finally:
        await environment.stop(delete=True)


async def test_the_directory_of_a_command_is_given_or_the_tasks_or_the_dockerfiles(make: Maker) -> None:
    environment = make({"Dockerfile": "FROM x\nWORKDIR /srv\nWORKDIR deep\n"})
    await environment.start(force_build=False)
    try:
        assert await run(environment, "pwd") == "/srv/deep\n"
        assert await run(environment, "pwd", cwd="/tmp") == "/tmp\n"
        environment.task_env_config.workdir = "/app"
        assert await run(environment, "pwd") == "/app\n"
    finally:
        await environment.stop(delete=True)


async def test_output_is_told_as_it_comes(env: LindEnvironment) -> None:
    told: list[tuple[str, str]] = []

    async def tell(text: str, stream: str) -> None:
        told.append((text, stream))

    with env.scoped_output_callback(tell):
        await run(env, "echo one; sleep 0.3; echo two >&2")
    assert told == [("one\n", "stdout"), ("two\n", "stderr")]


@needs_root
async def test_commands_of_other_users(env: LindEnvironment) -> None:
    assert await run(env, "id -un", user="root") == "root\n"
    assert await run(env, "id -un", user="nobody") == "nobody\n"
    with env.with_default_user("nobody"):
        assert await run(env, "id -un") == "nobody\n"
        assert await run(env, "id -u", user=0) == "0\n"
    assert "unknown user" in ((await env.exec("id", user="not-there")).stderr or "")


async def test_files_go_in_and_out(env: LindEnvironment, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"\0\xff\n")
    (tmp_path / "one").chmod(0o755)
    await env.upload_file(tmp_path / "one", "/app/new/deep/two")
    assert await run(env, "stat -c '%a %s' new/deep/two") == "755 3\n"
    await env.download_file("/app/new/deep/two", tmp_path / "made" / "three")
    assert (tmp_path / "made" / "three").read_bytes() == b"\0\xff\n"
    with pytest.raises(Exception, match="No such file"):
        await env.download_file("/app/not-there", tmp_path / "four")


async def test_directories_go_in_and_out(env: LindEnvironment, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "file").write_text("text\n")
    (source / ".hidden").write_text("h\n")
    (source / "link").symlink_to("sub/file")
    await env.upload_dir(source, "/app/there")
    assert await run(env, "cd there && find . | sort && cat link") == ".\n./.hidden\n./link\n./sub\n./sub/file\ntext\n"
    await run(env, "mkfifo there/pipe")
    target = tmp_path / "target"
    target.mkdir()
    (target / "kept").write_text("kept\n")
    await env.download_dir("/app/there", target)
    assert sorted(path.name for path in target.rglob("*")) == [".hidden", "file", "kept", "link", "sub"]
    assert (target / "sub" / "file").read_text() == "text\n"


async def test_a_link_of_the_guest_leads_no_download_astray(env: LindEnvironment, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host\n")
    await run(env, f"mkdir d && ln -s {secret} d/file && ln -s {tmp_path} d/folder")
    target = tmp_path / "target"
    await env.download_dir("/app/d", target)
    assert list(target.iterdir()) == []
    # A link that an earlier download has made, or somebody else, leads nowhere either.
    await run(env, "mkdir d/sub && ln -s sub d/inner")
    await env.download_dir("/app/d", target)
    (target / "outer").symlink_to(tmp_path)
    await run(env, "rm d/inner && mkdir d/inner d/outer && echo x | tee d/inner/new d/outer/secret")
    for _ in range(2):
        with pytest.raises(Exception, match="not a directory"):
            await env.download_dir("/app/d", target)
        await run(env, "rm -rf d/inner")
    assert not (target / "sub" / "new").exists()
    with pytest.raises(Exception, match="No such file|link"):
        await env.download_file("/app/d/file", tmp_path / "copy")
    assert secret.read_text() == "of the host\n"


async def test_the_frameworks_own_operations_on_directories(env: LindEnvironment, tmp_path: Path) -> None:
    await env.ensure_dirs(["/app/a", "/app/b c"])
    await run(env, "touch a/x.log a/y.txt 'b c/z'")
    assert await env.is_dir("/app/b c")
    assert not await env.is_dir("/app/a/x.log")
    assert await env.is_file("/app/a/x.log")
    await env.download_dir_with_exclusions(source_dir="/app/a", target_dir=tmp_path / "one", exclude=["*.log"])
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["y.txt"]
    await env.download_dir_filtered(source_dir="/app/a", target_dir=tmp_path / "two", include=["*.log"])
    assert [path.name for path in (tmp_path / "two").iterdir()] == ["x.log"]
    await env.empty_dirs(["/app/a"])
    await env.reset_dirs(remove_dirs=["/app/b c"], create_dirs=["/app/c"])
    assert await run(env, "ls; ls a") == "a\nc\n"
    with pytest.raises(ServiceOperationsUnsupportedError):
        await env.service_exec("true", service="database")


async def test_health_checks(env: LindEnvironment) -> None:
    await env.run_healthcheck(HealthcheckConfig(command="true"))
    with pytest.raises(HealthcheckError):
        await env.run_healthcheck(HealthcheckConfig(command="false", retries=1, interval_sec=0))


async def test_mounts(make: Maker, tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "file").write_text("text\n")
    environment = make(auto_mounting=True, mounts=[{"type": "bind", "source": str(shown), "target": "/shown", "read_only": True}])
    await environment.start(force_build=False)
    try:
        assert environment.is_path_mounted("/logs/verifier", environment.trial_paths.verifier_dir)
        await run(environment, "echo 1 >/logs/verifier/reward.txt")
        assert (environment.trial_paths.verifier_dir / "reward.txt").read_text() == "1\n"
        assert await run(environment, "cat /shown/file") == "text\n"
        assert (await environment.exec("echo >/shown/file")).return_code != 0
    finally:
        await environment.stop(delete=True)


async def test_without_automatic_mounts_its_directories_are_there(env: LindEnvironment) -> None:
    assert not env.is_path_mounted("/logs/verifier", env.trial_paths.verifier_dir)
    await run(env, "echo 1 >/logs/verifier/reward.txt; touch /logs/agent/x /logs/artifacts/x /tests/x /solution/x /root/x")


CONNECT = "exec 3<>/dev/tcp/{}/{}"


@pytest.mark.parametrize("mode", ["no-network", "public", "allowlist"])
async def test_the_network_is_what_the_policy_says(make: Maker, mode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        policy = NetworkPolicy(network_mode=mode, allowed_hosts=["127.0.0.1"] if mode == "allowlist" else [])
        environment = make(network_policy=policy)
        await environment.start(force_build=False)
        try:
            done = await environment.exec(CONNECT.format(*server.getsockname()))
            assert (done.return_code == 0) == (mode == "allowlist"), done
        finally:
            await environment.stop(delete=True)


async def test_every_kind_of_an_allowed_host_is_a_rule(make: Maker) -> None:
    hosts = ["example.org", "*.example.org", "192.0.2.1", "192.0.2.0/24", "2001:db8::1", "2001:db8::/32"]
    environment = make(network_policy=NetworkPolicy(network_mode="allowlist", allowed_hosts=hosts))
    await environment.start(force_build=False)
    await environment.stop(delete=True)


def test_the_public_network_has_no_private_address() -> None:
    from ipaddress import ip_network

    rules = [ip_network(rule) for rule in public()]
    assert not any(rule.overlaps(ip_network(private)) for rule in rules if rule.version == 4 for private in PRIVATE)
    assert sum(rule.num_addresses for rule in rules if rule.version == 4) == 2**32 - sum(ip_network(private).num_addresses for private in PRIVATE)


async def test_follows_a_dockerfile(make: Maker) -> None:
    files = {
        "Dockerfile": 'FROM python:3.13 AS base\nLABEL a=b\nENV WHERE=/app/made GREETING="two words"\nWORKDIR $WHERE\nCOPY data/ data/\nCOPY one.txt two.txt ./\n'
        'RUN cat *.txt data/three.txt \\\n    >all && echo "$GREETING" >>all\nRUN ["touch", "a b"]\nCMD ["bash"]\n',
        "one.txt": "1\n",
        "two.txt": "2\n",
        "data/three.txt": "3\n",
    }
    environment = make(files)
    await environment.start(force_build=True)
    try:
        assert await run(environment, "pwd; cat all; ls") == "/app/made\n1\n2\n3\ntwo words\na b\nall\ndata\none.txt\ntwo.txt\n"
    finally:
        await environment.stop(delete=True)


async def test_a_command_of_a_dockerfile_that_fails(make: Maker, caplog: pytest.LogCaptureFixture) -> None:
    environment = make({"Dockerfile": "FROM ubuntu\nRUN apt-get install -y cowsay\n"})
    with pytest.raises(SandboxBuildFailedError, match="RUN apt-get install -y cowsay: exit status 127: .*apt-get: command not found"):
        await environment.start(force_build=False)
    await environment.stop(delete=True)
    environment._skip_run = True
    with caplog.at_level(logging.WARNING):
        await environment.start(force_build=False)
    await environment.stop(delete=True)
    assert "Left out: RUN apt-get install -y cowsay" in caplog.text


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"Dockerfile": "FROM a\nFROM b\n"}, "several stages"),
        ({"Dockerfile": 'FROM a\nSHELL ["sh"]\n'}, "SHELL"),
        ({"Dockerfile": "FROM a\nCOPY --from=b c d\n"}, "--from=b"),
        ({"Dockerfile": "FROM a\nCOPY not-there .\n"}, "not-there"),
        ({"Dockerfile": "FROM a\nCOPY ../* .\n"}, r"\.\./"),
        ({"Dockerfile": "FROM a\nADD https://example.org/x x\n"}, "example.org"),
        ({"docker-compose.yaml": "services: {}\n"}, "docker-compose.yaml"),
    ],
)
def test_what_a_sandbox_cannot_do_is_an_error_before_it_starts(make: Maker, files: dict[str, str], why: str) -> None:
    with pytest.raises(DockerfileError, match=why):
        make(files)


def test_an_image_of_docker_is_an_error(make: Maker) -> None:
    with pytest.raises(DockerfileError, match="cannot use the Docker image ubuntu"):
        make({"notes": ""}, {"docker_image": "ubuntu"})


def test_the_framework_finds_it_by_its_name(tmp_path: Path) -> None:
    made = EnvironmentFactory.create_environment_from_import_path(
        "lind.adapters.harbor:LindEnvironment", tmp_path, "task", "task__1__env", TrialPaths(tmp_path), EnvironmentConfig(), skip_run=True
    )
    assert isinstance(made, LindEnvironment)
    assert made.type() == "lind"


async def test_nothing_is_left_when_it_has_been_stopped(make: Maker) -> None:
    environment = make()
    await environment.start(force_build=False)
    name = environment.sandbox.name
    await environment.stop(delete=False)
    await environment.stop(delete=True)
    assert not list(Path("/tmp").glob(f"lind-*/{name}*"))
    with pytest.raises(RuntimeError, match="has not been started"):
        await environment.exec("true")
