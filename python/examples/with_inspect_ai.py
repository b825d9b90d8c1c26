"""An evaluation whose commands run in a sandbox. The model is scripted, so that no key is needed.

    pip install 'lind-sandbox[inspect]'
    python with_inspect_ai.py
"""

import sys
import tempfile
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import SandboxEnvironmentSpec

from lind.adapters.inspect_ai import LindConfig


def scripted(messages: list[ChatMessage], *_: Any) -> ModelOutput:
    """A model that looks, and then says what it has seen."""
    last = messages[-1]
    if last.role == "tool":
        output = ModelOutput.from_content("mockllm/model", f"The largest number is {last.text.strip()}.")
    else:
        output = ModelOutput.for_tool_call("mockllm/model", "bash", {"command": "sort -n numbers | tail -1"})
    # The framework would estimate it with a file from the network.
    output.usage = ModelUsage()
    return output


def task() -> Task:
    """One sample, with a file. Its commands reach no network and none of your files."""
    return Task(
        dataset=[Sample(input="What is the largest number in the file `numbers`?", target="41", files={"numbers": "7\n41\n12\n"})],
        solver=[use_tools(bash(timeout=60)), generate()],
        scorer=includes(),
        # `sandbox="lind"` is the same without options.
        sandbox=SandboxEnvironmentSpec("lind", LindConfig(memory="512M", cpu="60s")),
    )


def main() -> None:
    """Runs it, and shows what was said."""
    with tempfile.TemporaryDirectory() as logs:
        (log,) = eval(task(), model=get_model("mockllm/model", custom_outputs=scripted), log_dir=logs, display="none")
        if log.status != "success" or not log.samples or not log.results:
            sys.exit(f"the evaluation has failed: {log.error and log.error.message}")
        for message in log.samples[0].messages:
            print(f"{message.role}: {message.text.strip()}")
        accuracy = log.results.scores[0].metrics["accuracy"].value
    print("accuracy:", accuracy)
    sys.exit(accuracy != 1)


if __name__ == "__main__":
    main()
