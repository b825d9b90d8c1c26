"""Runs tests that are coroutines, and gives docstrings' examples their names."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lind

BUILT = Path(__file__).resolve().parents[1] / "target" / "release" / "lind-boot"


def pytest_configure() -> None:
    """Tests take the runner of this checkout, unless LIND_BOOT or a wheel says otherwise."""
    if BUILT.exists():
        os.environ.setdefault("LIND_BOOT", str(BUILT))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def _names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["Sandbox"] = lind.Sandbox


def _sessions() -> set[Path]:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return {path for folder in (f"{runtime}/lind", f"/tmp/lind-{os.geteuid()}") for path in Path(folder).glob(f"python-{os.getpid()}-*")}


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No test leaves a sandbox."""
    yield
    limit = time.monotonic() + 10
    while left := _sessions():
        # A session that was interrupted while it started is removed by others.
        subprocess.run([lind.program(), "session", "ls"], check=False, capture_output=True)
        assert time.monotonic() < limit, left


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, in which the test is."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
