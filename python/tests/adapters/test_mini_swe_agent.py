"""The environment for mini-swe-agent. These are the questions of the framework's own tests to its environments in containers, and a few more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments import get_environment
from minisweagent.exceptions import Submitted
from minisweagent.models.test_models import DeterministicModel, make_output
from pydantic import ValidationError

import lind
from lind.adapters.mini_swe_agent import LindEnvironment, LindEnvironmentConfig

CLASS = "lind.adapters.mini_swe_agent.LindEnvironment"


@pytest.fixture(scope="module")
def env() -> Iterator[LindEnvironment]:
    with LindEnvironment() as environment:
        yield environment


def run(environment: LindEnvironment, command: str, **more: object) -> str:
    done = environment.execute({"command": command}, **more)  # type: ignore[arg-type]
    assert done["returncode"] == 0, done
    return str(done["output"])


def test_defaults_are_those_of_the_other_environments() -> None:
    config = LindEnvironmentConfig()
    assert (config.cwd, config.env, config.forward_env, config.timeout) == ("", {}, [], 30)


def test_the_framework_finds_it_by_its_name() -> None:
    environment = get_environment({"environment_class": CLASS, "timeout": 5})
    assert isinstance(environment, LindEnvironment)
    assert environment.config.timeout == 5


def test_an_option_that_it_does_not_know_is_an_error() -> None:
    with pytest.raises(ValidationError, match="image"):
        LindEnvironment(image="python:3.11")


def test_runs_a_command(env: LindEnvironment) -> None:
    assert env.execute({"command": "echo 'hello world'"}) == {"output": "hello world\n", "returncode": 0, "exception_info": ""}


@pytest.mark.parametrize(("command", "status"), [("true", 0), ("exit 1", 1), ("exit 42", 42), ("kill -9 $$", 137)])
def test_tells_the_exit_status(env: LindEnvironment, command: str, status: int) -> None:
    assert env.execute({"command": command})["returncode"] == status


def test_a_command_that_does_not_exist(env: LindEnvironment) -> None:
    done = env.execute({"command": "nonexistent_command_12345"})
    assert done["returncode"] == 127
    assert "nonexistent_command_12345: command not found" in done["output"]


def test_both_outputs_are_one_in_order(env: LindEnvironment) -> None:
    lines = [f"{number}\n" for number in range(200)]
    assert run(env, "for i in $(seq 0 2 198); do echo $i; echo $((i + 1)) >&2; done") == "".join(lines)


def test_output_that_is_not_text(env: LindEnvironment) -> None:
    assert run(env, r"printf 'a\377b\n'") == "a\ufffdb\n"


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_HOST", "host")
    monkeypatch.setenv("BOTH", "host")
    monkeypatch.setenv("SECRET", "not yours")
    with LindEnvironment(env={"BOTH": "config", "OWN": "two words"}, forward_env=["FROM_HOST", "BOTH", "NOT_THERE"]) as environment:
        assert run(environment, 'echo "$FROM_HOST,$BOTH,$OWN,[$NOT_THERE],[$SECRET]"') == "host,config,two words,[],[]\n"


def test_the_directory_of_a_command_goes_before_that_of_the_options() -> None:
    with LindEnvironment(cwd="/usr") as environment:
        assert run(environment, "pwd") == "/usr\n"
        assert run(environment, "pwd", cwd="/tmp") == "/tmp\n"


def test_a_directory_that_does_not_exist(env: LindEnvironment) -> None:
    done = env.execute({"command": "pwd"}, cwd="/not/there")
    assert done["returncode"] == -1
    assert "working directory /not/there: No such file" in done["exception_info"]


def test_a_command_that_takes_too_long(env: LindEnvironment) -> None:
    done = env.execute({"command": "echo begun; sleep 60; echo done"}, timeout=1)
    assert done["output"].startswith("begun\n")
    assert done["returncode"] == -1
    assert done["extra"]["exception_type"] == "TimeoutExpired"
    assert "1 seconds" in done["exception_info"]


def test_says_when_the_agent_is_done(env: LindEnvironment) -> None:
    with pytest.raises(Submitted) as raised:
        env.execute({"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo the answer"})
    assert raised.value.messages[-1]["extra"] == {"exit_status": "Submitted", "submission": "the answer\n"}
    env.execute({"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; false"})


def test_prompts_know_the_sandbox_and_not_the_host(env: LindEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "not yours")
    known = env.get_template_vars(task="this one")
    assert known["task"] == "this one"
    assert known["timeout"] == 30
    assert known["system"] == run(env, "uname -s").strip()
    assert known["machine"] == run(env, "uname -m").strip()
    assert "SECRET" not in known


def test_says_what_it_is(env: LindEnvironment) -> None:
    assert env.serialize()["info"]["config"]["environment_type"] == CLASS


def test_keeps_what_the_host_must_keep(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("old\n")
    with LindEnvironment(cwd="/project", sandbox={"volumes": {str(tmp_path): "/project:overlay"}}) as environment:
        assert run(environment, "echo new >kept; rm -rf /home/* 2>/dev/null; cat kept") == "new\n"
        assert environment.execute({"command": "cat /etc/shadow"})["returncode"] != 0
    assert (tmp_path / "kept").read_text() == "old\n"


def test_cleanup_ends_the_sandbox() -> None:
    environment = LindEnvironment()
    run(environment, "true")
    environment.cleanup()
    assert environment.execute({"command": "true"})["extra"]["exception_type"] == "SandboxError"
    with pytest.raises(lind.SandboxError):
        environment.sandbox.run("true")


def test_an_agent_with_the_configuration_of_the_framework(env: LindEnvironment) -> None:
    import minisweagent

    options = yaml.safe_load((minisweagent.package_dir / "config" / "default.yaml").read_text())["agent"]
    model = DeterministicModel(
        outputs=[
            make_output("I look first.", [{"command": "echo 6*7 | sed 's/*/ \\* /' | xargs expr"}]),
            make_output("That is it.", [{"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo 42"}]),
        ]
    )
    agent = DefaultAgent(model, env, **options)
    ended = agent.run("How much is 6 * 7?")
    assert (ended["exit_status"], ended["submission"]) == ("Submitted", "42\n")
    assert any(run(env, "uname -m").strip() in str(message["content"]) for message in agent.messages)
