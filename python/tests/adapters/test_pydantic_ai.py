"""The workspace and the tools for Pydantic AI: the framework's tests of workspaces, and agents with scripted models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceOutputLimitError
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

import lind
from lind.adapters.pydantic_ai import LindWorkspace, lind_toolset

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def sandbox() -> AsyncIterator[lind.AsyncSandbox]:
    async with lind.AsyncSandbox() as sandbox:
        yield sandbox


class TestWorkspace(WorkspaceBackendSuite):
    """The tests that backends of workspaces have to pass."""

    @pytest.fixture
    async def backend(self, sandbox: lind.AsyncSandbox) -> WorkspaceBackend:
        return LindWorkspace(sandbox)

    @pytest.fixture
    async def fresh_backend(self) -> AsyncIterator[Callable[[], WorkspaceBackend]]:
        made: list[lind.AsyncSandbox] = []

        def make() -> WorkspaceBackend:
            made.append(lind.AsyncSandbox())
            return LindWorkspace(made[-1])

        yield make
        for sandbox in made:
            await sandbox.close()

    @pytest.fixture
    def destroy_environment(self) -> Callable[[WorkspaceBackend], Awaitable[None]]:
        async def destroy(backend: WorkspaceBackend) -> None:
            assert isinstance(backend, LindWorkspace)
            await backend.sandbox.close()

        return destroy


async def test_output_beyond_the_limit_is_an_error(sandbox: lind.AsyncSandbox) -> None:
    workspace = LindWorkspace(sandbox, max_output=100)
    with pytest.raises(WorkspaceOutputLimitError) as caught:
        await workspace.run("head -c 500 /dev/zero | tr '\\0' x", shell=True)
    assert caught.value.stdout == "x" * 100


async def test_tools_of_an_agent_use_the_workspace(sandbox: lind.AsyncSandbox) -> None:
    agent = Agent(TestModel())

    @agent.tool
    async def word_count(context: RunContext[None]) -> str:
        await context.workspace.write_text("words", "one two\n")
        return (await context.workspace.run(["wc", "-w", "words"])).stdout

    result = await agent.run("count", workspace=LindWorkspace(sandbox))
    assert "2 words" in result.output
    assert await sandbox.files.read_text("words") == "one two\n"


def script(*calls: ToolCallPart) -> FunctionModel:
    """A model that makes these calls, and then says what the last one returned."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        steps = sum(isinstance(message, ModelResponse) for message in messages)
        if steps < len(calls):
            return ModelResponse(parts=[calls[steps]])
        return ModelResponse(parts=[TextPart(str(messages[-1].parts[-1].content))])  # type: ignore[union-attr]

    return FunctionModel(answer)


async def test_all_tools_are_called(sandbox: lind.AsyncSandbox) -> None:
    model = TestModel()
    await Agent(model, toolsets=[lind_toolset(sandbox)], retries=5).run("use the tools")
    tools = model.last_model_request_parameters.function_tools  # type: ignore[union-attr]
    assert sorted(tool.name for tool in tools) == ["read_file", "run_command", "write_file"]
    assert all(tool.description and "sandbox" in tool.description for tool in tools)


async def test_a_scripted_agent_writes_runs_and_reads(sandbox: lind.AsyncSandbox) -> None:
    model = script(
        ToolCallPart("write_file", {"path": "notes/a.txt", "content": "b\na\n"}),
        ToolCallPart("run_command", {"command": "sort notes/a.txt >notes/b.txt; echo done; echo bad >&2; exit 3"}),
        ToolCallPart("read_file", {"path": "notes/b.txt"}),
    )
    result = await Agent(model, toolsets=[lind_toolset(sandbox)]).run("sort")
    returned = [part.content for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert returned == ["notes/a.txt is written", "done\nbad\n[exit status 3]", "a\nb\n"]
    assert result.output == "a\nb\n"


async def test_a_missing_file_is_told_to_the_model(sandbox: lind.AsyncSandbox) -> None:
    result = await Agent(script(ToolCallPart("read_file", {"path": "/nowhere"})), toolsets=[lind_toolset(sandbox)]).run("read")
    assert "/nowhere: No such file or directory" in result.output


async def test_a_command_that_takes_too_long_is_ended(sandbox: lind.AsyncSandbox) -> None:
    call = ToolCallPart("run_command", {"command": "echo begun; sleep 60", "timeout_seconds": 60})
    result = await Agent(script(call), toolsets=[lind_toolset(sandbox, timeout=1)]).run("wait")
    assert result.output == "begun\n[the command was ended after 1 seconds]"


async def test_the_middle_of_long_output_is_left_out(sandbox: lind.AsyncSandbox) -> None:
    call = ToolCallPart("run_command", {"command": "echo begin; head -c 100000 /dev/zero | tr '\\0' x; echo end"})
    result = await Agent(script(call), toolsets=[lind_toolset(sandbox, max_output=1000)]).run("print")
    assert result.output.startswith("begin\nx") and result.output.endswith("xend\n") and len(result.output) < 1100
    assert "[99010 bytes are left out here]" in result.output
