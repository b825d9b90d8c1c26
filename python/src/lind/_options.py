"""The options of a sandbox, and the words of `lind-boot session start` that they become."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypedDict

from ._runtime import program

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
    ask
        Seconds that a call waits for an answer which would be denied (`on_question`); without it such calls are denied at once.
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
    ask: Amount | None
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


class ConnectOptions(TypedDict, total=False):
    """The keywords of `Sandbox.connect`, as those of `Sandbox`."""

    env: Mapping[str, str]
    shell: str
    request_timeout: float


def _volumes(given: Mapping[Path, str] | Iterable[Path]) -> dict[str, str]:
    """The directories, and how each is seen."""
    if isinstance(given, (str, os.PathLike)):
        raise TypeError(f"volumes: expected a mapping, as {{{os.fspath(given)!r}: 'overlay'}}")
    if not isinstance(given, Mapping):
        given = dict.fromkeys(given, "rw")
    return {os.fspath(host): how for host, how in given.items()}


def _time(given: Amount | None) -> str | None:
    """A time, of which numbers are seconds."""
    return given if given is None or isinstance(given, str) else f"{round(given * 1000)}ms"


# The places that an environment takes its code from, where it is itself a volume.
_ENVIRONMENT = ("bin", "lib", "lib64", "pyvenv.cfg")


def trusted(volumes: Iterable[str]) -> list[str]:
    """The places in these directories that this program takes its code from: a command that could change them would change what runs outside."""
    shown = {folder for volume in volumes for folder in (os.path.realpath(volume), os.path.abspath(volume))}
    places = [os.fspath(program()), os.path.dirname(os.path.abspath(__file__))]
    for prefix in {sys.prefix, sys.base_prefix}:
        places += [prefix, *(os.path.join(prefix, name) for name in _ENVIRONMENT if prefix in shown)]
    return sorted({place for place in places if any(_is_below(path, folder) for path in (place, os.path.realpath(place)) for folder in shown)})


def _is_below(place: str, folder: str) -> bool:
    return place != folder and os.path.commonpath([os.path.abspath(place), folder]) == folder


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
    ask: Amount | None = None
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
        volumes = _volumes(self.volumes)
        pairs = [("volume", f"{host}:{how}") for host, how in volumes.items()]
        pairs += [("keep", place) for place in trusted(volumes)]
        pairs += [(name, value) for name, values in many.items() for value in values]
        one = {"policy": self.policy, "workdir": self.workdir, "network": self.network, "hostname": self.hostname,
               "mounts": self.mounts, "idle": _time(self.idle), "ask": _time(self.ask), **self.limits()}
        pairs += [(name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)) for name, value in one.items() if value is not None]
        return [f"--{name}={value}" for name, value in pairs] + (["--read-only"] if self.read_only else [])

    def pairs(self) -> dict[str, str]:
        """The volumes: directories of the host, and how each is seen."""
        return _volumes(self.volumes)

    def at(self, place: str | None) -> Options:
        """The same options, with volumes that mean the same from every directory. `place` is the one that they have been given in."""
        return self if place is None else replace(self, volumes={os.path.join(place, host): how for host, how in self.pairs().items()})

    def limits(self) -> dict[str, str]:
        """The limits, by the names that sessions know."""
        return limits(self.memory, self.cpu, self.processes, self.open_files, self.disk)


def keywords(options: Options) -> dict[str, Any]:
    """The options as keywords of a sandbox."""
    return {field.name: getattr(options, field.name) for field in fields(options)}


# How a volume is seen, behind the directory of the host: its path for commands, if that is another.
GUEST = re.compile(r"(/.*?):(?:ro|rw|overlay(?:=.*)?)", re.DOTALL)


def guest_of(host: str, how: str) -> str:
    """The path at which commands see a volume.

    >>> guest_of("/a/./b", "ro"), guest_of("/a", "/b:overlay=/state:main")
    ('/a/b', '/b')
    """
    found = GUEST.fullmatch(how)
    if found is not None:
        return os.path.normpath(found[1])
    return os.path.realpath(host) if os.pardir in host.split(os.sep) else os.path.abspath(host)


def limits(memory: Amount | None, cpu: Amount | None, processes: int | None, open_files: int | None, disk: Amount | None) -> dict[str, str]:
    """Limits by the names that sessions know. Numbers are bytes and seconds.

    >>> limits("2G", 1.5, None, None, 1 << 20)
    {'memory': '2G', 'cpu': '1500ms', 'disk': '1048576B'}
    """
    given: dict[str, tuple[Amount | None, int, str]] = {
        "memory": (memory, 1, "B"), "cpu": (cpu, 1000, "ms"), "cages": (processes, 1, ""), "files": (open_files, 1, ""), "disk": (disk, 1, "B")}
    return {name: amount if isinstance(amount, str) else f"{round(amount * times)}{unit}"
            for name, (amount, times, unit) in given.items() if amount is not None}
