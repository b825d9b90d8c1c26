"""The executor for smolagents: what the framework's tests ask of its executor in a container, what its base class promises, and an agent."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import types
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from smolagents import ChatMessage, CodeAgent, FinalAnswerTool, MessageRole, Model, tool
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.serialization import SerializationError
from smolagents.utils import AgentError

import lind
from lind.adapters.smolagents import LindExecutor

QUIET = AgentLogger(level=LogLevel.OFF)


def of_the_framework() -> types.ModuleType:
    """The framework's tests of its executors. Its archive leaves out the module that marks those which need more than it brings."""
    source = Path(os.environ["LIND_TEST_SOURCES"], "tests", "test_remote_executors.py")
    markers = types.ModuleType("theirs.utils.markers")
    markers.require_run_all = pytest.mark.skip  # type: ignore[attr-defined]
    sys.modules[markers.__name__] = markers
    spec = importlib.util.spec_from_file_location("theirs.test_remote_executors", source)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestStandard(of_the_framework().CommonDockerExecutorIntegration):  # type: ignore[misc]
    """The tests of the executors that run a Python elsewhere."""

    @pytest.fixture
    def custom_executor(self) -> Iterator[LindExecutor]:
        with LindExecutor(logger=QUIET) as executor:
            yield executor

    @pytest.mark.xfail(strict=True, reason="it needs numpy, which the image does not have")
    def test_state_persistence(self) -> None:
        super().test_state_persistence()

    @pytest.mark.xfail(strict=True, reason="it needs Pillow, which the image does not have")
    def test_execute_image_output(self) -> None:
        super().test_execute_image_output()


@pytest.fixture(scope="module")
def shared() -> Iterator[LindExecutor]:
    with LindExecutor(logger=QUIET) as executor:
        executor.send_tools({"final_answer": FinalAnswerTool()})
        yield executor


@pytest.fixture
def executor(shared: LindExecutor) -> LindExecutor:
    return shared


def test_state_persistence(executor: LindExecutor) -> None:
    executor("import math; a = 2\ndef twice(x): return 2 * x")
    done = executor("print(math.sqrt(a))\ntwice(a)")
    assert (done.output, done.logs, done.is_final_answer) == ("4", "1.4142135623730951\n", False)
    assert executor("a = 3").output is None


def test_execute_output(executor: LindExecutor) -> None:
    done = executor('print("so:")\nfinal_answer("This is the final answer")')
    assert (done.output, done.logs, done.is_final_answer) == ("This is the final answer", "so:\n", True)


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None]}, (1, 2), {1, 2}, b"\0\xff", "\u00fc\u2713", 10**30, 1 + 2j])
def test_final_answers_keep_their_kind(executor: LindExecutor, value: object) -> None:
    assert executor(f"final_answer({value!r})").output == value


def test_a_final_answer_that_cannot_be_told_is_an_error(executor: LindExecutor) -> None:
    with pytest.raises(AgentError, match="Cannot safely serialize object of type Own"):
        executor("class Own: pass\nfinal_answer(Own())")


def test_syntax_error_handling(executor: LindExecutor) -> None:
    with pytest.raises(AgentError, match="SyntaxError: unterminated string"):
        executor('print("Missing Parenthesis')


def test_errors_have_what_was_written_and_the_lines_of_the_code(executor: LindExecutor) -> None:
    with pytest.raises(AgentError) as raised:
        executor("print('before')\ndef f():\n    return 1 / 0\nf()")
    said = str(raised.value)
    assert said.startswith("before\nTraceback")
    assert "return 1 / 0" in said
    assert said.endswith("ZeroDivisionError: division by zero")
    assert "_kernel" not in said


@pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "raise KeyboardInterrupt", "input()"])
def test_what_ends_a_program_does_not_end_the_interpreter(executor: LindExecutor, code: str) -> None:
    executor("kept = 5")
    with pytest.raises(AgentError):
        executor(code)
    assert executor("kept").output == "5"


def test_output_of_programs_and_of_both_streams_is_in_the_logs(executor: LindExecutor) -> None:
    done = executor("import subprocess, sys\nprint('one')\nsubprocess.run(['sh', '-c', 'echo two; echo three >&2'])\nprint('four', file=sys.stderr)")
    assert done.logs == "one\ntwo\nthree\nfour\n"


def test_long_output_is_cut(executor: LindExecutor) -> None:
    logs = executor("print('x' * (3 << 20))").logs
    assert len(logs) < 2 << 20
    assert "more bytes]" in logs
    assert executor("print('y')").logs == "y\n"


def test_send_variables(executor: LindExecutor) -> None:
    executor.send_variables({"name": "lind", "when": date(2026, 11, 29), "points": {1: (2, 3)}})
    assert executor("(name, when.year, points)").output == "('lind', 2026, {1: (2, 3)})"
    with pytest.raises(SerializationError):
        executor.send_variables({"own": object()})


def test_send_tools(executor: LindExecutor) -> None:
    @tool
    def shout(text: str) -> str:
        """Says it loudly.

        Args:
            text: The text to say.
        """
        return text.upper() + "!"

    executor.send_tools({"shout": shout})
    assert executor("shout('hi')").output == "'HI!'"


def test_a_pickle_is_taken_only_where_that_is_allowed(executor: LindExecutor) -> None:
    code = "class FinalAnswerException(BaseException):\n    value = 'pickle:gASVCQAAAAAAAABLKi4='\nraise FinalAnswerException"
    with pytest.raises(SerializationError, match="Pickle data rejected"):
        executor(code)


def test_code_that_takes_too_long_is_ended() -> None:
    with LindExecutor(logger=QUIET, timeout=3) as executor:
        executor("a = 1")
        with pytest.raises(AgentError, match="ended after 3 seconds"):
            executor("while True: pass")
        with pytest.raises(AgentError, match="NameError: name 'a'"):
            executor("a")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os; os.kill(os.getpid(), 9)", "The interpreter has ended"),
        ("import os; os._exit(0)", "The interpreter has ended"),
        # The answer of a sandbox is a claim.
        ("import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'\\xff\\xff\\xff\\xff')\n  except OSError: pass", "answered too much"),
        ("import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'\\0\\0\\0\\x02[]')\n  except OSError: pass", "not answered as it should"),
        ("import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'\\0\\0\\0\\x02{{')\n  except OSError: pass", "The interpreter has ended"),
        ("import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'\\0\\x01\\0\\0' + b'[' * 65536)\n  except OSError: pass", "The interpreter has ended"),
    ],
)
def test_an_interpreter_that_is_gone_or_lies_is_replaced(executor: LindExecutor, code: str, why: str) -> None:
    with pytest.raises(AgentError, match=why):
        executor(code)
    assert executor("6 * 7").output == "42"


def test_an_answer_that_is_nested_deeply_is_an_error_of_the_code(executor: LindExecutor) -> None:
    code = "class FinalAnswerException(Exception): value = 'safe:' + '[' * 100_000\nraise FinalAnswerException"
    with pytest.raises(AgentError, match="nested too deeply"):
        executor(code)


def test_modules_of_the_library_need_no_installation_and_others_do() -> None:
    with LindExecutor(["json", "os.path", "*"], QUIET) as executor:
        assert executor.installed_packages == ["json", "os.path", "*"]
    for reach in ([], ["127.0.0.1:9"]):
        with pytest.raises(AgentError, match="does not have not-a-package-of-the-image, and cannot install it"):
            LindExecutor(["not-a-package-of-the-image"], QUIET, allow=reach)


def test_packages_are_installed_from_an_index_and_what_was_assigned_stays(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "tiny_lind-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_lind.py", "answer = 42\n")
        for name, text in (("METADATA", "Metadata-Version: 2.1\nName: tiny-lind\nVersion: 1\n"), ("WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n"), ("RECORD", "")):
            wheel.writestr(f"tiny_lind-1.dist-info/{name}", text)
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
    with LindExecutor(logger=QUIET, volumes={str(tmp_path): "/wheels:ro"}, env=env, allow=["127.0.0.1:9"]) as executor:
        executor("kept = 5")
        executor.install_packages(["tiny_lind"])
        assert executor("import tiny_lind; tiny_lind.answer + kept").output == "47"


def test_the_code_sees_what_the_sandbox_may_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "not yours")
    (tmp_path / "data.json").write_text(json.dumps([1, 2, 3]))
    with LindExecutor(logger=QUIET, volumes={str(tmp_path): "/data:ro"}) as executor:
        assert executor("import json, os; sum(json.load(open('/data/data.json')))").output == "6"
        assert executor("os.environ.get('SECRET')").output is None
        with pytest.raises(AgentError, match="Read-only file system"):
            executor("open('/data/new', 'w')")
        with pytest.raises(AgentError, match="No such file"):
            executor(f"open({str(Path(__file__))!r})")


def test_cleanup_on_deletion() -> None:
    executor = LindExecutor(logger=QUIET)
    executor("a = 1")
    name = executor.sandbox.name
    executor.delete()
    assert not list(Path(f"/tmp/lind-{os.geteuid()}").glob(f"{name}*"))
    with pytest.raises(AgentError, match="the sandbox is closed"):
        executor("a")
    with pytest.raises(lind.SandboxError):
        executor.sandbox.run("true")


class Scripted(Model):
    """A model that says one thing after the other."""

    def __init__(self, *said: str) -> None:
        super().__init__(model_id="scripted")
        self.said = list(said)
        self.heard: list[Any] = []

    def generate(self, messages: list[Any], **_: Any) -> ChatMessage:
        self.heard.append(messages)
        return ChatMessage(role=MessageRole.ASSISTANT, content=self.said.pop(0))


def test_an_agent() -> None:
    model = Scripted(
        "Thought: I add.\n<code>\ntotal = sum(numbers)\nprint('total', total)\n</code>",
        "Thought: a mistake.\n<code>\ntotl + 1\n</code>",
        "Thought: now.\n<code>\nfinal_answer(total * 2)\n</code>",
    )
    with LindExecutor(logger=QUIET) as executor:
        agent = CodeAgent(tools=[], model=model, executor=executor, verbosity_level=LogLevel.OFF)
        assert agent.run("Twice the sum?", additional_args={"numbers": [1, 2, 3]}) == 12
    assert "total 6" in str(model.heard[1])
    assert "NameError" in str(model.heard[2])
