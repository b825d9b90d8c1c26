"""The service process.Process: commands and terminals."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeVar

from connectrpc.code import Code
from connectrpc.errors import ConnectError
from connectrpc.request import RequestContext
from protobuf import Oneof

from ... import Output, Result
from ..core import Refusal
from . import process_pb as pb
from .box import HOME, Box
from .commands import Command, Follower, Left
from .connect import Service, one, silence

T = TypeVar("T", pb.StartResponse, pb.ConnectResponse)
# How many commands of a sandbox may run at once that clients have started.
COMMANDS = 1000
NAMES = {1: "hangup", 2: "interrupt", 3: "quit", 6: "aborted", 9: "killed", 11: "segmentation fault", 13: "broken pipe", 15: "terminated"}


def service(boxes: Callable[[str], Box]) -> Service:
    """The service, for the sandboxes that `boxes` finds by their ids."""
    made = Service("process.Process", boxes)
    made.unary("List", pb.ListRequest, pb.ListResponse, _list)
    made.stream("Start", pb.StartRequest, pb.StartResponse, _start)
    made.stream("Connect", pb.ConnectRequest, pb.ConnectResponse, _connect)
    made.unary("Update", pb.UpdateRequest, pb.UpdateResponse, _update)
    made.unary("SendInput", pb.SendInputRequest, pb.SendInputResponse, _send_input)
    made.input("StreamInput", pb.StreamInputRequest, pb.StreamInputResponse, _stream_input)
    made.unary("SendSignal", pb.SendSignalRequest, pb.SendSignalResponse, _send_signal)
    made.unary("CloseStdin", pb.CloseStdinRequest, pb.CloseStdinResponse, _close_stdin)
    return made


async def _find(box: Box, selector: pb.ProcessSelector | None) -> Command:
    await box.running()
    wanted: Any = selector.selector if selector is not None else None
    found: Command | None = None
    match wanted:
        case Oneof(field="pid", value=pid):
            found = box.commands.get(pid)
        case Oneof(field="tag", value=tag):
            found = next((command for command in box.commands.values() if command.tag == tag), None)
    if found is None:
        raise Refusal(404, f"no command runs that clients of this sandbox know as {wanted.value if wanted is not None else None!r}")
    return found


async def _list(box: Box, request: pb.ListRequest) -> pb.ListResponse:
    await box.running()
    return pb.ListResponse(processes=[
        pb.ProcessInfo(pid=command.pid, tag=command.tag, config=pb.ProcessConfig(cmd=command.words[0], args=command.words[1:], envs=command.envs, cwd=command.cwd))
        for command in box.commands.values()])


async def _start(box: Box, request: pb.StartRequest, context: RequestContext[Any, Any]) -> AsyncIterator[pb.StartResponse]:
    sandbox, config = await box.running(), request.process
    if config is None or not config.cmd:
        raise Refusal(400, "a command without a program")
    if len(box.commands) >= COMMANDS:
        raise Refusal(429, f"{COMMANDS} commands of this sandbox run already")
    size = request.pty.size if request.pty is not None else None
    terminal = request.pty is not None
    words, cwd = [config.cmd, *config.args], config.cwd if config.has_field("cwd") else None
    tag = request.tag if request.has_field("tag") else None
    left = context.timeout_ms
    process = await sandbox.start(
        words,
        pty=((size.cols, size.rows) if size is not None and size.cols and size.rows else (80, 24)) if terminal else None,
        timeout=None if left is None else left / 1000,
        env={**box.envs, **config.envs},
        cwd=_inside(cwd),
        stdin=terminal or not request.has_field("stdin") or request.stdin,
    )
    command = Command(process, words, dict(config.envs), cwd, tag, terminal=terminal)
    box.commands[command.pid] = command
    follower = command.follow()
    command.begin(lambda gone: box.commands.pop(gone.pid))
    async for message in _events(command, follower, silence(context), pb.StartResponse):
        yield message


async def _connect(box: Box, request: pb.ConnectRequest, context: RequestContext[Any, Any]) -> AsyncIterator[pb.ConnectResponse]:
    command = await _find(box, request.process)
    async for message in _events(command, command.follow(), silence(context), pb.ConnectResponse):
        yield message


async def _events(command: Command, follower: Follower, seconds: float, kind: type[T]) -> AsyncIterator[T]:
    """The messages that say what a command does, up to its end."""
    with contextlib.closing(follower):
        wrap = partial(_wrap, kind)
        yield wrap(one("start", pb.ProcessEvent.StartEvent(pid=command.pid)))
        while True:
            match await follower.next(seconds):
                case None:
                    yield wrap(one("keepalive", pb.ProcessEvent.KeepAlive()))
                case Output(stream="stdout", data=data):
                    yield wrap(one("data", pb.ProcessEvent.DataEvent(output=one("stdout", data))))
                case Output(stream="stderr", data=data):
                    yield wrap(one("data", pb.ProcessEvent.DataEvent(output=one("stderr", data))))
                case Output(data=data):
                    yield wrap(one("data", pb.ProcessEvent.DataEvent(output=one("pty", data))))
                case Left(why=why, not_started=not_started):
                    raise ConnectError(Code.INVALID_ARGUMENT if not_started else Code.UNAVAILABLE, why)
                case Result() as result:
                    if result.timed_out is not None:
                        raise ConnectError(Code.DEADLINE_EXCEEDED, f"the command was killed after {result.timed_out:g} seconds")
                    yield wrap(one("end", _end(result)))
                    return


def _wrap(kind: type[T], event: Any) -> T:
    return kind(event=pb.ProcessEvent(event=event))


def _end(result: Result) -> pb.ProcessEvent.EndEvent:
    if result.signal is None:
        status = f"exit status {result.exit_code}"
        return pb.ProcessEvent.EndEvent(exit_code=result.exit_code, exited=True, status=status, error=status if result.exit_code else None)
    status = f"signal: {NAMES.get(result.signal, result.signal)}"
    return pb.ProcessEvent.EndEvent(exit_code=-1, exited=False, status=status, error=status)


async def _update(box: Box, request: pb.UpdateRequest) -> pb.UpdateResponse:
    command = await _find(box, request.process)
    size = request.pty.size if request.pty is not None else None
    if size is None or not command.terminal:
        raise Refusal(400, "a size is needed, and a command with a terminal")
    await command.process.resize(size.cols, size.rows)
    return pb.UpdateResponse()


async def _type(command: Command, given: pb.ProcessInput | None) -> None:
    match given.input if given is not None else None:
        case Oneof(field="stdin", value=data) if not command.terminal:
            await command.process.write(data)
        case Oneof(field="pty", value=data) if command.terminal:
            await command.process.write(data)
        case _:
            raise Refusal(400, "input for a terminal goes to commands with a terminal, and standard input to others")


async def _send_input(box: Box, request: pb.SendInputRequest) -> pb.SendInputResponse:
    await _type(await _find(box, request.process), request.input)
    return pb.SendInputResponse()


async def _stream_input(box: Box, requests: AsyncIterator[pb.StreamInputRequest]) -> pb.StreamInputResponse:
    command: Command | None = None
    async for request in requests:
        event: Any = request.event
        match event:
            case Oneof(field="start", value=start):
                command = await _find(box, start.process)
            case Oneof(field="data", value=data):
                if command is None:
                    raise Refusal(400, "input before a command is named")
                await _type(command, data.input)
    return pb.StreamInputResponse()


async def _send_signal(box: Box, request: pb.SendSignalRequest) -> pb.SendSignalResponse:
    command = await _find(box, request.process)
    if request.signal not in (pb.Signal.SIGTERM, pb.Signal.SIGKILL):
        raise Refusal(400, "the signal has to be SIGTERM or SIGKILL")
    await command.process.signal(int(request.signal))
    return pb.SendSignalResponse()


async def _close_stdin(box: Box, request: pb.CloseStdinRequest) -> pb.CloseStdinResponse:
    command = await _find(box, request.process)
    if command.terminal:
        raise Refusal(400, "a terminal takes ^D as input")
    await command.process.close_stdin()
    return pb.CloseStdinResponse()


def _inside(cwd: str | None) -> str:
    """The directory that a client means."""
    if cwd is None or cwd in ("", "~"):
        return HOME
    return f"{HOME}/{cwd.removeprefix('~/')}" if not cwd.startswith("/") else cwd
