"""Sandboxes for the agents of OpenAI's SDK.

    client = LindClient(allow=["pypi.org:443"], memory="2G")
    result = await Runner.run(agent, "...", run_config=RunConfig(sandbox=SandboxRunConfig(client=client)))

The client says what a sandbox may do. No manifest, and no state that is read back, changes it. A command in a session:

>>> import asyncio
>>> async def say() -> bytes:
...     async with await LindClient(memory="256M").create() as session:
...         return (await session.exec("echo hello")).stdout
>>> asyncio.run(say())
b'hello\\n'
"""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any, Literal

from agents.sandbox.manifest import Manifest
from agents.sandbox.session.manager import Instrumentation
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.session.sandbox_session import SandboxSession
from agents.sandbox.session.sandbox_session_state import SandboxSessionState
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot

import lind

from ._openai_session import LindSession, LindSessionState

if TYPE_CHECKING:
    from agents.sandbox.session.dependencies import Dependencies
    from typing_extensions import Unpack

    from .._options import SandboxOptions

__all__ = ["LindClient", "LindClientOptions", "LindSession", "LindSessionState"]

# The directories that every sandbox can write to.
IN_MEMORY = ("/tmp", "/home/user")


class LindClientOptions(BaseSandboxClientOptions):
    """The options of one session: ports of the host's 127.0.0.1 that lead to the same ports of the sandbox."""

    type: Literal["lind"] = "lind"
    exposed_ports: tuple[int, ...] = ()


class LindClient(BaseSandboxClient[LindClientOptions | None]):
    """Makes sessions, each in a sandbox of its own, with the options of `lind.AsyncSandbox`.

    The workspace is in memory, unless a volume is there: `volumes={".": "/workspace:overlay"}`.
    """

    backend_id = "lind"
    supports_default_options = True

    def __init__(self, *, instrumentation: Instrumentation | None = None, dependencies: Dependencies | None = None, **options: Unpack[SandboxOptions]) -> None:
        self._instrumentation = instrumentation or Instrumentation()
        self._dependencies = dependencies
        self._options = options

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: LindClientOptions | None = None,
    ) -> SandboxSession:
        """A new session, which is started when it is entered."""
        manifest = self._validate_manifest_for_create(manifest or Manifest())
        number = uuid.uuid4()
        ports = options.exposed_ports if options else ()
        return self._session(LindSessionState(session_id=number, manifest=manifest, snapshot=resolve_snapshot(snapshot, str(number)), exposed_ports=ports))

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        """A session in a new sandbox, whose workspace comes from the snapshot, or from the manifest if there is none."""
        if not isinstance(state, LindSessionState):
            raise TypeError(f"LindClient.resume: expected a LindSessionState, not {type(state).__name__}")
        state.assert_path_grants_rebound()
        state.workspace_root_ready = False
        return self._session(state)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        """Ends the sandbox of a session, if that has not been done."""
        inner = session._inner
        if not isinstance(inner, LindSession):
            raise TypeError(f"LindClient.delete: expected a session of this client, not {type(inner).__name__}")
        await inner.shutdown()
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        """The state that a session was kept as."""
        return self._deserialize_session_state_payload(payload, LindSessionState)

    def _session(self, state: LindSessionState) -> SandboxSession:
        options = dict(self._options)
        root = os.path.normpath(state.manifest.root)
        if not any(root == place or root.startswith(f"{place}/") for place in (*IN_MEMORY, *_places(self._options))):
            options["tmpfs"] = [*self._options.get("tmpfs", ()), root]
        options["publish"] = [*self._options.get("publish", ()), *(f"127.0.0.1:{port}:{port}" for port in state.exposed_ports)]
        sandbox: Any = lind.AsyncSandbox(**options)  # type: ignore[arg-type]
        return self._wrap_session(LindSession(state, sandbox), instrumentation=self._instrumentation)


def _places(options: SandboxOptions) -> list[str]:
    """Where volumes and other file systems in memory are mounted."""
    volumes = options.get("volumes", ())
    pairs = volumes.items() if hasattr(volumes, "items") else [(volume, "rw") for volume in volumes]
    named = [how if str(how).startswith("/") else os.path.abspath(host) for host, how in pairs]
    return [str(place).partition(":")[0] for place in (*named, *options.get("tmpfs", ()))]
