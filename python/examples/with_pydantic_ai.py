"""An agent of Pydantic AI with tools in a sandbox, and a model that does what was written beforehand. Put a real one in its place.

pip install 'lind-sandbox[pydantic-ai]'
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import lind
from lind.adapters.pydantic_ai import LindWorkspace, lind_toolset

CALLS = [
    ToolCallPart("write_file", {"path": "poem.txt", "content": "roses are red\nviolets are blue\n"}),
    ToolCallPart("run_command", {"command": "wc -w <poem.txt"}),
]


def script(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """The model: it makes the calls, and then says what the last one returned."""
    done = sum(isinstance(message, ModelResponse) for message in messages)
    if done < len(CALLS):
        return ModelResponse(parts=[CALLS[done]])
    words = getattr(messages[-1].parts[-1], "content", "")
    return ModelResponse(parts=[TextPart(f"The poem has {words.strip()} words.")])


async def main() -> None:
    async with lind.AsyncSandbox(memory="1G") as sandbox:
        agent = Agent(FunctionModel(script), toolsets=[lind_toolset(sandbox)])
        result = await agent.run("Write a poem, and count its words.", workspace=LindWorkspace(sandbox))
        print(result.output)
        assert result.output == "The poem has 6 words."


asyncio.run(main())
