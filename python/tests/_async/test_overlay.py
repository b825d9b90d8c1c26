"""Changes in an overlay."""

from __future__ import annotations

from pathlib import Path

import pytest

from lind import ApplyError, AsyncSandbox, RequestError


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
        planned = await sandbox.apply(["new"], dry_run=True)
        assert planned.dry_run and not (project / "new").exists()
        applied = await sandbox.apply(["new"])
        assert [(change.kind, change.path, change.size) for change in applied.changes] == [("A", "new", 4)]
        assert (applied.refused, applied.finished, planned.changes) == ((), True, applied.changes)
        assert (project / "new").read_text() == "new\n"
        assert [(change.kind, change.path) for change in await sandbox.discard(["old"])] == [("D", "old")]
        assert (await sandbox.run("cat old", check=True)).stdout == "old\n"
        assert [change.path for change in await sandbox.diff()] == ["kept"]


async def test_changes_that_cannot_be_applied(project: Path) -> None:
    for name in ("both", "one"):
        (project / name).write_text("old\n")
    async with AsyncSandbox(volumes={".": "overlay"}) as sandbox:
        await sandbox.run("echo 1 >both; echo 1 >one", check=True)
        (project / "both").write_text("somebody else's\n")
        for dry_run in (False, True):
            try:
                applied = await sandbox.apply(dry_run=dry_run)
            except ApplyError as error:
                applied = error.applied
                assert "both: has been changed in the directory too" in str(error) and not dry_run
            assert [(refusal.change.path, refusal.why) for refusal in applied.refused] == [("both", "has been changed in the directory too")]
            assert applied.changes == () and (project / "one").read_text() == "old\n"
        assert [change.path for change in (await sandbox.apply(force=True)).changes] == ["both", "one"]
        assert (project / "both").read_text() == "1\n"
        with pytest.raises(RequestError) as caught:
            await sandbox.apply(["nothing"])
        assert "nothing" in str(caught.value)


async def test_snapshots(project: Path) -> None:
    async with AsyncSandbox(volumes={".": "overlay"}) as sandbox:
        await sandbox.run("echo 1 >file", check=True)
        first = await sandbox.snapshot()
        await sandbox.run("echo 2 >file; echo 3 >other", check=True)
        assert await sandbox.snapshot("second") == "second"
        assert await sandbox.rollback(first) == first
        assert (await sandbox.run("cat file; ls", check=True)).stdout == "1\nfile\n"
        await sandbox.rollback("second")
        assert (await sandbox.run("cat file other", check=True)).stdout == "2\n3\n"
        with pytest.raises(RequestError):
            await sandbox.rollback("none")


async def test_a_sandbox_without_overlay() -> None:
    async with AsyncSandbox() as sandbox:
        with pytest.raises(RequestError):
            await sandbox.diff()
