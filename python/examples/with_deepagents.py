"""A deep agent in a sandbox, with a model that says what was written beforehand. Put a real one in its place.

pip install 'lind-sandbox[deepagents]'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

import lind
from lind.adapters.deepagents import LindBackend


class Script(GenericFakeChatModel):
    """The model: it says these messages one after the other."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Script:
        return self


def call(name: str, **arguments: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name, "type": "tool_call"}])


MODEL = Script(
    messages=iter(
        [
            call("write_file", file_path="/tmp/numbers.txt", content="3\n1\n2\n"),
            call("execute", command="sort -n /tmp/numbers.txt | tee /tmp/sorted.txt"),
            AIMessage("The numbers are sorted."),
        ]
    )
)

with lind.Sandbox(memory="1G") as sandbox:
    agent = create_deep_agent(model=MODEL, backend=LindBackend(sandbox))
    for message in agent.invoke({"messages": [("user", "Sort 3, 1 and 2.")]})["messages"]:
        print(f"{message.type}: {message.content}" if message.content else f"{message.type}: calls {message.tool_calls[0]['name']}")
        assert not (isinstance(message, ToolMessage) and message.status == "error")
    assert sandbox.files.read_text("/tmp/sorted.txt") == "1\n2\n3\n"
