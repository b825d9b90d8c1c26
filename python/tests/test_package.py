"""The package as a whole."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lind
from lind import Sandbox, SandboxError
from lind._options import Options

HERE = Path(__file__).resolve().parents[1]


def test_generated_files_are_current() -> None:
    subprocess.run([sys.executable, HERE / "generate.py", "--check"], check=True)


def test_all_names_are_there() -> None:
    assert all(hasattr(lind, name) for name in lind.__all__)
    assert (Path(lind.__file__).parent / "py.typed").exists()


# Tools of the tests of adapters, and those that run them.
OF_TESTS = {"docker", "hatchling", "langchain-tests", "pytest", "pytest-asyncio", "setuptools", "typing_extensions"}


def names(requirements: list[str]) -> set[str]:
    """The distributions that requirements name."""
    return {re.split(r"[^\w.-]", requirement)[0] for requirement in requirements}


def test_an_extra_installs_what_its_example_and_tests_import() -> None:
    project, tests = (HERE / "pyproject.toml").read_text(), HERE / "tests" / "adapters"
    extras = {name: names(re.findall(r'"(.+?)"', rest)) for name, rest in re.findall(r"^([\w-]+) = \[(.*)\]$", project.split("[project.optional-dependencies]")[1].split("\n[")[0], re.MULTILINE)}
    adapters = [path.stem for path in sorted(tests.glob("*.in")) if not path.stem.endswith(".sdist")]
    assert len(adapters) > 5
    for adapter in adapters:
        extra = "inspect" if adapter == "inspect_ai" else adapter.replace("_", "-")
        pinned = [line for line in (tests / f"{adapter}.in").read_text().splitlines() if not line.startswith("#")]
        assert extras[extra] == names(pinned) - OF_TESTS, adapter


def test_errors_are_one_tree() -> None:
    named = [getattr(lind, name) for name in lind.__all__]
    errors = [thing for thing in named if isinstance(thing, type) and issubclass(thing, BaseException)]
    assert len(errors) > 10 and all(issubclass(error, lind.LindError) for error in errors)
    assert issubclass(lind.DeniedError, PermissionError) and issubclass(lind.TimeoutExpired, TimeoutError)


def test_a_sandbox_that_cannot_start() -> None:
    for sandbox, part in (
        (Sandbox(policy="no-such-policy"), "no-such-policy"),
        (Sandbox(memory="much"), "must be a size"),
        (Sandbox(volumes={"/no/such": "rw"}), "/no/such"),
    ):
        with pytest.raises(SandboxError, match=part):
            sandbox.open()
    with pytest.raises(TypeError, match="unexpected keyword"):
        Sandbox(volume={".": "rw"})  # type: ignore[call-arg]
    for wrong in ({"volumes": "."}, {"allow": "example.org"}):
        with pytest.raises(TypeError, match="expected a"):
            Sandbox(**wrong).open()  # type: ignore[arg-type]


def test_a_sandbox_that_is_closed() -> None:
    sandbox = Sandbox()
    assert sandbox.run("echo first").ok
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run("true")
    Sandbox().close()


def test_a_sandbox_whose_session_has_ended() -> None:
    with Sandbox() as sandbox:
        process = sandbox.start("sleep 100")
        sandbox._session.ask(None, do="stop")
        with pytest.raises((SandboxError, AssertionError)):
            assert process.wait(timeout=20).signal is None
            sandbox.run("true")


def test_options_become_words() -> None:
    words = Options(volumes={"a": "/b:ro"}, allow=["x:1", "y"], memory=1 << 20, cpu=2, processes=3, idle=1.5, read_only=True, tmpfs=["/m:1M"]).words()
    assert words == ["--volume=a:/b:ro", "--allow=x:1", "--allow=y", "--tmpfs=/m:1M", "--idle=1500ms", "--memory=1048576B", "--cpu=2000ms", "--cages=3", "--read-only"]


def test_run() -> None:
    assert lind.run("cat", input="x", timeout=20, processes=8).stdout == "x"
    with pytest.raises(lind.CommandError):
        lind.run("exit 1", check=True)
