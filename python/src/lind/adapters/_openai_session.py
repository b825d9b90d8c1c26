"""A session of OpenAI's SDK in a sandbox: commands, files, and archives of the workspace."""

from __future__ import annotations

import asyncio
import io
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Literal, cast

from agents.sandbox.errors import (
    ExecTimeoutError,
    ExecTransportError,
    ExposedPortUnavailableError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.materialization import MaterializationResult
from agents.sandbox.session.runtime_helpers import RESOLVE_WORKSPACE_PATH_HELPER, RuntimeHelperScript
from agents.sandbox.session.sandbox_session_state import SandboxSessionState
from agents.sandbox.session.workspace_payloads import coerce_write_payload
from agents.sandbox.types import ExecResult, ExposedPortEndpoint, User
from agents.sandbox.util.tar_utils import UnsafeTarMemberError, should_skip_tar_member, strip_tar_member_prefix, validate_tarfile

import lind

from ._openai_terminals import TerminalSession

__all__ = ["LindSession", "LindSessionState"]

# The seconds that an archive of a workspace may take.
ARCHIVE = 600.0


class LindSessionState(SandboxSessionState):
    """The part of a session that is kept. A sandbox ends with its program, so a session is resumed in a new one, from its snapshot."""

    type: Literal["lind"] = "lind"


class LindSession(TerminalSession):
    """A session in a sandbox of its own. All commands are of one user."""

    state: LindSessionState

    def __init__(self, state: LindSessionState, sandbox: lind.AsyncSandbox) -> None:
        super().__init__()
        self.state = state
        self.sandbox = sandbox
        self._is_open = False

    @property
    def _root(self) -> str:
        return self.state.manifest.root

    async def _ensure_backend_started(self) -> None:
        await self.sandbox.open()
        self._is_open = True

    async def _prepare_backend_workspace(self) -> None:
        await self.sandbox.files.mkdir(self._root, parents=True, exist_ok=True)

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        return await self._validate_remote_path_access(path, for_write=for_write)

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    def _prepare_exec_command(self, *command: str | Path, shell: bool | list[str], user: str | User | None) -> list[str]:
        self._refuse(user)
        return super()._prepare_exec_command(*command, shell=shell, user=None)

    async def provision_manifest_accounts(self) -> None:
        """Refuses users and groups."""
        self._refuse(self.state.manifest.users or self.state.manifest.groups)

    async def _apply_manifest(self, *, only_ephemeral: bool = False, provision_accounts: bool = True) -> MaterializationResult:
        self._refuse(self.state.manifest.users or self.state.manifest.groups)
        return await super()._apply_manifest(only_ephemeral=only_ephemeral, provision_accounts=provision_accounts)

    @staticmethod
    def _refuse(users: object) -> None:
        if users:
            raise ValueError("all commands of a sandbox are of one user: name no users and groups")

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        words = [str(word) for word in command]
        try:
            done = await self.sandbox.run(words, timeout=timeout, cwd=self._root, env=await self.state.manifest.environment.resolve())
        except lind.TimeoutExpired as why:
            context = {"stdout": why.stdout, "stderr": why.stderr}
            raise ExecTimeoutError(command=command, timeout_s=timeout, context=context, cause=why) from why
        except lind.CommandNotStarted as why:
            return ExecResult(stdout=b"", stderr=f"{why}\n".encode(), exit_code=why.status)
        except lind.LindError as why:
            raise ExecTransportError(command=command, cause=why, message=str(why)) from why
        note = f"[{done.dropped} bytes of output were dropped]\n".encode() if done.dropped else b""
        return ExecResult(stdout=done.stdout_bytes, stderr=done.stderr_bytes + note, exit_code=done.exit_code)

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        """The bytes of a file."""
        self._refuse(user)
        return io.BytesIO(await self._read(path))

    async def _read_bounded(self, path: Path, *, max_bytes: int) -> bytes:
        return await self._read(path, max_bytes)

    async def _read(self, path: Path, count: int | None = None) -> bytes:
        inside = await self._validate_path_access(path)
        try:
            return await self.sandbox.files.read(inside, count=count)
        except lind.NotFoundError as why:
            raise WorkspaceReadNotFoundError(path=path, cause=why) from why
        except lind.FileError as why:
            raise WorkspaceArchiveReadError(path=path, cause=why) from why

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        """Writes a file whole, and makes the directories on the way."""
        self._refuse(user)
        await self._write(path, data, create=False)

    async def _write_new_file(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        self._refuse(user)
        await self._write(path, data, create=True)

    async def _write(self, path: Path, data: io.IOBase, *, create: bool) -> None:
        inside = await self._validate_path_access(path, for_write=True)
        content = coerce_write_payload(path=path, data=data).stream.read()
        try:
            await self.sandbox.files.write(inside, content, parents=True, create=create, atomic=create)
        except lind.ExistsError:
            raise
        except lind.FileError as why:
            raise WorkspaceArchiveWriteError(path=path, cause=why) from why

    async def running(self) -> bool:
        """Whether the sandbox is there."""
        if not self._is_open:
            return False
        try:
            await self.sandbox.commands(timeout=10)
        except lind.LindError:
            return False
        return True

    async def persist_workspace(self) -> io.IOBase:
        """A tar of the workspace, without what is ephemeral."""
        root = Path(self._root)
        skip = self._persist_workspace_skip_relpaths()
        try:
            with tempfile.TemporaryFile() as whole:
                await self.sandbox.files.tar(self._root, whole, timeout=ARCHIVE)
                whole.seek(0)
                return await asyncio.to_thread(_portable, whole, root, skip)
        except (lind.LindError, UnsafeTarMemberError, tarfile.TarError, OSError) as why:
            raise WorkspaceArchiveReadError(path=root, cause=why) from why

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """Makes the files of a tar in the workspace."""
        root = Path(self._root)
        try:
            with tempfile.TemporaryFile() as archive:
                shutil.copyfileobj(cast("Any", data), archive)
                archive.seek(0)
                with tarfile.open(fileobj=archive, mode="r:*") as tar:
                    validate_tarfile(tar, allow_external_symlink_targets=False)
                archive.seek(0)
                await self.sandbox.files.untar(self._root, archive, parents=True, timeout=ARCHIVE)
        except UnsafeTarMemberError as why:
            raise WorkspaceArchiveWriteError(path=root, context={"reason": why.reason, "member": why.member}, cause=why) from why
        except (lind.LindError, tarfile.TarError, OSError) as why:
            raise WorkspaceArchiveWriteError(path=root, cause=why) from why

    async def _shutdown_backend(self) -> None:
        self._is_open = False
        await self.sandbox.close()

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        if not self._is_open:
            raise ExposedPortUnavailableError(port=port, exposed_ports=self.state.exposed_ports, reason="backend_unavailable")
        return ExposedPortEndpoint(host="127.0.0.1", port=port, tls=False)


def _portable(whole: io.IOBase, root: Path, skip: set[Path]) -> io.IOBase:
    """The archive as snapshots have it: without what is to be skipped, pipes and devices, and with links that lead on where they are restored."""
    top = "workspace"
    with tempfile.TemporaryFile() as kept:
        with tarfile.open(fileobj=cast("Any", whole), mode="r:*") as source, tarfile.open(fileobj=kept, mode="w") as target:
            for member in source:
                if should_skip_tar_member(member.name, skip_rel_paths=skip, root_name=None):
                    continue
                member.name = f"{top}/{member.name}"
                member.pax_headers = {key: value for key, value in member.pax_headers.items() if key != "path"}
                target.addfile(member, source.extractfile(member) if member.isreg() else None)
        kept.seek(0)
        return strip_tar_member_prefix(cast("Any", kept), prefix=top, relativize_symlinks_under=root)
