"""A trial of Harbor whose agent and tests run in a sandbox. The agent is scripted, so that no key is needed.

    pip install 'lind-sandbox[harbor]'
    python with_harbor.py

From the command line it is `harbor run -p TASK -a AGENT --env lind.adapters.harbor:LindEnvironment`.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

# Prices of models are not needed here, and not looked up.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from harbor.agents.base import BaseAgent
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

TASK = {
    "task.toml": 'version = "1.0"\n[environment]\nnetwork_mode = "no-network"\n',
    "instruction.md": "Sort the numbers in the file `numbers`, and write them to the file `sorted`.\n",
    "environment/Dockerfile": "FROM ubuntu:24.04\nWORKDIR /app\nCOPY numbers .\n",
    "environment/numbers": "12\n7\n41\n",
    "tests/test.sh": "#!/bin/bash\nprintf '7\\n12\\n41\\n' | cmp - sorted\necho $((1 - $?)) >/logs/verifier/reward.txt\n",
}


class Scripted(BaseAgent):
    """An agent that knows what to do."""

    @staticmethod
    def name() -> str:
        """Its name."""
        return "scripted"

    def version(self) -> str:
        """Its version."""
        return "1"

    async def setup(self, environment: BaseEnvironment) -> None:
        """Installs nothing."""

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Works on the task."""
        print("task:", instruction.strip())
        for command in ("cat numbers", "sort -n numbers >sorted; cat sorted"):
            result = await environment.exec(command)
            print(f"$ {command}\n{(result.stdout or '').strip()}")


async def main() -> None:
    """Runs the trial."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in TASK.items():
            file = Path(folder, "task", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        trial = await Trial.create(
            TrialConfig(
                task=TaskConfig(path=Path(folder, "task")),
                trials_dir=Path(folder, "trials"),
                agent=AgentConfig(import_path="__main__:Scripted"),
                environment=EnvironmentConfig(import_path="lind.adapters.harbor:LindEnvironment"),
            )
        )
        result = await trial.run()
    if result.exception_info or not result.verifier_result:
        sys.exit(f"the trial has failed: {result.exception_info}")
    print("rewards:", result.verifier_result.rewards)


if __name__ == "__main__":
    asyncio.run(main())
