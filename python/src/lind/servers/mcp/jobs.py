"""The commands that calls of tools have started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

import lind

from .output import Output

# How many commands run at the same time, and how many are known after their end.
RUNNING, KEPT = 32, 64
# For how many seconds altogether a command may wait for answers while its time does not run. A
# command could ask without end.
PAUSED = 600.0
ANSWER = 10.0


class TooMany(lind.LindError):
    """So many commands run that no other is started."""


@dataclass(eq=False)
class Job:
    """A command. `ended_by` is "timeout" or "killed" if the server has ended it, `note` why it was lost."""

    command: str
    process: lind.AsyncProcess
    output: Output
    timeout: float | None
    started: float
    paused: float
    result: lind.Result | None = None
    denials: tuple[lind.Denial, ...] = ()
    ended_by: str | None = None
    note: str | None = None
    seconds: float = 0.0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> int:
        """The number that the session has given it."""
        return self.process.id

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not self.ended.is_set()

    async def end(self, why: str) -> None:
        """Kills it, with all that it has started."""
        if self.running and self.ended_by is None:
            self.ended_by = why
            await self.process.close()


class Jobs:
    """The commands of a sandbox, by their numbers. `paused` says for how many seconds commands have waited for answers so far."""

    def __init__(self, sandbox: lind.AsyncSandbox, most: int, paused: Callable[[], float]) -> None:
        self._sandbox = sandbox
        self._most = most
        self._paused = paused
        self._jobs: dict[int, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, id: int) -> Job | None:
        """The command of a number."""
        return self._jobs.get(id)

    def running(self) -> list[Job]:
        """Those that have not ended."""
        return [job for job in self._jobs.values() if job.running]

    async def start(self, command: str, *, timeout: float | None, cwd: str | None, env: Mapping[str, str], stdin: str) -> Job:
        """Starts a command, for the sandbox's shell."""
        if len(self.running()) >= RUNNING:
            raise TooMany(f"{RUNNING} commands run already: wait for one, or end it with kill")
        process = await self._sandbox.start(command, cwd=cwd, env=env, stdin=bool(stdin))
        if stdin:
            process.feed(stdin.encode(errors="surrogateescape"))
        job = Job(command, process, Output(self._most), timeout, time.monotonic(), self._paused())
        self._jobs[job.id] = job
        for old in [other.id for other in self._jobs.values() if not other.running][:-KEPT]:
            del self._jobs[old]
        self._spawn(self._follow(job))
        return job

    def seconds(self, job: Job) -> float:
        """How long it has run, without the time in which it waited for answers."""
        if not job.running:
            return job.seconds
        return time.monotonic() - job.started - min(self._paused() - job.paused, PAUSED)

    async def close(self) -> None:
        """Ends all of them."""
        for job in self.running():
            await job.end("killed")
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        # The loop alone does not hold it.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _follow(self, job: Job) -> None:
        """Reads the output to its end. The command does not wait for clients."""
        timer = self._spawn(self._time(job, job.timeout)) if job.timeout is not None else None
        try:
            async for piece in job.process:
                job.output.add(piece.data)
            job.result = job.process.result
        except (lind.LindError, OSError) as why:
            if job.ended_by is None:
                job.ended_by, job.note = "not started" if isinstance(why, lind.CommandNotStarted) else "lost", str(why)
        finally:
            if timer is not None:
                timer.cancel()
            job.seconds = self.seconds(job)
            job.denials = job.result.denials if job.result is not None else await self._denials(job)
            job.ended.set()

    async def _time(self, job: Job, timeout: float) -> None:
        while (left := timeout - self.seconds(job)) > 0:
            await asyncio.sleep(max(left, 0.05))
        await job.end("timeout")

    async def _denials(self, job: Job) -> tuple[lind.Denial, ...]:
        """The denials of a command whose end was not told."""
        try:
            return tuple(await self._sandbox.denials(command=job.id, timeout=ANSWER))
        except (lind.LindError, OSError):
            return ()
