"""Dockerfiles, as far as a sandbox can follow them: their directories, variables, files and commands. Their base is not used."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser
from harbor.environments.base import BaseEnvironment, SandboxBuildFailedError

# Instructions for the start or the description of a container, which are not needed here.
UNUSED = {"ARG", "CMD", "COMMENT", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "LABEL", "MAINTAINER", "STOPSIGNAL", "VOLUME"}


class DockerfileError(ValueError):
    """A Dockerfile asks for what a sandbox does not have."""


@dataclass(frozen=True)
class Run:
    """A command, and where it runs."""

    command: str
    workdir: str
    env: dict[str, str]


@dataclass(frozen=True)
class Copy:
    """Files of the host, and the place that they get. A directory gets its contents there."""

    sources: list[Path]
    target: str
    is_folder: bool


@dataclass
class Recipe:
    """The contents of a Dockerfile."""

    workdir: str
    env: dict[str, str] = field(default_factory=dict)
    steps: list[Run | Copy] = field(default_factory=list)


def read(folder: Path, workdir: str) -> Recipe:
    """Reads the Dockerfile of a folder. Commands start in `workdir` until it names another directory."""
    recipe, stages = Recipe(workdir), 0
    for entry in DockerfileParser(path=str(folder / "Dockerfile")).structure:
        name, value = entry["instruction"].upper(), entry["value"].strip()
        if name == "FROM":
            stages += 1
            if stages > 1:
                raise DockerfileError(f"{folder}/Dockerfile: it has several stages, and a sandbox can follow one")
        elif name == "WORKDIR":
            recipe.workdir = posixpath.join(recipe.workdir, _filled(value, recipe.env))
        elif name == "ENV":
            recipe.env |= dict(_pairs(_filled(value, recipe.env)))
        elif name == "RUN":
            command = shlex.join(json.loads(value)) if value.startswith("[") else value
            recipe.steps.append(Run(command, recipe.workdir, dict(recipe.env)))
        elif name in {"COPY", "ADD"}:
            recipe.steps.append(_copy(folder, _filled(value, recipe.env), recipe.workdir))
        elif name != "USER" and name not in UNUSED:
            raise DockerfileError(f"{folder}/Dockerfile: {name} is not for a sandbox")
    return recipe


async def follow(steps: list[Run | Copy], environment: BaseEnvironment, skip_run: bool) -> None:
    """Carries out the steps in an environment that has been started."""
    for step in steps:
        if isinstance(step, Copy):
            for source in step.sources:
                if source.is_dir():
                    await environment.upload_dir(source, step.target)
                else:
                    await environment.upload_file(source, posixpath.join(step.target, source.name) if step.is_folder else step.target)
        elif skip_run:
            environment.logger.warning("Left out: RUN %s", step.command)
        else:
            result = await environment.exec(step.command, step.workdir, step.env, user="root")
            if result.return_code != 0:
                said = (result.stderr or result.stdout or "")[-2000:]
                raise SandboxBuildFailedError(f"RUN {step.command}: exit status {result.return_code}: {said}")


def _copy(folder: Path, value: str, workdir: str) -> Copy:
    words = json.loads(value) if value.startswith("[") else shlex.split(value)
    flags, words = [word for word in words if word.startswith("--")], [word for word in words if not word.startswith("--")]
    if any(flag.startswith("--from") for flag in flags) or any("://" in word for word in words):
        raise DockerfileError(f"{folder}/Dockerfile: a sandbox can copy files of its directory only, and not {value!r}")
    sources = [found for word in words[:-1] for found in sorted(folder.glob(word.strip("/") or "*"))]
    outside = [source for source in sources if not source.resolve().is_relative_to(folder.resolve())]
    if not sources or outside:
        raise DockerfileError(f"{folder}/Dockerfile: nothing in its directory is {value!r}")
    return Copy(sources, posixpath.join(workdir, words[-1]), words[-1].endswith(("/", ".")) or len(sources) > 1)


def _pairs(value: str) -> Iterator[tuple[str, str]]:
    words = shlex.split(value)
    if "=" not in words[0]:
        yield words[0], value.partition(" ")[2].strip()
        return
    for word in words:
        name, _, given = word.partition("=")
        yield name, given


def _filled(value: str, env: dict[str, str]) -> str:
    """A text with its variables."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: env.get(found[1] or found[2], ""), value)
