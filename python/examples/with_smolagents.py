"""An agent of smolagents whose Python runs in a sandbox. The model is scripted, so that no key is needed.

    pip install 'lind-sandbox[smolagents]'
    python with_smolagents.py
"""

import csv
import sys
import tempfile
from pathlib import Path
from typing import Any

from smolagents import ChatMessage, CodeAgent, LogLevel, MessageRole, Model

from lind.adapters.smolagents import LindExecutor

SCRIPT = """\
Thought: I read the file.
<code>
import csv
rows = list(csv.DictReader(open("/data/sales.csv")))
print(rows)
</code>
---
Thought: I add what was sold.
<code>
final_answer(sum(int(row["sold"]) for row in rows))
</code>"""


class Scripted(Model):
    """A model that says one thing after the other."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(model_id="scripted")
        self.said = said

    def generate(self, messages: list[Any], **_: Any) -> ChatMessage:
        """The next."""
        return ChatMessage(role=MessageRole.ASSISTANT, content=self.said.pop(0))


def main() -> None:
    """The code sees one directory, read-only, and no network."""
    with tempfile.TemporaryDirectory() as folder:
        with Path(folder, "sales.csv").open("w") as file:
            csv.writer(file).writerows([("month", "sold"), ("May", 30), ("June", 12)])
        with LindExecutor(volumes={folder: "/data:ro"}, memory="1G", timeout=60) as executor:
            agent = CodeAgent(tools=[], model=Scripted(SCRIPT.split("---\n")), executor=executor, verbosity_level=LogLevel.ERROR)
            answer = agent.run("How much was sold?")
    print("answer:", answer)
    sys.exit(answer != 42)


if __name__ == "__main__":
    main()
