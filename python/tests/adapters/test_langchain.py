"""The tool for LangChain: the framework's own tests of tools, and an agent with a scripted model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

import lind
from lind.adapters.langchain import LindShell

SANDBOX = lind.Sandbox()


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    SANDBOX.close()


class Standard:
    """The parameters of the framework's tests."""

    @property
    def tool_constructor(self) -> type[BaseTool]:
        return LindShell

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"sandbox": SANDBOX}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"command": "echo hello", "timeout": 20}


class TestUnit(Standard, ToolsUnitTests):
    """The tests that need no sandbox."""


class TestIntegration(Standard, ToolsIntegrationTests):
    """The tests that run the tool."""


def call(command: str, tool: LindShell | None = None, **more: Any) -> ToolMessage:
    tool = tool or LindShell(sandbox=SANDBOX)
    message = tool.invoke({"name": tool.name, "args": {"command": command, **more}, "id": "1", "type": "tool_call"})
    assert isinstance(message, ToolMessage)
    return message


def test_the_model_gets_the_output_and_the_status() -> None:
    message = call("echo one; echo two >&2; exit 3")
    assert message.content == "one\ntwo\n[exit status 3]"
    assert (message.artifact.exit_code, message.artifact.stdout, message.artifact.stderr) == (3, "one\n", "two\n")
    assert message.status == "success"


def test_files_stay_from_one_command_to_the_next() -> None:
    call("echo kept >/tmp/kept")
    assert call("cat /tmp/kept").content == "kept\n"


def test_a_command_that_takes_too_long_is_ended() -> None:
    message = call("echo begun; sleep 60", timeout=1)
    assert message.content == "begun\n[the command was ended after 1 seconds]"
    assert isinstance(message.artifact, lind.TimeoutExpired)


def test_a_model_cannot_ask_for_more_time_than_there_is() -> None:
    message = call("sleep 60", LindShell(sandbox=SANDBOX, timeout=1), timeout=1000)
    assert "after 1 seconds" in str(message.content)


class Script(GenericFakeChatModel):
    """A model that says what was written beforehand."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Script:
        return self


def test_an_agent_uses_it() -> None:
    calls = [{"name": "shell", "args": {"command": "echo $((6 * 7))"}, "id": "1", "type": "tool_call"}]
    model = Script(messages=iter([AIMessage("", tool_calls=calls), AIMessage("It is 42.")]))
    agent = create_agent(model=model, tools=[LindShell(sandbox=SANDBOX)])
    messages = agent.invoke({"messages": [("user", "How much is 6 times 7?")]})["messages"]
    assert [message.content for message in messages if isinstance(message, ToolMessage)] == ["42\n"]
    assert messages[-1].content == "It is 42."
