"""The runner: where it is, and the sessions that it starts."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from ._messages import ProtocolError, encode, text
from .errors import SandboxError
from .results import SessionInfo

# A wheel brings bin/lind-boot, and lib/lind with grates, image and compiled code.
BUNDLE = Path(__file__).parent / "_bundle"


def program() -> Path:
    """The file of lind-boot: the one that the variable LIND_BOOT names, that of the wheel, or that of PATH."""
    named = os.environ.get("LIND_BOOT")
    if named:
        return Path(named)
    bundled = BUNDLE / "bin" / "lind-boot"
    if bundled.exists():
        return bundled
    found = shutil.which("lind-boot")
    if found is None:
        raise SandboxError("lind-boot is not there: install the wheel of lind-sandbox, or set LIND_BOOT to its file")
    return Path(found)


def new_name() -> str:
    """A name for a session that no other has."""
    return f"python-{os.getpid()}-{secrets.token_hex(4)}"


def why(said: str) -> str:
    """The reason in what lind-boot has said."""
    return said.strip().removeprefix("lind-boot: ")


@dataclass(frozen=True)
class Started:
    """A session that has been started."""

    name: str
    pid: int
    socket: str
    log: str
    # The process that has started it, and ends it. A forked child does not.
    owner: int

    @classmethod
    def read(cls, said: str) -> Started:
        """Parses the output of `session start --json`."""
        try:
            about = json.loads(said)
            return cls(text(about["name"]), int(about["pid"]), text(about["socket"]), text(about["log"]), os.getpid())
        except (ValueError, TypeError, KeyError, ProtocolError):
            raise SandboxError(f"lind-boot does not say where its session is: {said!r}") from None

    @classmethod
    def found(cls, about: SessionInfo) -> Started:
        """A session that something else has started, and that this process does not end."""
        return cls(about.name, about.pid, about.socket, about.socket.removesuffix("sock") + "log", 0)

    @property
    def is_own(self) -> bool:
        """Whether this process has started it."""
        return self.owner == os.getpid()

    def messages(self) -> str:
        """The messages of the session and its grates."""
        try:
            return Path(self.log).read_text(errors="replace")
        except OSError:
            return ""

    def stop(self) -> None:
        """Tells it to end, if that has not been done, and removes its files."""
        if self.is_own:
            _tell_to_end(self.socket)
            for path in (self.socket, self.log):
                Path(path).unlink(missing_ok=True)


def give_up(name: str) -> None:
    """Ends a session whose start was interrupted. The next start of any session removes its files."""
    for folder in _folders():
        _tell_to_end(f"{folder}/{name}.sock")


def forget(name: str) -> None:
    """Removes the log of a session that has not started."""
    for folder in _folders():
        Path(folder, f"{name}.log").unlink(missing_ok=True)


def _folders() -> list[str]:
    """Where lind-boot has the sockets of sessions: in the first of these that there is."""
    runtime, user = os.environ.get("XDG_RUNTIME_DIR"), os.geteuid()
    return ([f"{runtime}/lind"] if runtime else []) + [f"/tmp/lind-{user}", f"/run/user/{user}/lind"]


def _tell_to_end(path: str) -> None:
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.settimeout(1)
            end.connect(path)
            end.sendall(b"".join(encode({"do": "stop"})))
    except OSError:
        pass
