"""The sandboxes: the command line of each, and its limitations."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.building import last_line
from bench.cli import chosen
from bench.model import Failed, Missing, NotOffered, found, in_image, need_boot
from bench.sandbox.model import Wish

# The tools of the host and nothing else, as in the published comparisons of bubblewrap.
TOOLS = [word for path in ("/usr", "/lib", "/lib64", "/bin", "/sbin") for word in ("--ro-bind", path, path)]
BASE = [*TOOLS, "--proc", "/proc", "--dev", "/dev"]
# The place of the workspace in containers and in bubblewrap's +workspace.
WORKSPACE = "/workspace"


class Column:
    """The bare command, and the base of the other columns."""

    name = "bare"
    program = ""
    # Its processes are children of a daemon: their use of the processor cannot be measured from
    # outside.
    daemon = False
    # Another process does the work, and the caller waits: its processor time is meaningless.
    served = False

    def check(self) -> None:
        """Raises Missing if this column cannot run here."""
        if self.program:
            found(self.program)

    def tool(self, name: str) -> str:
        """The program's path in the sandbox; raises Missing."""
        return found(name)

    def command(self, wish: Wish) -> list[str]:
        self.refuse(wish, "protect", "policy")
        return self.inner(wish)

    def inner(self, wish: Wish) -> list[str]:
        first, *rest = wish.words
        return [first if first.startswith("./") else self.tool(first), *rest]

    def refuse(self, wish: Wish, *what: str) -> None:
        for name in what:
            if getattr(wish, name):
                raise NotOffered(f"{self.name} has no way to {name}")

    def open(self, wish: Wish) -> None:
        """Before the runs of a row: what a command is then put into."""

    def close(self) -> None:
        """After them."""

    def version(self) -> str:
        return version_of(found(self.program)) if self.program else ""


def version_of(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, errors="replace", check=False)
    return (done.stdout or done.stderr).split("\n", 1)[0].strip()


class Unshare(Column):
    """Namespaces for users and processes, and no mounts."""

    name, program = "unshare", "unshare"

    def command(self, wish: Wish) -> list[str]:
        self.refuse(wish, "protect", "policy")
        return [found("unshare"), "--user", "--pid", "--fork", *self.inner(wish)]


class Bubblewrap(Column):
    """A variant of bubblewrap; a row that needs its workspace gets it bound in each of them."""

    program = "bwrap"

    def __init__(self, name: str, options: Sequence[str], workspace: bool = False) -> None:
        self.name, self.options, self.has_workspace = name, list(options), workspace

    def command(self, wish: Wish) -> list[str]:
        self.refuse(wish, "policy")
        at = WORKSPACE if self.has_workspace else str(wish.workspace)
        here = ["--bind", str(wish.workspace), at] if wish.here or self.has_workspace else []
        for name in wish.protect:
            here += ["--ro-bind", str(wish.workspace / name), f"{at}/{name}"]
        directory = ["--chdir", at] if here else []
        net = ["--share-net"] if wish.port is not None and "--unshare-all" in self.options else []
        return [found("bwrap"), *BASE, *self.options, *net, *here, *directory, *self.inner(wish)]


class Firejail(Column):
    """Firejail without a profile for the program."""

    program = "firejail"
    # It refuses command lines of 128 words.
    MOST_RULES = 100

    def __init__(self, name: str, options: Sequence[str] = ()) -> None:
        self.name, self.options = name, list(options)

    def command(self, wish: Wish) -> list[str]:
        self.refuse(wish, "policy")
        if len(wish.protect) > self.MOST_RULES:
            raise NotOffered("firejail takes no more options")
        protect = [f"--read-only={wish.workspace / name}" for name in wish.protect]
        return [found("firejail"), "--quiet", "--noprofile", *self.options, *protect, "--", *self.inner(wish)]


class Container(Column):
    """A container of an image that is present already; nothing is fetched."""

    daemon = served = True

    def __init__(self, program: str, image: str) -> None:
        self.name = self.program = program
        self.image = image

    def check(self) -> None:
        done = subprocess.run([found(self.program), "image", "inspect", self.image], capture_output=True, text=True,
                              errors="replace", check=False)
        if done.returncode:
            raise Missing(f"{self.program}: image {self.image}: {last_line(done.stderr)}")

    def tool(self, name: str) -> str:
        return name

    def command(self, wish: Wish) -> list[str]:
        self.refuse(wish, "policy")
        here = ["-v", f"{wish.workspace}:{WORKSPACE}", "-w", WORKSPACE] if wish.here else []
        for name in wish.protect:
            here += ["-v", f"{wish.workspace / name}:{WORKSPACE}/{name}:ro"]
        net = "none" if wish.port is None else "host"
        return [found(self.program), "run", "--rm", "--pull=never", f"--network={net}", *here, self.image, *self.inner(wish)]


class Gvisor(Column):
    """gVisor over the host's own files, changes kept in memory."""

    name, program = "runsc", "runsc"

    def command(self, wish: Wish) -> list[str]:
        self.refuse(wish, "protect", "policy")
        root = [] if os.geteuid() == 0 else ["--rootless"]
        net = "none" if wish.port is None else "host"
        here = [f"--volume={wish.workspace}:{wish.workspace}", f"--cwd={wish.workspace}"] if wish.here else []
        return [found("runsc"), *root, f"--network={net}", "do", *here, *self.inner(wish)]


class Lind(Column):
    """`lind-boot run`: a runner for each command, under the policy `agent`, all walls up."""

    name = "lind"

    def __init__(self, boot: Path, image: Path) -> None:
        self.boot, self.image = boot, image

    def check(self) -> None:
        need_boot(self.boot)

    def tool(self, name: str) -> str:
        return in_image(self.image, name)

    def options(self, wish: Wish) -> list[str]:
        words = ["--image", str(self.image)]
        if wish.here:
            words += ["-v", str(wish.workspace)]
        if wish.port is not None:
            words += ["--allow", f"127.0.0.1:{wish.port}"]
        if wish.protect:
            policy = wish.workspace.parent / f"protect-{len(wish.protect)}.toml"
            policy.write_text(f'network = "none"\nprotect = {json.dumps(list(wish.protect))}\n')
            words += ["--policy", str(policy)]
        if wish.policy:
            words += ["--policy", wish.policy]
        return words

    def command(self, wish: Wish) -> list[str]:
        return [str(self.boot), "run", *self.options(wish), "--", *self.inner(wish)]

    def version(self) -> str:
        return version_of(str(self.boot))


class LindSession(Lind):
    """`lind-boot session`: the runner has been started before, the time is that of `exec`."""

    name = "lind session"
    served = True

    def __init__(self, boot: Path, image: Path, session: str) -> None:
        super().__init__(boot, image)
        self.session, self.is_open = session, False

    def check(self) -> None:
        super().check()
        if subprocess.run([str(self.boot), "session", "--help"], capture_output=True, check=False).returncode:
            raise Missing("this lind-boot has no sessions")

    def open(self, wish: Wish) -> None:
        self.start(self.session, wish)
        self.is_open = True

    def start(self, name: str, wish: Wish) -> None:
        command = [str(self.boot), "session", "start", *self.options(wish), name]
        done = subprocess.run(command, cwd=wish.workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", check=False, timeout=60)
        if done.returncode:
            raise Failed(f"session start: {last_line(done.stderr)}")

    def close(self) -> None:
        if self.is_open:
            self.stop(self.session)
            self.is_open = False

    def stop(self, name: str) -> None:
        subprocess.run([str(self.boot), "session", "stop", name], capture_output=True, check=False, timeout=60)

    def command(self, wish: Wish) -> list[str]:
        return [str(self.boot), "session", "exec", self.session, "--", *self.inner(wish)]


def every_column(boot: Path, image: Path, container_image: str) -> list[Column]:
    alone = ["--unshare-all", "--die-with-parent"]
    full = ["--tmpfs", "/tmp", "--tmpfs", "/home", *alone, "--new-session"]
    return [
        Column(),
        Lind(boot, image),
        LindSession(boot, image, f"sandbench-{os.getpid()}"),
        Bubblewrap("bwrap ro-bind", []),
        Bubblewrap("bwrap +unshare-pid", ["--unshare-pid", "--die-with-parent"]),
        Bubblewrap("bwrap +unshare-all", alone),
        Bubblewrap("bwrap full", full),
        Bubblewrap("bwrap +workspace", ["--tmpfs", "/tmp", *alone], workspace=True),
        Unshare(),
        Firejail("firejail"),
        Firejail("firejail --private", ["--private"]),
        Container("podman", container_image),
        Container("docker", container_image),
        Gvisor(),
    ]


def choose(columns: list[Column], wanted: Sequence[str]) -> list[Column]:
    """Bare and Lind's own always, others by the start of their names; none named: all."""
    chosen("--against", columns, wanted, "sandbox")
    kept = ("bare", "lind")
    return [c for c in columns if not wanted or c.name.split()[0] in kept or any(c.name.startswith(w) for w in wanted)]
