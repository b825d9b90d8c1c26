"""The loopback that the programs of one sandbox have to themselves."""

from __future__ import annotations

import atexit
import functools
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

from world import World, compiled, same


@functools.cache
def on_linux(program: str, *words: str) -> list[str]:
    """The output of a program of this folder on the host."""
    folder = Path(tempfile.mkdtemp(prefix="lind-sandbox-native-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source = Path(__file__).with_name(f"{program}.c")
    subprocess.run(["clang-22", "-O1", "-pthread", "-o", folder / program, source], check=True)
    return subprocess.run([folder / program, *words], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()


def tool(world: World, name: str) -> str:
    program = world.folder / "tool" / f"{name}.wasm"
    shutil.copy(compiled(name), program)
    program.chmod(0o755)
    return str(program)


def loopback_as_on_linux(world: World) -> None:
    """Sockets of one sandbox meet over 127.0.0.0/8 and ::1 as programs do over the host's loopback."""
    for options, words in (((), ()), (("--mounts=kernel",), ()), (("--allow", "192.0.2.1:9"), ("connected",))):
        done = world.run(*options, tool(world, "loopback"), *words)
        same(f"{options}: said", done.stderr, "")
        same(f"{options}", done.stdout.splitlines(), on_linux("loopback", *words))


def loopback_of_nobody_else(world: World) -> None:
    """A port of the host's is not in the sandbox, and one of the sandbox's not on the host; a rule leads to the host's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        same("none", world.probe(f"c:{port}")[1], f"connect {port}: Connection refused")
        same("allowed", world.probe(f"c:{port}", options=("--allow", f"127.0.0.1:{port}"))[1], f"connect {port}: ok")
        # The same port, which the host has given away.
        done = world.run(tool(world, "served"), str(port))
        same("same port", (done.returncode, done.stdout), (0, "served\n"))


def published_ports(world: World) -> None:
    """A port of the host leads inside, to run and to a session; the server sees the address of its client."""
    for start in (("run",), ("session", "start", "published")):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        words = ("--publish", f"{port}:80") if start[0] == "run" else ("-p", f"127.0.0.1:{port}:80")
        if start[0] == "run":
            child = world.begin("run", *words, tool(world, "echoes"), "80")
        else:
            same("session", world.boot(*start, *words, "-v", str(world.folder / "tool")).returncode, 0)
            child = world.begin("session", "exec", "published", "--", tool(world, "echoes"), "80")
        try:
            same("ready", child.stdout.readline() if child.stdout else "", "ready\n")
            with socket.socket() as client:
                # The client takes little at a time, so the server ends before it has all.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.settimeout(30)
                client.connect(("127.0.0.1", port))
                own = client.getsockname()[1]
                sender = threading.Thread(target=lambda: (client.sendall(b"x" * 400_000), client.shutdown(socket.SHUT_WR)))
                sender.start()
                said = b"".join(iter(lambda: client.recv(4096), b""))
                sender.join()
                same("echoed", (len(said), said.endswith(f" 127.0.0.1:{own}".encode())), (400_000 + len(f" 127.0.0.1:{own}"), True))
            same("status", child.wait(30), 0)
            # Nobody listens any more.
            if start[0] == "session":
                with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                    same("closed", client.recv(1), b"")
        finally:
            child.kill()
            child.communicate()
    for words, part in ((("-p", "80"), "8080:80"), (("-p", "8080:80", "--network", "host"), "--publish cannot be used with the host's network")):
        done = world.run(*words, "true")
        same(f"{words}", (done.returncode, part in done.stderr), (125, True))


TESTS = [loopback_as_on_linux, loopback_of_nobody_else, published_ports]
