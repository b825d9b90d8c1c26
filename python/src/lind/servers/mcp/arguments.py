"""The options of `lind mcp`. The sandbox has those of `lind-boot run`, by the same names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ..._options import SandboxOptions

# How much of a command's output or of a file a result has, in bytes.
OUTPUT = 50_000
ABOUT = """\
Serves a sandbox to agents and editors by the Model Context Protocol: over standard input and output, or with --listen by HTTP.
Without --volume the sandbox has the current directory as an overlay: changes stay beside it until the tool apply makes them."""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options. Ends the program with a message if they are wrong."""
    parser = argparse.ArgumentParser(prog="lind mcp", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    sandbox = parser.add_argument_group("the sandbox, as for lind-boot run")
    many: dict[str, Any] = {"action": "append", "default": []}
    sandbox.add_argument("-v", "--volume", metavar="DIR[:PATH][:ro|rw|overlay[=STATE]]", help="a directory that commands see; .:overlay if none is given", **many)
    sandbox.add_argument("--allow", metavar="HOST[:PORT]", help="a host that may be reached", **many)
    sandbox.add_argument("--network", choices=["host"], help="commands use the host's network")
    sandbox.add_argument("--policy", metavar="NAME|FILE", help="agent unless given")
    for name, what in (("memory", "SIZE"), ("cpu", "TIME"), ("cages", "COUNT"), ("files", "COUNT"), ("disk", "SIZE")):
        sandbox.add_argument(f"--{name}", metavar=what, type=int if what == "COUNT" else str, help="a limit of all commands together")
    sandbox.add_argument("-e", "--env", metavar="NAME=VALUE", help="a variable of each command", **many)
    sandbox.add_argument("-w", "--workdir", metavar="DIR", help="the directory in which commands start")
    sandbox.add_argument("-p", "--publish", metavar="[ADDRESS:]HOSTPORT:PORT", help="leads a port of the host to one of the sandbox", **many)
    sandbox.add_argument("--tmpfs", metavar="PATH[:SIZE]", help="a directory in memory", **many)
    sandbox.add_argument("--image", metavar="DIR|NAME", help="the tools: a directory, or an image of a wheel")
    sandbox.add_argument("--grate", metavar="WORDS", help="a grate before the commands", **many)
    sandbox.add_argument("--hostname", metavar="NAME")
    sandbox.add_argument("--read-only", action="store_true", help="the image cannot be written to")
    asks = sandbox.add_mutually_exclusive_group()
    asks.add_argument("--ask", metavar="TIME", default="2m", help="a call that would be denied waits so long for an answer of the user; 2m unless given")
    asks.add_argument("--no-ask", dest="ask", action="store_const", const=None, help="such calls are denied at once")
    server = parser.add_argument_group("the server")
    server.add_argument("--max-output", metavar="BYTES", type=_bytes, default=OUTPUT, help=f"how much a result has of output or of a file; {OUTPUT} unless given")
    server.add_argument("--listen", metavar="ADDRESS:PORT", help="serve by HTTP there, as 127.0.0.1:8000, not on standard input and output; port 0 is a free one")
    server.add_argument("--host", metavar="NAME", help="a name by which clients may ask, where the server listens beyond the loopback", **many)
    server.add_argument("--token-file", metavar="FILE", help="the file of the token that clients send, made if it is not there; without it a token is made and printed")
    given = parser.parse_args(words)
    if given.listen is None and (given.token_file or given.host):
        parser.error("--host and --token-file need --listen")
    return given


def options(given: argparse.Namespace) -> SandboxOptions:
    """The options of the sandbox."""
    made: SandboxOptions = {
        "volumes": dict(_volume(volume) for volume in given.volume or [".:overlay"]),
        "allow": given.allow,
        "env": dict(_variable(variable) for variable in given.env),
        "publish": given.publish,
        "tmpfs": given.tmpfs,
        "grates": given.grate,
        "read_only": given.read_only,
        "network": given.network,
        "policy": given.policy,
        "memory": given.memory,
        "cpu": given.cpu,
        "processes": given.cages,
        "open_files": given.files,
        "disk": given.disk,
        "workdir": given.workdir,
        "image": given.image,
        "hostname": given.hostname,
        "ask": given.ask,
    }
    return made


def _volume(given: str) -> tuple[str, str]:
    host, _, how = given.partition(":")
    return host, how or "rw"


def _variable(given: str) -> tuple[str, str]:
    name, found, value = given.partition("=")
    if not found or not name:
        raise SystemExit(f"lind mcp: --env {given}: expected NAME=VALUE")
    return name, value


def _bytes(given: str) -> int:
    count = int(given)
    if not 100 <= count <= 4 << 20:
        raise argparse.ArgumentTypeError(f"{given}: expected 100 to {4 << 20}")
    return count
