"""An agent of mini-swe-agent that mends a file, in a sandbox. The model is scripted, so that no key is needed.

    pip install 'lind-sandbox[mini-swe-agent]'
    python with_mini_swe_agent.py
"""

import tempfile
from pathlib import Path

from minisweagent.agents.default import DefaultAgent
from minisweagent.models.test_models import DeterministicModel, make_output

from lind.adapters.mini_swe_agent import LindEnvironment

SCRIPT = [
    make_output("I look at the file.", [{"command": "cat greet.sh; bash greet.sh"}]),
    make_output("There is a letter too few.", [{"command": "sed -i 's/helo/hello/' greet.sh && bash greet.sh"}]),
    make_output("It is mended.", [{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; bash greet.sh"}]),
]


def main() -> None:
    """Commands see the project, in an overlay: what they change is not written to your files."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        (project / "greet.sh").write_text("echo helo\n")
        with LindEnvironment(cwd="/project", sandbox={"volumes": {project: "/project:overlay"}}) as environment:
            agent = DefaultAgent(
                DeterministicModel(outputs=SCRIPT),
                environment,
                system_template="You work in a shell on {{system}} {{machine}}.",
                instance_template="{{task}}",
            )
            ended = agent.run("The greeting is not spelled well.")
            print(ended["exit_status"], ended["submission"].strip())
            print("in the sandbox:", environment.execute({"command": "cat greet.sh"})["output"].strip())
        print("on the host:", (project / "greet.sh").read_text().strip())


if __name__ == "__main__":
    main()
