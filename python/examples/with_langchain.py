"""An agent of LangChain with a shell in a sandbox, and a model that says what was written beforehand. Put a real one in its place.

pip install 'lind-sandbox[langchain]'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

import lind
from lind.adapters.langchain import LindShell


class Script(GenericFakeChatModel):
    """The model: it says these messages one after the other."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Script:
        return self


CALL = {"name": "shell", "args": {"command": "seq 1 20 | awk '{ sum += $1 } END { print sum }'"}, "id": "1", "type": "tool_call"}
MODEL = Script(messages=iter([AIMessage("", tool_calls=[CALL]), AIMessage("The sum is 210.")]))

with lind.Sandbox(memory="1G") as sandbox:
    agent = create_agent(model=MODEL, tools=[LindShell(sandbox=sandbox)])
    messages = agent.invoke({"messages": [("user", "What is the sum of the numbers from 1 to 20?")]})["messages"]
    for message in messages:
        print(f"{message.type}: {message.content or 'calls shell'}")
    assert messages[2].content == "210\n"
