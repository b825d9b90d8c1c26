"""A `lind e2b` that tests ask, and the stock Python client of E2B pointed at it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def server(folder: Path, *words: str, state: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A server with these options, and the variables by which clients find it, as `lind e2b --env` prints them. `state` is where it keeps states of
    overlays."""
    file = f"--token-file={folder}/token"
    command = [sys.executable, "-m", "lind._cli", "e2b", file]
    env = os.environ | ({} if state is None else {"XDG_STATE_HOME": str(state)})
    with (folder / "log").open("w") as log, subprocess.Popen([*command, "--listen=127.0.0.1:0", *words], stdout=subprocess.PIPE, stderr=log, text=True, env=env) as running:
        try:
            assert running.stdout is not None
            where = running.stdout.readline().strip().removeprefix("lind e2b: http://")
            said = subprocess.run([*command, f"--listen={where}", "--env"], check=True, capture_output=True, text=True).stdout
            yield running, dict(re.findall(r"^export (\w+)=(\S+)$", said, re.MULTILINE))
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait(30)
    said = (folder / "log").read_text()
    assert "Traceback" not in said, said
    assert (folder / "token").read_text().strip() not in said


@contextmanager
def pointed(variables: dict[str, str]) -> Iterator[None]:
    """Points the client of this process at a server."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def refusal(request: urllib.request.Request | str) -> int:
    """The status with which a request is refused."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request)
    with caught.value as answer:
        assert json.load(answer)["code"] == answer.code
        return int(answer.code)


REACH = ": </dev/tcp/192.0.2.7/80"


def denied(sandbox: Any) -> bool:
    """Whether it may not reach a host. No host answers at the address."""
    from e2b import CommandExitException, TimeoutException

    with pytest.raises((CommandExitException, TimeoutException)) as caught:
        sandbox.commands.run(REACH, timeout=2)
    return "denied" in getattr(caught.value, "stderr", "")
