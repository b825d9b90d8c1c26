"""The options of a sandbox, and the words of `lind-boot session start` that they become."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

Path = str | os.PathLike[str]
Amount = str | int | float


class SandboxOptions(TypedDict, total=False):
    """The keywords of `Sandbox` and `AsyncSandbox`.

    volumes
        The directories and files of the host that commands see, and how: "ro", "rw", or "overlay", which leaves the directory as it is and keeps
        changes beside it. Another path in the sandbox is written before that: `{"src": "/project:ro"}`. A sequence of directories is mounted "rw".
    allow
        The hosts that may be reached, as "pypi.org:443". Without it there is no network.
    policy
        "agent" (the default), "build", "readonly", "untrusted", or a file.
    memory, cpu, processes, open_files, disk
        Limits of all commands together: "2G" or bytes; "10s" or seconds; counts; bytes that are written to files.
    env
        Variables of each command, beside PATH, HOME and a few others. No variable of the caller is passed on.
    workdir
        The directory in which commands start: the current directory if it lies in a volume, unless it is given.
    network
        "host": commands use the host's network.
    idle
        Seconds after which a sandbox ends that nobody has used.
    image
        The directory with the tools, or the name of an image that a package brings, as "full" of lind-sandbox-image-full.
    tmpfs, hostname, publish, read_only, grates, mounts
        As the options of `lind-boot run` with these names; the grates are texts of `--grate`.
    shell
        The program that runs commands given as texts: "bash" unless given.
    request_timeout
        Seconds that a request may take which has no timeout of its own; a command has none.
    start_timeout
        Seconds that the start may take.
    """

    volumes: Mapping[Path, str] | Iterable[Path]
    allow: Sequence[str]
    policy: Path | None
    memory: Amount | None
    cpu: Amount | None
    processes: int | None
    open_files: int | None
    disk: Amount | None
    env: Mapping[str, str]
    workdir: Path | None
    network: str | None
    idle: Amount | None
    tmpfs: Sequence[str]
    image: Path | None
    hostname: str | None
    publish: Sequence[str]
    read_only: bool
    grates: Sequence[str]
    mounts: str | None
    shell: str
    request_timeout: float
    start_timeout: float


def _volumes(given: Mapping[Path, str] | Iterable[Path]) -> Iterator[str]:
    if isinstance(given, (str, os.PathLike)):
        raise TypeError(f"volumes: expected a mapping, as {{{os.fspath(given)!r}: 'overlay'}}")
    if not isinstance(given, Mapping):
        given = dict.fromkeys(given, "rw")
    for host, how in given.items():
        yield f"{os.fspath(host)}:{how}"


@dataclass(frozen=True)
class Options:
    """The options, as `SandboxOptions` explains them."""

    volumes: Mapping[Path, str] | Iterable[Path] = ()
    allow: Sequence[str] = ()
    policy: Path | None = None
    memory: Amount | None = None
    cpu: Amount | None = None
    processes: int | None = None
    open_files: int | None = None
    disk: Amount | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: Path | None = None
    network: str | None = None
    idle: Amount | None = None
    tmpfs: Sequence[str] = ()
    image: Path | None = None
    hostname: str | None = None
    publish: Sequence[str] = ()
    read_only: bool = False
    grates: Sequence[str] = ()
    mounts: str | None = None
    shell: str = "bash"
    request_timeout: float = 60.0
    start_timeout: float = 120.0

    def words(self) -> list[str]:
        """The words."""
        many = {"allow": self.allow, "tmpfs": self.tmpfs, "publish": self.publish, "grate": self.grates}
        for name, values in many.items():
            if isinstance(values, str):
                raise TypeError(f"{name}: expected a list, as [{values!r}]")
        pairs = [("volume", volume) for volume in _volumes(self.volumes)]
        pairs += [(name, value) for name, values in many.items() for value in values]
        one = {"policy": self.policy, "workdir": self.workdir, "network": self.network, "hostname": self.hostname,
               "mounts": self.mounts, "idle": self.idle, **self.limits()}
        pairs += [(name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)) for name, value in one.items() if value is not None]
        return [f"--{name}={value}" for name, value in pairs] + (["--read-only"] if self.read_only else [])

    def limits(self) -> dict[str, str]:
        """The limits, by the names that sessions know."""
        return limits(self.memory, self.cpu, self.processes, self.open_files, self.disk)


def limits(memory: Amount | None, cpu: Amount | None, processes: int | None, open_files: int | None, disk: Amount | None) -> dict[str, str]:
    """Limits by the names that sessions know. Numbers are bytes and seconds.

    >>> limits("2G", 1.5, None, None, 1 << 20)
    {'memory': '2G', 'cpu': '1500ms', 'disk': '1048576B'}
    """
    given: dict[str, tuple[Amount | None, int, str]] = {
        "memory": (memory, 1, "B"), "cpu": (cpu, 1000, "ms"), "cages": (processes, 1, ""), "files": (open_files, 1, ""), "disk": (disk, 1, "B")}
    return {name: amount if isinstance(amount, str) else f"{round(amount * times)}{unit}"
            for name, (amount, times, unit) in given.items() if amount is not None}
