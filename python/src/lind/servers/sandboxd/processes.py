"""The service process.v1.ProcessService: commands and terminals."""

from __future__ import annotations

import signal as signals
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from protobuf import Oneof

from ... import AsyncProcess, Output
from ...errors import RequestError
from ..core import Refusal
from . import process_v1_pb as pb
from .names import Tokens
from .paths import ROOT, confined
from .pod import COMMANDS, Box, Pod, Running
from .rpc import Context, Service, one

# The most bytes of output that wait for the ends of commands, of all sandboxes.
KEPT = 512 << 20
# The most columns and rows of a terminal, and its size unless the client says.
WIDEST, SIZE = 65_535, (80, 24)
SIGNALS = {pb.Signal.SIGINT: signals.SIGINT, pb.Signal.SIGTERM: signals.SIGTERM, pb.Signal.SIGKILL: signals.SIGKILL}


@dataclass
class Kept:
    """The output that waits for the ends of all commands, in bytes, and the most that there may be."""

    most: int
    now: int = 0

    @contextmanager
    def count(self) -> Iterator[Callable[[int], None]]:
        """Counts the output of one command, until that is answered."""
        mine = 0

        def add(count: int) -> None:
            nonlocal mine
            if self.now + count > self.most:
                raise Refusal(429, f"the server keeps {self.most} bytes of output already, and the command was killed: Start streams its output")
            mine += count
            self.now += count

        try:
            yield add
        finally:
            self.now -= mine


@dataclass(frozen=True)
class Limits:
    """The limits of a command that is answered when it has ended: the seconds that it runs, and the bytes that it writes."""

    seconds: float
    output: int
    kept: Kept


class Processes:
    """The methods of the service."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def service(self, pod: Pod, tokens: Tokens) -> Service:
        """The service."""
        made = Service("process.v1.ProcessService", pod, tokens)
        made.stream("Start", pb.StartRequest, self.start)
        made.unary("Execute", pb.ExecuteRequest, self.execute)
        made.unary("WriteStdin", pb.WriteStdinRequest, self.write)
        made.unary("SendSignal", pb.SendSignalRequest, self.signal)
        made.unary("ResizeTTY", pb.ResizeTTYRequest, self.resize)
        return made

    async def start(self, box: Box, request: pb.StartRequest, context: Context) -> AsyncIterator[pb.StartResponse]:
        """Runs a command, and tells what it does. It is killed when the client goes away."""
        terminal = _size(request.pty) if request.pty is not None else None
        process = await _begin(box, request.config, pty=terminal)
        async with process:
            with box.runs(process, terminal=terminal is not None) as number:
                yield pb.StartResponse(event=one("init", pb.InitEvent(process_id=number)))
                async for output in process:
                    yield _output(output)
                result = await process.wait()
            yield pb.StartResponse(event=one("exit", pb.ExitEvent(exit_code=result.exit_code)))

    async def execute(self, box: Box, request: pb.ExecuteRequest, context: Context) -> pb.ExecuteResponse:
        """Runs a command to its end."""
        code, kept = await run(box, request.config, self._limits)
        return pb.ExecuteResponse(exit_code=code, stdout=bytes(kept["stdout"]), stderr=bytes(kept["stderr"]))

    async def write(self, box: Box, request: pb.WriteStdinRequest, context: Context) -> pb.WriteStdinResponse:
        """Writes to the input of a command, or ends it."""
        running = box.find(request.process_id)
        payload: Any = request.payload
        match payload:
            case Oneof(field="input", value=data):
                await _alive(box, request.process_id, running, running.process.write(data))
            case Oneof(field="eof"):
                await _alive(box, request.process_id, running, running.process.close_stdin())
            case _:
                raise Refusal(400, "neither input nor its end")
        return pb.WriteStdinResponse()

    async def signal(self, box: Box, request: pb.SendSignalRequest, context: Context) -> pb.SendSignalResponse:
        """Sends a signal to a command and all in its process group."""
        running = box.find(request.process_id)
        number = SIGNALS.get(request.signal)
        if number is None:
            raise Refusal(400, "the signal has to be SIGINT, SIGTERM or SIGKILL")
        await running.process.signal(int(number), group=True)
        return pb.SendSignalResponse()

    async def resize(self, box: Box, request: pb.ResizeTTYRequest, context: Context) -> pb.ResizeTTYResponse:
        """Changes the size of a terminal."""
        running = box.find(request.process_id)
        if not running.terminal:
            raise Refusal(409, f"command {request.process_id} has no terminal")
        if not (0 < request.cols <= WIDEST and 0 < request.rows <= WIDEST):
            raise Refusal(400, f"a terminal has from 1 to {WIDEST} columns and rows")
        await _alive(box, request.process_id, running, running.process.resize(request.cols, request.rows))
        return pb.ResizeTTYResponse()


async def _alive(box: Box, number: int, running: Running, work: Any) -> None:
    """Does something to a command. The error is another if it has ended meanwhile."""
    try:
        await work
    except RequestError:
        if running.process.result is None and number in box.running:
            raise
        raise Refusal(404, f"command {number} has ended") from None


async def run(box: Box, config: pb.ProcessConfig | None, limits: Limits) -> tuple[int, dict[str, bytearray]]:
    """The status of a command, and what it has written. It is killed at a limit."""
    process = await _begin(box, config, stdin=False, seconds=limits.seconds)
    kept = {"stdout": bytearray(), "stderr": bytearray()}
    async with process:
        with limits.kept.count() as add, box.runs(process, terminal=False):
            async for output in process:
                add(len(output.data))
                kept[output.stream] += output.data
                if sum(map(len, kept.values())) > limits.output:
                    raise Refusal(429, f"the command has written more than {limits.output} bytes, and was killed: Start streams its output, and --max-output allows more")
            result = await process.wait()
    if result.timed_out is not None:
        raise Expired(f"the command was killed after {result.timed_out:g} seconds", kept)
    return result.exit_code, kept


class Expired(Refusal):
    """The time of a command was over. `kept` is what it had written."""

    def __init__(self, message: str, kept: dict[str, bytearray]) -> None:
        super().__init__(504, message)
        self.kept = kept


async def _begin(box: Box, config: pb.ProcessConfig | None, *, pty: tuple[int, int] | None = None, stdin: bool = True, seconds: float | None = None) -> AsyncProcess:
    """Starts a command of a client."""
    if config is None or not config.command:
        raise Refusal(400, "a command is missing")
    if any("\0" in word for word in config.command):
        raise Refusal(400, "a command with a null byte")
    for name, value in config.env_vars.items():
        if not name or "=" in name or "\0" in name + value:
            raise Refusal(400, "the name of a variable is not empty and has neither = nor a null byte, and its value no null byte")
    if len(box.running) >= COMMANDS:
        raise Refusal(429, f"{COMMANDS} commands of this sandbox run already")
    cwd = await confined(box.sandbox, config.cwd) if config.has_field("cwd") and config.cwd else ROOT
    return await box.sandbox.start(list(config.command), pty=pty, timeout=seconds, env=config.env_vars, cwd=cwd, stdin=stdin)


def _size(pty: pb.PTY) -> tuple[int, int]:
    """The size of a terminal that a client wants."""
    if not pty.cols or not pty.rows:
        return SIZE
    if pty.cols > WIDEST or pty.rows > WIDEST:
        raise Refusal(400, f"a terminal has from 1 to {WIDEST} columns and rows")
    return pty.cols, pty.rows


def _output(output: Output) -> pb.StartResponse:
    """A piece of output. A terminal has standard output alone."""
    return pb.StartResponse(event=one("stderr" if output.stream == "stderr" else "stdout", output.data))
