"""The changes in the overlays of a sandbox."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .._deadline import Deadline
from .._reading import read_applied, read_differences
from .._runtime import program, why
from ..errors import ApplyError, RequestError, TimeoutExpired
from ..results import Applied, Difference
from ._io import execute
from .session import AsyncSession

Paths = Sequence[str | os.PathLike[str]]
Volume = str | os.PathLike[str] | None


class AsyncOverlays:
    """`lind-boot session diff` and the others: with the user's rights, and not from inside the sandbox."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def command(self, verb: str, volume: Volume, timeout: float | None, *words: str | os.PathLike[str], options: Sequence[str] = ()) -> str:
        """Runs one of the commands, and returns what it prints."""
        status, out, errors = await self._execute(verb, volume, timeout, words, options)
        if status != 0:
            raise RequestError(why(errors), status)
        return out

    async def _execute(self, verb: str, volume: Volume, timeout: float | None, words: Paths, options: Sequence[str]) -> tuple[int, str, str]:
        await self._session.open()
        seconds = self._session.options.request_timeout if timeout is None else timeout
        given = [*options, *([f"--volume={os.path.abspath(volume)}"] if volume is not None else [])]
        try:
            return await execute([str(program()), "session", verb, *given, "--", self._session.started.name, *words], Deadline(seconds))
        except TimeoutError:
            raise TimeoutExpired(verb, seconds) from None

    async def differences(self, paths: Paths, volume: Volume, timeout: float | None) -> list[Difference]:
        """The changes as objects."""
        return read_differences(await self.command("diff", volume, timeout, *paths, options=["--json"]))

    async def apply(self, paths: Paths, volume: Volume, timeout: float | None, options: Sequence[str]) -> Applied:
        """Applies changes."""
        status, out, errors = await self._execute("apply", volume, timeout, paths, ["--json", *options])
        if status != 0 and not out:
            raise RequestError(why(errors), status)
        applied = read_applied(out)
        if status != 0 and not applied.dry_run:
            raise ApplyError(why(errors), status, applied)
        return applied
