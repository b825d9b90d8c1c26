"""A sandbox for the samples of inspect_ai: `sandbox="lind"`.

The options of a sandbox are those of `lind.Sandbox`: in Python `sandbox=SandboxEnvironmentSpec("lind", LindConfig(allow=["pypi.org:443"]))`, or in a YAML
or JSON file, `sandbox=("lind", "sandbox.yaml")`. Each sample has a sandbox of its own.

>>> import asyncio
>>> async def say() -> str:
...     environments = await LindSandboxEnvironment.sample_init("task", LindConfig(memory="256M"), {})
...     done = await environments["default"].exec(["echo", "hello"])
...     await LindSandboxEnvironment.sample_cleanup("task", None, environments, False)
...     return done.stdout
>>> asyncio.run(say())
'hello\\n'

The tools `bash` and `python` work. Those for which inspect_ai puts a Linux program into the sandbox, as `text_editor` and `bash_session`, do not: a
sandbox runs WebAssembly.
"""

from __future__ import annotations

import posixpath
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import yaml  # type: ignore[import-untyped]
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentConfigType,
    SandboxEnvironmentLimits,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from inspect_ai.util._sandbox.environment import SandboxUnavailableError
from pydantic import BaseModel

from .. import AsyncSandbox, CommandNotStarted, SandboxError, program
from ._users import Account, UserError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import SandboxOptions

__all__ = ["LindConfig", "LindSandboxEnvironment"]

# The exit status that stands for a program that cannot be executed.
NOT_EXECUTABLE = 126


class LindConfig(BaseModel, frozen=True, extra="allow"):
    """The options of the sandboxes: the keywords of `lind.Sandbox`."""

    if TYPE_CHECKING:

        def __init__(self, **options: Unpack[SandboxOptions]) -> None: ...

    def options(self) -> dict[str, Any]:
        """As keywords."""
        return dict(self.model_extra or {})


@sandboxenv(name="lind")
class LindSandboxEnvironment(SandboxEnvironment):
    """A sandbox of a sample."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        super().__init__()
        self.sandbox = sandbox
        self._known: Account | None = None

    @classmethod
    async def sample_init(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Starts the sandbox of a sample."""
        if isinstance(config, str):
            config = cls.config_deserialize(yaml.safe_load(Path(config).read_text(encoding="utf-8")))
        elif config is not None and not isinstance(config, LindConfig):
            raise TypeError(f"sandbox: expected a LindConfig or a file, not a {type(config).__name__}")
        sandbox = AsyncSandbox(**(config.options() if config else {}))
        await sandbox.open()
        return {"default": cls(sandbox)}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: SandboxEnvironmentConfigType | None, environments: dict[str, SandboxEnvironment], interrupted: bool
    ) -> None:
        """Ends the sandbox of a sample."""
        for environment in environments.values():
            await environment.as_type(cls).sandbox.close()

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> LindConfig:
        """The options that a log or a file has."""
        return LindConfig(**config)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Runs a command."""
        most = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            words = cmd if user is None else await self._as_user(cmd, user)
            place = cwd if cwd is None or posixpath.isabs(cwd) else posixpath.join((await self._account()).directory, cwd)
            result = await self.sandbox.run(words, input=input, cwd=place, env=env, timeout=timeout, max_output=2 * most + 1)
        except CommandNotStarted as why:
            if why.status == NOT_EXECUTABLE:
                raise PermissionError(str(why)) from None
            return ExecResult(False, why.status, "", f"{why}\n")
        except SandboxError as why:
            raise SandboxUnavailableError(str(why)) from why
        if max(len(result.stdout_bytes), len(result.stderr_bytes)) > most:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, (result.stdout or result.stderr)[:most])
        return ExecResult(result.ok, result.exit_code, result.stdout, result.stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Writes a file, into the one that is there: its mode decides."""
        await self.sandbox.files.write(file, contents, parents=True, atomic=False)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """The contents of a file."""
        most = SandboxEnvironmentLimits.MAX_READ_FILE_SIZE
        contents = await self.sandbox.files.read(file, count=most + 1)
        if len(contents) > most:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        return contents.decode() if text else contents

    async def connection(self, *, user: str | None = None) -> SandboxConnection:
        """The command that opens a shell in the sandbox."""
        shell = ["bash"] if user is None else await self._as_user(["bash"], user)
        return SandboxConnection(type="lind", command=shlex.join([str(program()), "session", "exec", self.sandbox.name, "--", *shell]))

    def default_polling_interval(self) -> float:
        """Seconds between two looks at a service."""
        return 0.2

    async def _account(self) -> Account:
        if self._known is None:
            self._known = await Account.of(self.sandbox)
        return self._known

    async def _as_user(self, cmd: list[str], user: str) -> list[str]:
        try:
            return (await self._account()).words(cmd, user)
        except UserError as why:
            raise SandboxUserUnsupportedError(str(why)) from None
