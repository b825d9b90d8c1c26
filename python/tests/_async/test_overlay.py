"""Changes in an overlay."""

from __future__ import annotations

from pathlib import Path

import pytest

from lind import AsyncSandbox, RequestError


async def test_changes_are_looked_at_and_applied(project: Path) -> None:
    (project / "old").write_text("old\n")
    (project / "kept").write_text("kept\n")
    async with AsyncSandbox(volumes={".": "overlay"}) as sandbox:
        assert await sandbox.diff() == []
        await sandbox.run("echo new >new; rm old; echo more >>kept", check=True)
        assert {(change.kind, change.path) for change in await sandbox.diff()} == {("A", "new"), ("D", "old"), ("M", "kept")}
        assert [(change.path, change.type, change.size) for change in await sandbox.diff(["new"])] == [("new", "file", 4)]
        assert "+more" in await sandbox.patch(["kept"])
        assert (project / "old").exists() and not (project / "new").exists()
        await sandbox.apply(["new"])
        assert (project / "new").read_text() == "new\n"
        await sandbox.discard(["old"])
        assert (await sandbox.run("cat old", check=True)).stdout == "old\n"
        assert [change.path for change in await sandbox.diff()] == ["kept"]


async def test_snapshots(project: Path) -> None:
    async with AsyncSandbox(volumes={".": "overlay"}) as sandbox:
        await sandbox.run("echo 1 >file", check=True)
        first = await sandbox.snapshot()
        await sandbox.run("echo 2 >file; echo 3 >other", check=True)
        assert await sandbox.snapshot("second") == "second"
        await sandbox.rollback(first)
        assert (await sandbox.run("cat file; ls", check=True)).stdout == "1\nfile\n"
        await sandbox.rollback("second")
        assert (await sandbox.run("cat file other", check=True)).stdout == "2\n3\n"
        with pytest.raises(RequestError):
            await sandbox.rollback("none")


async def test_a_sandbox_without_overlay() -> None:
    async with AsyncSandbox() as sandbox:
        with pytest.raises(RequestError):
            await sandbox.diff()
