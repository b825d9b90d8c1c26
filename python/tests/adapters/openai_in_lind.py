"""A plugin of pytest: tests of OpenAI's SDK for sessions on the host are run with sessions in sandboxes instead.

The directory that holds a test's workspace is a volume, by its own name, so that the test can look at the files from outside. If a test puts
programs in front of those of the host, commands in the sandbox see these too.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from agents.sandbox import sandboxes
from agents.sandbox.manifest import Manifest
from agents.sandbox.sandboxes import unix_local
from agents.sandbox.session.sandbox_session import SandboxSession
from agents.sandbox.session.sandbox_session_state import SandboxSessionState
from agents.sandbox.types import User

import lind
from lind.adapters.openai_agents import LindClient, LindClientOptions, LindSession, LindSessionState

LOG = "SANDBOX_INTEGRATION_TOOL_LOG"


class State(LindSessionState):
    """A state with what the tests say of sessions on the host."""

    workspace_root_owned: bool = False


def sandbox(root: Path) -> lind.AsyncSandbox:
    """A sandbox for a workspace of the host."""
    volumes, env = {str(root.parent): "rw"}, {"HOME": str(root)}
    if LOG in os.environ:
        volumes[str(Path(os.environ[LOG]).parents[1])] = "rw"
        env |= {LOG: os.environ[LOG], "PATH": f"{os.environ['PATH'].partition(':')[0]}:/bin:/usr/bin"}
    # Skills are put into .agents, which the policy `agent` protects in volumes.
    return lind.AsyncSandbox(volumes=volumes, env=env, policy="build")


class Session(LindSession):
    """A session that can be made of a state alone."""

    def __init__(self, state: State) -> None:
        super().__init__(state, sandbox(Path(state.manifest.root)))

    def _prepare_exec_command(self, *command: str | Path, shell: bool | list[str], user: str | User | None) -> list[str]:
        # A session looks for programs in its image; `env` looks in PATH.
        return ["env", *super()._prepare_exec_command(*command, shell=shell, user=user)]

    @classmethod
    def from_state(cls, state: State) -> Session:
        return cls(state=state)


class Client(LindClient):
    """A client that makes a workspace on the host, where a manifest names none, and removes it."""

    backend_id = "unix_local"

    async def create(self, *, manifest: Manifest | None = None, **more: Any) -> SandboxSession:
        manifest = manifest or Manifest()
        owned = manifest.root == "/workspace"
        if owned:
            manifest = manifest.model_copy(update={"root": str(Path(tempfile.mkdtemp(), "workspace"))}, deep=True)
        session = await super().create(manifest=manifest, **more)
        assert isinstance(session.state, State)
        session.state.workspace_root_owned = owned
        return session

    def _session(self, state: LindSessionState) -> SandboxSession:
        known = State(**state.model_dump(exclude={"manifest", "snapshot", "type"}), manifest=state.manifest, snapshot=state.snapshot)
        return self._wrap_session(Session(known), instrumentation=self._instrumentation)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        await super().delete(session)
        if isinstance(session.state, State) and session.state.workspace_root_owned:
            shutil.rmtree(session.state.manifest.root, ignore_errors=True)
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, State)


# A command of a test names Python by the path that it has on the host.
sys.executable = "python3"
for module in (sandboxes, unix_local):
    module.UnixLocalSandboxClient = Client  # type: ignore[misc, assignment]
    module.UnixLocalSandboxClientOptions = LindClientOptions  # type: ignore[misc, assignment]
unix_local.UnixLocalSandboxSession = Session  # type: ignore[misc, assignment]
unix_local.UnixLocalSandboxSessionState = State  # type: ignore[misc, assignment]
