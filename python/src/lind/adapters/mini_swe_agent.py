"""The environment of mini-swe-agent: a sandbox in which its commands run.

In the configuration of an agent:

    environment:
      environment_class: lind.adapters.mini_swe_agent.LindEnvironment
      cwd: /project
      sandbox:
        volumes: {.: "/project:overlay"}
        allow: ["pypi.org:443"]

`sandbox` has the keywords of `lind.Sandbox`. A command of the agent:

>>> with LindEnvironment(sandbox={"memory": "256M"}) as environment:
...     done = environment.execute({"command": "echo hello; exit 3"})
>>> done["output"], done["returncode"]
('hello\\n', 3)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from minisweagent.environments.local import LocalEnvironment
from pydantic import BaseModel

from .. import LindError, Sandbox, TimeoutExpired

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["LindEnvironment", "LindEnvironmentConfig"]

# It makes one stream of both outputs, so that lines come in the order in which they were written.
JOIN = ["bash", "-c", 'exec "$@" 2>&1', "bash"]
# The names that templates of prompts have for the five parts of `uname`.
UNAME = {"system": "-s", "node": "-n", "release": "-r", "version": "-v", "machine": "-m"}


class LindEnvironmentConfig(BaseModel, extra="forbid"):
    """The options of the environment."""

    cwd: str = ""
    """The directory in which commands start: that of the sandbox, unless it is given."""
    env: dict[str, str] = {}
    """Variables of each command."""
    forward_env: list[str] = []
    """Names of variables that the host's environment may have and commands get; those of `env` go first."""
    timeout: int = 30
    """The seconds after which a command is killed."""
    interpreter: list[str] = ["bash", "-c"]
    """What runs a command, which is its last argument."""
    sandbox: dict[str, Any] = {}
    """The keywords of `lind.Sandbox`."""


class LindEnvironment(LocalEnvironment):
    """Runs commands in a sandbox of its own, which ends with `cleanup` or this object."""

    def __init__(self, *, config_class: type = LindEnvironmentConfig, **options: Any) -> None:
        super().__init__(config_class=config_class, **options)
        self.sandbox = Sandbox(**self.config.sandbox)
        self._uname: dict[str, str] = {}

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Runs the command of an action, and returns its output and its exit status. Raises Submitted when the agent says that it is done."""
        words = [*JOIN, *self.config.interpreter, action.get("command", "")]
        try:
            result = self.sandbox.run(words, cwd=cwd or self.config.cwd or None, env=self._env(), timeout=timeout or self.config.timeout)
            output = {"output": result.stdout, "returncode": result.exit_code, "exception_info": ""}
        except LindError as why:
            output = {
                "output": why.stdout if isinstance(why, TimeoutExpired) else "",
                "returncode": -1,
                "exception_info": f"An error occurred while executing the command: {why}",
                "extra": {"exception_type": type(why).__name__, "exception": str(why)},
            }
        self._check_finished(output)
        return output

    def get_template_vars(self, **extra: Any) -> dict[str, Any]:
        """The variables of prompts: the options, and the system as the sandbox shows it. No variable of the host's environment is one."""
        if not self._uname:
            asked = self.sandbox.run("; ".join(f"uname {option}" for option in UNAME.values()), check=True)
            self._uname = dict(zip(UNAME, asked.stdout.splitlines(), strict=True))
        return {**self.config.model_dump(), **self._uname, **extra}

    def cleanup(self) -> None:
        """Ends the sandbox."""
        self.sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.cleanup()

    def _env(self) -> dict[str, str]:
        forwarded = {name: os.environ[name] for name in self.config.forward_env if name in os.environ}
        return {**forwarded, **self.config.env}
