"""A sandbox agent of OpenAI's SDK, with a model that does what was written beforehand. Leave `model` out for a real one.

pip install 'lind-sandbox[openai-agents]'
"""

from __future__ import annotations

import asyncio

from agents import RunConfig, Runner
from agents.sandbox import Manifest, SandboxAgent, SandboxRunConfig
from agents.sandbox.capabilities import Shell
from agents.sandbox.entries import File
from agents.testing import ScriptedModel, assistant_message, function_call

from lind.adapters.openai_agents import LindClient

MODEL = ScriptedModel(
    [
        [function_call("exec_command", {"cmd": "sort names.txt | tee sorted.txt"}, call_id="1")],
        [assistant_message("The names are sorted.")],
    ]
)


async def main() -> None:
    agent = SandboxAgent(
        name="clerk",
        model=MODEL,
        instructions="Work in the sandbox.",
        default_manifest=Manifest(entries={"names.txt": File(content=b"Eve\nAda\nBob\n")}),
        capabilities=[Shell()],
    )
    config = RunConfig(sandbox=SandboxRunConfig(client=LindClient(memory="1G")), tracing_disabled=True)
    result = await Runner.run(agent, "Sort the names.", run_config=config)
    for item in result.new_items:
        print(f"{item.type}: {getattr(item, 'output', '')}")
    assert "Ada\nBob\nEve" in str(result.new_items[1].output)  # type: ignore[union-attr]
    print(result.final_output)


asyncio.run(main())
