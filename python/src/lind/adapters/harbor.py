"""The environment of Harbor: a sandbox in which agents work on a task, and its tests run.

    harbor run -p TASK -a oracle --env lind.adapters.harbor:LindEnvironment

The tools are those of a sandbox's image, and not those of a Docker image: of a task's Dockerfile the directories, variables, files and commands count. A
command such as `apt-get` does not exist there and fails; `--ek skip_run=true` leaves all of them out, for tasks that need no more than the image has.
`--ek image=full` takes another image.
"""

# mypy: disable-error-code="import-untyped", disallow-subclassing-any=False
from __future__ import annotations

import os
import posixpath
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult, OutputStream
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import COMPOSE_FILE_NAME, DOCKERFILE_NAME
from harbor.models.trial.config import ResourceMode

from .. import AsyncSandbox, CommandNotStarted, SandboxError, TimeoutExpired, program
from . import _dockerfile
from ._networks import ALLOWLISTS, allowed
from ._users import Account

__all__ = ["LindEnvironment"]

# Directories that tasks and agents write to. Each is empty at first, and in memory.
WRITABLE = ("/app", "/data", "/installed-agent", "/logs", "/root", "/runtime", "/solution", "/tests", "/workspace")
# Where commands start if a task does not say it.
WORKDIR = "/app"
# The exit status of a command whose time was over, like that of `timeout`.
TIMED_OUT = 124
# The seconds that the transfer of files may take.
TRANSFER = 600.0


class LindEnvironment(BaseEnvironment):
    """A sandbox for a trial."""

    def __init__(
        self, *args: Any, image: str | None = None, policy: str | None = None, writable: Sequence[str] = (), skip_run: bool = False, **kwargs: Any
    ) -> None:
        self._image, self._policy, self._skip_run = image, policy, skip_run
        self._writable = [*WRITABLE, *writable]
        self._recipe = _dockerfile.Recipe(WORKDIR)
        self._sandbox: AsyncSandbox | None = None
        self._account = Account("", "", "")
        super().__init__(*args, **kwargs)

    @classmethod
    def preflight(cls) -> None:
        """Looks for the runner before a job is queued."""
        try:
            program()
        except SandboxError as why:
            raise SystemExit(str(why)) from None

    @staticmethod
    def type() -> str:
        """The name of this kind of environment."""
        return "lind"

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """Memory can be limited; the number of processors cannot."""
        return EnvironmentResourceCapabilities(memory_limit=True, fractional_cpus=True)

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """The policies that it can enforce."""
        return EnvironmentCapabilities(disable_internet=True, mounted=True, **dict.fromkeys(ALLOWLISTS, True))

    def _validate_definition(self) -> None:
        if (self.environment_dir / COMPOSE_FILE_NAME).exists():
            raise _dockerfile.DockerfileError(f"{self.environment_dir}/{COMPOSE_FILE_NAME}: a sandbox has no containers beside it")
        if other := [mount for mount in self._host_mounts if mount["type"] != "bind"]:
            raise ValueError(f"{self.environment_name}: a sandbox can mount directories and files of the host, and not {other[0]}")
        if (self.environment_dir / DOCKERFILE_NAME).exists():
            self._recipe = _dockerfile.read(self.environment_dir, WORKDIR)
        elif self.task_env_config.docker_image:
            raise _dockerfile.DockerfileError(f"{self.environment_name}: a sandbox cannot use the Docker image {self.task_env_config.docker_image}")

    @property
    def sandbox(self) -> AsyncSandbox:
        """The sandbox, once it has been started."""
        if self._sandbox is None:
            raise RuntimeError(f"{self.session_id}: the environment has not been started")
        return self._sandbox

    @property
    def _workdir(self) -> str:
        return self.task_env_config.workdir or self._recipe.workdir

    async def start(self, force_build: bool) -> None:
        """Starts the sandbox, and follows the Dockerfile of the task."""
        volumes = {mount["source"]: f"{mount['target']}:{'ro' if mount.get('read_only') else 'rw'}" for mount in self._host_mounts}
        for source in volumes:
            if not Path(source).exists():
                Path(source).mkdir(parents=True)
        memory = self._resource_limit_value("memory", auto_mode=ResourceMode.LIMIT)
        size = f":{self._effective_storage_mb or 1024}M"
        folders = dict.fromkeys(["/" + self._workdir.strip("/").partition("/")[0], *self._writable])
        self._sandbox = AsyncSandbox(
            volumes=volumes,
            tmpfs=[folder + size for folder in folders if folder not in ("/", "/tmp", "/home")],
            memory=None if memory is None else f"{memory}M",
            image=self._image,
            policy=self._policy,
            allow=allowed(self._network_policy),
        )
        await self.sandbox.open()
        self._account = await Account.of(self.sandbox)
        for folder in (self._workdir, *self._mount_targets(writable_only=True)):
            await self.sandbox.files.mkdir(folder, parents=True, exist_ok=True)
        await _dockerfile.follow(self._recipe.steps, self, self._skip_run)

    async def stop(self, delete: bool) -> None:
        """Ends the sandbox with all that is in it, whether it is to be deleted or not."""
        if self._sandbox is not None:
            await self._sandbox.close()
            self._sandbox = None

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Runs a command by bash."""
        words = self._as_user(["bash", "-c", command], self._resolve_user(user))
        given = {**self._recipe.env, **(self._merge_env(env) or {})}
        try:
            result = await self.sandbox.run(
                words, cwd=cwd or self._workdir, env=given, timeout=timeout_sec, on_stdout=self._teller("stdout"), on_stderr=self._teller("stderr")
            )
        except TimeoutExpired as why:
            return ExecResult(stdout=why.stdout, stderr=f"{why.stderr}Command timed out after {timeout_sec} seconds", return_code=TIMED_OUT)
        except CommandNotStarted as why:
            return ExecResult(stdout="", stderr=str(why), return_code=why.status)
        return ExecResult(stdout=result.stdout, stderr=result.stderr, return_code=result.exit_code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copies a file of the host into the sandbox."""
        await self.sandbox.files.mkdir(posixpath.dirname(target_path) or ".", parents=True, exist_ok=True)
        await self.sandbox.files.upload(source_path, target_path, timeout=TRANSFER)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copies what is in a directory of the host into one of the sandbox."""
        await self.sandbox.files.upload(f"{source_dir}/.", target_dir, timeout=TRANSFER)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copies a file of the sandbox to the host."""
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await self.sandbox.files.download(source_path, target_path, timeout=TRANSFER)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copies what is in a directory of the sandbox into one of the host. Links that lead out of it are left out."""
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await self.sandbox.files.download(f"{source_dir}/.", target_dir, timeout=TRANSFER)

    async def attach(self) -> None:
        """Replaces this process by a shell in the sandbox."""
        os.execv(program(), [str(program()), "session", "exec", "-w", self._workdir, self.sandbox.name, "--", "bash"])

    def _as_user(self, words: list[str], user: str | int | None) -> list[str]:
        """The command for a user. The sandbox's own user stands for root, if it is another."""
        return words if user in (None, 0, "0", "root") else self._account.words(words, str(user))

    def _teller(self, stream: OutputStream) -> Callable[[bytes], Awaitable[None]] | None:
        """A function that takes output as it comes, if somebody listens."""
        tell = self._output_callback()
        return None if tell is None else lambda data: tell(data.decode(errors="replace"), stream)
