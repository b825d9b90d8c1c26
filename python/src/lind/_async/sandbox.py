"""A sandbox."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .._deadline import Deadline
from .._messages import word
from .._options import Amount, Options, limits
from .._reading import read_command, read_denials, read_discarded, read_policy, read_questions, read_snapshot, read_stats
from ..errors import CommandError, CommandNotStarted, RequestError, TimeoutExpired
from ..results import Applied, CommandInfo, Denial, Difference, Policy, Result, Stats
from ._io import Returned, spawn
from .copies import AsyncCopy
from .denials import AsyncDenials
from .files import AsyncFiles
from .overlay import AsyncOverlays, Paths, Volume
from .process import KEPT, AsyncProcess
from .questions import Answer, AsyncQuestion, AsyncQuestions
from .session import AsyncSession

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from .._options import ConnectOptions, SandboxOptions

Command = str | Sequence[str | bytes]


class AsyncSandbox:
    """A sandbox: directories of the host that commands see, and what they may do. It starts when it is first used, and ends when it is closed.

    >>> async with AsyncSandbox() as sandbox:
    ...     result = await sandbox.run("echo hello; exit 3")
    >>> result.exit_code, result.stdout
    (3, 'hello\\n')

    `SandboxOptions` explains the keywords.
    """

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        self._options = Options(**options)
        self._session = AsyncSession(self._options)
        self.files = AsyncFiles(self._session)
        self._overlays = AsyncOverlays(self._session)

    @classmethod
    async def connect(cls, name: str, **options: Unpack[ConnectOptions]) -> Self:
        """Connects to a session that runs already, as `lind-boot session start` or another program has started it. To close it leaves it running; `stop`
        ends it. The keywords are `env`, `shell` and `request_timeout`, as for a sandbox of one's own.

        >>> async with AsyncSandbox() as sandbox:
        ...     await sandbox.files.write("/tmp/note", "some text")
        ...     async with await AsyncSandbox.connect(sandbox.name) as same:
        ...         text = await same.files.read_text("/tmp/note")
        ...     result = await sandbox.run("echo it runs on")
        >>> text, result.stdout
        ('some text', 'it runs on\\n')
        """
        sandbox = cls(**options)
        await sandbox._session.find(name)
        return sandbox

    @property
    def name(self) -> str:
        """The name of its session, for `lind-boot session`."""
        return self._session.started.name

    async def open(self) -> None:
        """Starts the sandbox. Otherwise the first operation does that."""
        await self._session.open()

    async def close(self, timeout: float = 15.0) -> None:
        """Ends the sandbox with all that runs in it, and removes what it has on the host. If it was connected to, it is left as it is."""
        await self._session.close(timeout)

    async def stop(self, timeout: float = 15.0) -> None:
        """Ends the sandbox with all that runs in it, also if it was connected to."""
        await self._session.close(timeout, stop=True)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def run(
        self,
        command: Command,
        *,
        timeout: float | None = None,
        input: bytes | str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        check: bool = False,
        max_output: int | None = KEPT,
        on_stdout: Callable[[bytes], object] | None = None,
        on_stderr: Callable[[bytes], object] | None = None,
        memory: Amount | None = None,
        cpu: Amount | None = None,
        processes: int | None = None,
    ) -> Result:
        """Runs a command and waits for its end.

        A text is run by a shell, a list is a program with its arguments. After `timeout` seconds the command is killed, and TimeoutExpired has what it
        has written; the time in which a program is compiled does not count. With `check` a command that fails raises CommandError. Output beyond
        `max_output` bytes is dropped. The callbacks get pieces of output as they come.

        >>> async with AsyncSandbox() as sandbox:
        ...     result = await sandbox.run(["cat"], input="some text")
        >>> result.stdout
        'some text'
        """
        process = await self._begin(command, stdin=input is not None, timeout=timeout, env=env, cwd=cwd, max_output=max_output, pty=None,
                                    limits=limits(memory, cpu, processes, None, None))
        async with process:
            if input is not None:
                process.feed(input.encode() if isinstance(input, str) else input)
            result = await process.wait(on_stdout=on_stdout, on_stderr=on_stderr)
        if result.timed_out is not None:
            raise TimeoutExpired(process.command, result.timed_out, result.stdout_bytes, result.stderr_bytes, result)
        if check and not result.ok:
            raise CommandError(process.command, result)
        return result

    async def start(
        self,
        command: Command,
        *,
        pty: tuple[int, int] | None = None,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        stdin: bool = True,
        max_output: int | None = None,
        memory: Amount | None = None,
        cpu: Amount | None = None,
        processes: int | None = None,
    ) -> AsyncProcess:
        """Starts a command. `pty` is the size of a terminal for it, as columns and rows.

        A program that is not there may raise CommandNotStarted only when the process is read or waited for.

        >>> async with AsyncSandbox() as sandbox:
        ...     async with await sandbox.start(["cat"]) as process:
        ...         await process.write("one\\n")
        ...         await process.close_stdin()
        ...         result = await process.wait()
        >>> result.stdout
        'one\\n'
        """
        return await self._begin(command, stdin=stdin, timeout=timeout, env=env, cwd=cwd, max_output=max_output, pty=pty,
                                 limits=limits(memory, cpu, processes, None, None))

    async def attach(self, id: int, *, start: int = 0, timeout: float | None = None) -> AsyncProcess:
        """Follows a command that was detached, by its number. Output before the byte `start` is left out."""
        deadline = Deadline(self._options.request_timeout if timeout is None else timeout)
        await self._session.open()
        connection = await self._session.connect(deadline)
        process = AsyncProcess(self._session, connection, f"command {id}")
        try:
            keys: dict[str, Any] = {"do": "attach", "id": id, "from": start}
            await connection.send(deadline, **keys)
            await process.begin(deadline)
        except BaseException:
            await process.close()
            raise
        return process

    async def commands(self, timeout: float | None = None) -> list[CommandInfo]:
        """The commands that run, and the last that have ended."""
        message = await self._session.ask(timeout, do="list")
        return [read_command(entry) for entry in message.keys["commands"]]

    async def stats(self, timeout: float | None = None) -> Stats:
        """The memory, time and files that the sandbox uses, and its limits."""
        return read_stats((await self._session.ask(timeout, do="stats")).keys)

    async def denials(self, *, since: int = 0, command: int | None = None, timeout: float | None = None) -> list[Denial]:
        """The calls that were denied, of those that are kept: the last thousand. Only those behind the number `since`, or of a command.

        >>> async with AsyncSandbox() as sandbox:
        ...     result = await sandbox.run(": </dev/tcp/192.0.2.1/80")
        ...     denials = await sandbox.denials()
        >>> denials[0].arguments, denials[0].hint, denials == list(result.denials)
        ('connect tcp 192.0.2.1:80', '--allow 192.0.2.1:80', True)
        """
        found: list[Denial] = []
        more = True
        while more:
            keys = (await self._session.ask(timeout, do="denials", since=since, id=command)).keys
            found += read_denials(keys.get("denials", []))
            since, more = keys["last"], keys.get("more") is True
        return found

    async def follow_denials(self, timeout: float | None = None) -> AsyncDenials:
        """The calls that are denied from now on, as they come."""
        await self._session.open()
        deadline = Deadline(self._options.request_timeout if timeout is None else timeout)
        connection = await self._session.connect(deadline)
        try:
            last = (await connection.ask(deadline, do="denials", count=1)).keys["total"]
            first = await connection.ask(deadline, do="denials", since=last, follow=True)
        except BaseException:
            connection.close()
            raise
        return AsyncDenials(self._session, connection, read_denials(first.keys.get("denials", [])))

    async def on_denial(self, callback: Callable[[Denial], object]) -> None:
        """Has a function called for each call that is denied from now on, until the sandbox ends."""
        spawn((await self.follow_denials()).tell, callback)

    async def questions(self, timeout: float | None = None) -> list[AsyncQuestion]:
        """The calls that wait for an answer, in a sandbox with `ask`."""
        message = await self._session.ask(timeout, do="questions")
        return [AsyncQuestion(self._session, about) for about in read_questions(message.keys.get("questions"))]

    async def follow_questions(self, timeout: float | None = None) -> AsyncQuestions:
        """The calls that wait for an answer, now and later, in a sandbox with `ask`."""
        await self._session.open()
        deadline = Deadline(self._options.request_timeout if timeout is None else timeout)
        connection = await self._session.connect(deadline)
        try:
            first = await connection.ask(deadline, do="questions", follow=True)
            return AsyncQuestions(self._session, connection, read_questions(first.keys.get("questions")))
        except BaseException:
            connection.close()
            raise

    async def on_question(self, callback: Callable[[AsyncQuestion], Returned[Answer | None]]) -> None:
        """Has a function called for each call that waits for an answer, now and later, until the sandbox ends. It returns the answer; if it
        returns None, somebody else answers, as by `Question.answer`. If it fails, the answer is "no". It may be called for several calls at once.

        >>> async with AsyncSandbox(ask=60) as sandbox:
        ...     await sandbox.on_question(lambda question: "no" if question.about.grate == "net" else "once")
        ...     result = await sandbox.run(": </dev/tcp/192.0.2.1/80")
        >>> [denial.arguments for denial in result.denials]
        ['connect tcp 192.0.2.1:80']
        """
        spawn((await self.follow_questions()).tell, callback)

    async def allow(self, rule: str, *, once: bool = False, seconds: float | None = None, timeout: float | None = None) -> int:
        """Allows something more, for the next call of each command: a host, as "example.org:443", or a rule of the net grate. Once, or for so many
        seconds. Returns the number of the rule."""
        return await self._change(timeout, do="allow", rule=rule, once=once, **{"for": seconds})

    async def deny(self, rule: str, *, seconds: float | None = None, timeout: float | None = None) -> int:
        """Denies something that is allowed."""
        return await self._change(timeout, do="deny", rule=rule, **{"for": seconds})

    async def revoke(self, rule: str | int, timeout: float | None = None) -> None:
        """Takes a rule back, by its text or its number; also one of the start."""
        await self._session.ask(timeout, do="revoke", rule=rule)

    async def policy(self, timeout: float | None = None) -> Policy:
        """The rules that hold now.

        >>> async with AsyncSandbox() as sandbox:
        ...     number = await sandbox.allow("example.org:443", once=True)
        ...     rules = (await sandbox.policy()).rules
        ...     await sandbox.revoke(number)
        >>> rules
        (Rule(number=1, allow=True, rule='example.org:443', once=True, seconds=None),)
        """
        return read_policy((await self._session.ask(timeout, do="policy")).keys)

    async def diff(self, paths: Paths = (), *, volume: Volume = None, timeout: float | None = None) -> list[Difference]:
        """The changes in an overlay: all, or those of some paths below its directory. `volume` names the directory if there are several overlays."""
        return await self._overlays.differences(paths, volume, timeout)

    async def patch(self, paths: Paths = (), *, volume: Volume = None, timeout: float | None = None) -> str:
        """The changes as git writes them."""
        return await self._overlays.command("diff", volume, timeout, *paths, options=["--patch"])

    async def apply(
        self, paths: Paths = (), *, volume: Volume = None, force: bool = False, dry_run: bool = False, timeout: float | None = None
    ) -> Applied:
        """Makes the changes in the directory itself, and returns them. With `force` also where the directory's own files have changed meanwhile. If some
        cannot be made, it raises ApplyError, which has both. With `dry_run` nothing is changed, and nothing raised for what could not be."""
        chosen = [word for word, on in (("--force", force), ("--dry-run", dry_run)) if on]
        return await self._overlays.apply(paths, volume, timeout, chosen)

    async def discard(self, paths: Paths = (), *, volume: Volume = None, timeout: float | None = None) -> list[Difference]:
        """Throws the changes away, and returns them."""
        return read_discarded(await self._overlays.command("discard", volume, timeout, *paths, options=["--json"]))

    async def snapshot(self, name: str | None = None, *, volume: Volume = None, timeout: float | None = None) -> str:
        """Keeps the present state of an overlay under a name, for `rollback`. Returns the name."""
        label = name or f"snapshot-{secrets.token_hex(4)}"
        return read_snapshot(await self._overlays.command("snapshot", volume, timeout, label, options=["--json"]))

    async def rollback(self, name: str, *, volume: Volume = None, timeout: float | None = None) -> str:
        """Brings the overlay back to a state that `snapshot` has kept. Returns its name."""
        return read_snapshot(await self._overlays.command("rollback", volume, timeout, name, options=["--json"]))

    async def fork(self, timeout: float | None = None) -> Self:
        """A new sandbox with the same options, rules and files, which goes its own way. It has been started; close it as any other.

        Its overlays begin with the changes of this one, and have its snapshots. Files of /tmp, of /home/user and of `tmpfs` are copied, at most 1 GiB of
        them. A volume "rw" is the directory itself, for both. Processes are not copied: nothing runs in the new sandbox. The rules are those that hold
        now, with the time that they have left.

        All overlays are copied as they are at one moment, and files in memory one after the other: what a command writes meanwhile may be there in part.
        The changes in the overlays of the new sandbox are thrown away when it is closed; `apply` keeps them.

        A sandbox that was connected to cannot be forked, nor one whose publish option takes a port of the host, which the two cannot share.

        >>> async with AsyncSandbox() as sandbox:
        ...     await sandbox.files.write("/tmp/note", "one")
        ...     async with await sandbox.fork() as other:
        ...         await other.files.write("/tmp/note", "two")
        ...         texts = [await one.files.read_text("/tmp/note") for one in (sandbox, other)]
        >>> texts
        ['one', 'two']
        """
        seconds = self._options.request_timeout if timeout is None else timeout
        copy = await AsyncCopy.take(self, seconds)
        try:
            return await copy.start(type(self), seconds, last=True)
        except BaseException:
            copy.close()
            raise

    async def _change(self, timeout: float | None, **keys: Any) -> int:
        number = (await self._session.ask(timeout, **keys)).keys.get("number")
        return number if isinstance(number, int) else 0

    async def _begin(
        self,
        command: Command,
        *,
        stdin: bool,
        timeout: float | None,
        env: Mapping[str, str] | None,
        cwd: str | os.PathLike[str] | None,
        max_output: int | None,
        pty: tuple[int, int] | None,
        limits: dict[str, str],
    ) -> AsyncProcess:
        words = [self._options.shell, "-c", command] if isinstance(command, str) else list(command)
        shown = command if isinstance(command, str) else " ".join(os.fsdecode(part) for part in words)
        given = {**self._options.env, **(env or {})}
        keys: dict[str, Any] = {
            "argv": [word(part) for part in words],
            "env": [word(f"{name}={value}") for name, value in given.items()],
            "workdir": None if cwd is None else word(cwd),
            "timeout": timeout,
            "limits": limits or None,
            "stdin": stdin,
            "max_output": max_output,
            "terminal": None if pty is None else {"files": [0, 1, 2], "size": [pty[1], pty[0]]},
        }
        await self._session.open()
        deadline = Deadline(None)
        connection = await self._session.connect(deadline)
        process = AsyncProcess(self._session, connection, shown, max_output)
        try:
            await connection.send(deadline, do="exec", **keys)
            await process.begin(deadline)
        except RequestError as why:
            await process.close()
            raise CommandNotStarted(str(why), why.status, why.errno) from None
        except BaseException:
            await process.close()
            raise
        return process
