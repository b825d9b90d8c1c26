"""The executor of smolagents: the Python that an agent writes runs in a sandbox.

    with LindExecutor(volumes={"data": "ro"}) as executor:
        agent = CodeAgent(tools=[], model=..., executor=executor)

One interpreter runs all that an agent writes, so names and imports stay. The image of the sandbox needs `python3`.

>>> with LindExecutor(logger=AgentLogger(level=LogLevel.OFF)) as executor:
...     written = executor("number = 6; print('written')").logs
...     found = executor("number * 7").output
>>> written, found
('written\\n', '42')
"""

# mypy: disable-error-code="import-untyped", disallow-subclassing-any=False
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.tools import Tool
from smolagents.utils import AgentError

from .. import LindError, Process, Sandbox, TimeoutExpired

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self, Unpack

    from .._options import SandboxOptions

__all__ = ["LindExecutor"]

KERNEL = Path(__file__).with_name("_kernel.py")
# The most that an answer of the interpreter may have, in bytes.
MOST = 64 << 20
# How many bytes of what it says at its end are shown.
LAST = 2000
# It prints those of its arguments that cannot be imported.
MISSING = "import importlib.util as u, sys; print(*[n for n in sys.argv[1:] if u.find_spec({'pillow': 'PIL'}.get(n, n).partition('.')[0]) is None])"
# Sandboxes run no compiled code of others. A network that is denied does not come back.
PIP = ("--user", "--only-binary=:all:", "--retries=0", "--disable-pip-version-check")
# It makes an interpreter look again for packages.
FIND = "import importlib, site; site.addsitedir(site.getusersitepackages()); importlib.invalidate_caches()"


class LindExecutor(RemotePythonExecutor):
    """Runs Python in a sandbox of its own, which ends with `cleanup` or this object. Keywords that are not named here are those of `lind.Sandbox`."""

    def __init__(
        self,
        additional_imports: Sequence[str] = (),
        logger: AgentLogger | None = None,
        allow_pickle: bool = False,
        *,
        timeout: float | None = 300,
        **options: Unpack[SandboxOptions],
    ) -> None:
        """`timeout` are the seconds that a piece of code may take. Modules of `additional_imports` that the sandbox does not have are installed by pip."""
        super().__init__(list(additional_imports), logger or AgentLogger(level=LogLevel.INFO), allow_pickle)
        self.sandbox = Sandbox(**options)
        self._timeout = timeout
        self._reaches = bool(options.get("allow") or options.get("network"))
        self._interpreter: Process | None = None
        self._absent: set[str] = set()
        self._sends_tools = False
        try:
            self.installed_packages = self.install_packages(self.additional_imports)
            if self._absent:
                raise AgentError(f"The sandbox does not have {', '.join(sorted(self._absent))}, and cannot install it.", self.logger)
        except BaseException:
            self.cleanup()
            raise

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Runs a piece of code. Raises AgentError with its traceback if it raises."""
        if self._sends_tools:
            left_out = {f"import {name}" for name in self._absent}
            code = "\n".join(line for line in code.split("\n") if line not in left_out)
        try:
            told = self._ask(code)
        except TimeoutExpired as why:
            self._forget()
            raise AgentError(f"The code was ended after {why.timeout:g} seconds, and with it all that was imported and assigned.", self.logger) from None
        except (LindError, EOFError, ValueError, RecursionError) as why:
            self._forget()
            raise AgentError(f"The interpreter has ended, and with it all that was imported and assigned. {why}", self.logger) from None
        logs, raised = str(told.get("logs", "")), told.get("raised")
        if raised is None:
            return CodeOutput(output=told.get("value"), logs=logs, is_final_answer=False)
        if raised == self.FINAL_ANSWER_EXCEPTION:
            try:
                return CodeOutput(output=self._deserialize_final_answer(str(told.get("carried")), self.allow_pickle), logs=logs, is_final_answer=True)
            except RecursionError:
                raise AgentError("The final answer is nested too deeply.", self.logger) from None
        raise AgentError(f"{logs.rstrip()}\n{told.get('trace')}".strip(), self.logger)

    def send_tools(self, tools: dict[str, Tool]) -> None:
        """Defines tools. The framework imports in front each module that their code names, also if it can do without: the absent ones are left out."""
        self._sends_tools = True
        try:
            super().send_tools(tools)
        finally:
            self._sends_tools = False

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Installs those packages that cannot be imported, where the sandbox reaches a network. Failing is not an error: tools name modules that they
        can do without."""
        missing = self._missing(additional_imports)
        if missing and self._reaches:
            done = self.sandbox.run(["python3", "-m", "pip", "install", *PIP, *missing])
            self.logger.log(done.stdout + done.stderr)
            if self._interpreter is not None:
                self._ask(FIND)
            missing = self._missing(missing)
        self._absent.update("PIL" if name == "pillow" else name for name in missing)
        return additional_imports

    def _missing(self, packages: list[str]) -> list[str]:
        wanted = [name for name in packages if name != "*"]
        return self.sandbox.run(["python3", "-c", MISSING, *wanted], check=True).stdout.split() if wanted else []

    def cleanup(self) -> None:
        """Ends the sandbox."""
        self._forget()
        self.sandbox.close()

    def delete(self) -> None:
        """Ends the sandbox."""
        self.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.cleanup()

    def _ask(self, code: str) -> dict[str, Any]:
        """The answer of the interpreter to a piece of code. All of it is a claim, since the code may have written it."""
        if self._interpreter is None:
            self._interpreter = self.sandbox.start(["python3", "-c", KERNEL.read_text()])
        data = code.encode()
        self._interpreter.write(len(data).to_bytes(4, "big") + data, timeout=self._timeout)
        answer, errors, length = bytearray(), bytearray(), 4
        while len(answer) < length:
            piece = self._interpreter.read(self._timeout)
            if piece is None:
                raise EOFError(errors.decode(errors="replace"))
            (errors if piece.stream == "stderr" else answer).extend(piece.data)
            del errors[:-LAST]
            if length == 4 and len(answer) >= 4:
                length += int.from_bytes(answer[:4], "big")
                if length > MOST:
                    raise ValueError("It has answered too much.")
        told = json.loads(answer[4:length])
        if not isinstance(told, dict):
            raise ValueError("It has not answered as it should.")  # noqa: TRY004
        return told

    def _forget(self) -> None:
        """Ends the interpreter. The next piece of code gets another one."""
        if self._interpreter is not None:
            self._interpreter.close()
            self._interpreter = None
