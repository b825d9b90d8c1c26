"""podman with lind-oci as its runtime: what people and scripts type."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import rootfs
from table import Failed, Table

SUITE = "podman"
SECONDS = 90
CONFIGURED = """
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "lind"
[engine.runtimes]
lind = ["%s"]
[containers]
netns = "%s"
"""


class Podman:
    """podman with a storage of its own."""

    def __init__(self, folder: Path, user: tuple[str, ...] = (), network: str = "") -> None:
        self.folder, self.user = folder, user
        configured = folder / "containers.conf"
        configured.write_text(CONFIGURED % (rootfs.OCI, network))
        self.environment = {**os.environ, "CONTAINERS_CONF": str(configured), "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run")}
        (folder / "run").mkdir(mode=0o700, exist_ok=True)

    def command(self, *words: str) -> list[str]:
        return [*self.user, "podman", "--root", str(self.folder / "storage"), "--runroot", str(self.folder / "runroot"), "--tmpdir", str(self.folder / "tmp"), *words]

    def run(self, *words: str, status: int = 0, **options: Any) -> str:
        """The standard output of a command that ends so."""
        options.setdefault("stdin", None if "input" in options else subprocess.DEVNULL)
        done = subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, timeout=SECONDS, check=False, **options)
        if done.returncode != status:
            raise Failed(f"podman {' '.join(words)}: status {done.returncode}, expected {status}\n{done.stderr}\n{done.stdout}")
        return done.stdout if status == 0 else done.stdout + done.stderr

    def started(self, *words: str) -> str:
        """A container in the background."""
        return self.run("run", "-d", *words).strip()

    def until(self, name: str, text: str) -> None:
        """Waits until a container has printed a text."""
        due = time.monotonic() + 30
        while text not in (said := self.run("logs", name)):
            if time.monotonic() > due:
                raise Failed(f"{name} has printed {said!r}, and not {text!r}")
            time.sleep(0.05)

    def terminal(self, *words: str, typed: bytes, until: bytes) -> bytes:
        """The text that a command shows on a terminal, on which something is typed."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execvpe(self.command()[0], self.command(*words), self.environment)
        shown, due, sent = b"", time.monotonic() + 45, False
        while time.monotonic() < due:
            if not select.select([fd], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(fd, 4096)
            except OSError:
                break
            shown += piece
            if not sent and (b"# " in shown or b"$ " in shown):
                os.write(fd, typed)
                sent = True
        os.close(fd)
        os.kill(pid, 9) if os.waitpid(pid, os.WNOHANG) == (0, 0) else None
        if until not in shown:
            raise Failed(f"podman {' '.join(words)} shows {shown!r}, and not {until!r}")
        return shown


def equals(found: object, expected: object, what: str = "") -> None:
    if found != expected:
        raise Failed(f"{what}: {found!r}, expected {expected!r}")


def contains(text: str, *parts: str) -> None:
    for part in parts:
        if part not in text:
            raise Failed(f"{part!r} is not in {text!r}")


def run_prints(podman: Podman) -> None:
    equals(podman.run("run", "--rm", "-i", IMAGE, "sh", "-c", "echo hello; cat", input="typed\n"), "hello\ntyped\n")
    podman.run("run", "--rm", IMAGE, "sh", "-c", "exit 7", status=7)
    contains(podman.run("run", "--rm", IMAGE, "nosuch", status=127), "executable file not found in $PATH")


def run_terminal(podman: Podman) -> None:
    podman.terminal("run", "--rm", "-it", IMAGE, "sh", typed=b"tty; stty size; echo one''two\nexit\n", until=b"onetwo")


def exec_and_logs(podman: Podman) -> None:
    name = podman.started(IMAGE, "sh", "-c", "echo begun; exec sleep 1000")
    podman.until(name, "begun")
    equals(podman.run("exec", name, "echo", "inside"), "inside\n")
    podman.run("exec", name, "sh", "-c", "exit 5", status=5)
    equals(podman.run("exec", "-i", name, "cat", input="typed"), "typed")
    equals(podman.run("exec", "-e", "A=b", "-w", "/tmp", "-u", "5:6", name, "sh", "-c", "echo $A $PWD $(id -u) $(id -g)"), "b /tmp 5 6\n")
    podman.terminal("exec", "-it", name, "sh", typed=b"echo one''two\nexit\n", until=b"onetwo")
    podman.run("exec", "-d", name, "sh", "-c", "echo made >/tmp/made")
    due = time.monotonic() + 20
    while podman.run("exec", name, "sh", "-c", "cat /tmp/made 2>/dev/null || true") != "made\n":
        if time.monotonic() > due:
            raise Failed("exec -d made nothing")
    podman.run("rm", "-f", "-t", "0", name)


def top(podman: Podman) -> None:
    name = podman.started(IMAGE, "sleep", "1000")
    contains(podman.run("top", name, "aux"), "COMMAND", "sleep")
    podman.run("rm", "-f", "-t", "0", name)


def stats(podman: Podman) -> None:
    name = podman.started("--memory", "300m", IMAGE, "sleep", "1000")
    found = json.loads(podman.run("stats", "--no-stream", "--format", "json", name))[0]
    contains(found["mem_usage"], "314.6MB")
    if found["pids"] in ("0", "--"):
        raise Failed(f"{found}")
    podman.run("rm", "-f", "-t", "0", name)


def pause(podman: Podman) -> None:
    name = podman.started(IMAGE, "sleep", "1000")
    podman.run("pause", name)
    equals(podman.run("inspect", "-f", "{{.State.Status}}", name), "paused\n")
    podman.run("exec", name, "true", status=255)
    podman.run("unpause", name)
    podman.run("exec", name, "true")
    podman.run("rm", "-f", "-t", "0", name)


def signals_and_stop(podman: Podman) -> None:
    name = podman.started(IMAGE, "sh", "-c", "trap 'echo hup' HUP; trap 'exit 3' TERM; echo begun; while true; do sleep 1; done")
    podman.until(name, "begun")
    podman.run("kill", "-s", "HUP", name)
    podman.until(name, "hup")
    podman.run("stop", "-t", "20", name)
    equals(podman.run("inspect", "-f", "{{.State.Status}} {{.State.ExitCode}}", name), "exited 3\n")
    podman.run("start", name)
    podman.run("kill", name)
    equals(podman.run("wait", name), "137\n")
    podman.run("rm", name)
    contains(podman.run("inspect", name, status=125), "no such")


def with_init(podman: Podman) -> None:
    """The program in front is one for the host: it is left out."""
    contains(podman.run("run", "--rm", "--init", IMAGE, "sh", "-c", "(sleep 0.1 &); echo begun; exit 4", status=4), "begun")


def other_verbs(podman: Podman) -> None:
    name = podman.run("create", IMAGE, "sh", "-c", "echo again; sleep 1000").strip()
    podman.run("init", name)
    podman.run("start", name)
    podman.until(name, "again")
    podman.run("restart", "-t", "0", name)
    equals(podman.run("inspect", "-f", "{{.State.Status}}", name), "running\n")
    podman.run("exec", name, "touch", "/made")
    podman.run("commit", "-q", name, "localhost/committed")
    podman.run("rm", "-f", "-t", "0", name)
    equals(podman.run("run", "--rm", "localhost/committed", "ls", "/made"), "/made\n")
    podman.run("rmi", "localhost/committed")


def inspect_and_ps(podman: Podman) -> None:
    name = podman.started("--name", "box", "--hostname", "named", IMAGE, "sleep", "1000")
    found = json.loads(podman.run("inspect", "box"))[0]
    equals((found["State"]["Running"], found["OCIRuntime"], found["Id"]), (True, "lind", name))
    contains(podman.run("ps"), "box")
    equals(podman.run("exec", "box", "hostname"), "named\n")
    podman.run("rm", "-f", "-t", "0", "box")


def copies(podman: Podman) -> None:
    (podman.folder / "file").write_text("from here\n")
    name = podman.started(IMAGE, "sleep", "1000")
    podman.run("cp", str(podman.folder / "file"), f"{name}:/tmp/there")
    equals(podman.run("exec", name, "cat", "/tmp/there"), "from here\n")
    podman.run("exec", name, "sh", "-c", "echo changed >/tmp/there")
    podman.run("cp", f"{name}:/tmp/there", str(podman.folder / "back"))
    equals((podman.folder / "back").read_text(), "changed\n")
    contains(podman.run("diff", name), "/tmp/there")
    podman.run("rm", "-f", "-t", "0", name)


def volumes(podman: Podman) -> None:
    podman.run("run", "--rm", "-v", "kept:/data", IMAGE, "sh", "-c", "echo kept >/data/file")
    equals(podman.run("run", "--rm", "-v", "kept:/data:ro", IMAGE, "sh", "-c", "cat /data/file; echo no >/data/file || true"), "kept\n")
    place = podman.folder / "bound"
    place.mkdir(exist_ok=True)
    place.chmod(0o777)
    podman.run("run", "--rm", "-v", f"{place}:/data", "--tmpfs", "/scratch:size=1m", IMAGE, "sh", "-c", "echo bound >/data/file; echo x >/scratch/x")
    equals((place / "file").read_text(), "bound\n")
    podman.run("volume", "rm", "kept")


def secrets(podman: Podman) -> None:
    podman.run("secret", "create", "word", "-", input="hidden")
    equals(podman.run("run", "--rm", "--secret", "word", IMAGE, "cat", "/run/secrets/word"), "hidden")
    equals(podman.run("run", "--rm", "--secret", "word,type=env,target=WORD", IMAGE, "sh", "-c", "echo $WORD"), "hidden\n")
    podman.run("secret", "rm", "word")


def healthcheck(podman: Podman) -> None:
    name = podman.started("--health-cmd", "test -e /tmp/fine", "--health-interval", "disable", IMAGE, "sleep", "1000")
    podman.run("healthcheck", "run", name, status=1)
    podman.run("exec", name, "touch", "/tmp/fine")
    podman.run("healthcheck", "run", name)
    podman.run("rm", "-f", "-t", "0", name)


def read_only_and_limits(podman: Podman) -> None:
    equals(podman.run("run", "--rm", "--read-only", IMAGE, "sh", "-c", "echo x >/x || echo refused", ).splitlines()[-1], "refused")
    found = podman.run("run", "--rm", "--memory", "200m", "--pids-limit", "300", IMAGE, "sh", "-c", "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max")
    equals(found.split(), [str(200 << 20), "300"])
    equals(podman.run("run", "--rm", "--user", "1000:5", "--umask", "027", IMAGE, "sh", "-c", "id -u; id -g; umask").split(), ["1000", "5", "0027"])
    contains(podman.run("run", "--rm", "--cap-drop", "ALL", IMAGE, "grep", "CapEff", "/proc/self/status"), "0000000000000000")


def shared_memory(podman: Podman) -> None:
    contains(podman.run("run", "--rm", "--shm-size", "1m", IMAGE, "df", "/dev/shm"), "1024")


def seccomp(podman: Podman) -> None:
    profile = podman.folder / "profile.json"
    profile.write_text(json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}]}))
    found = podman.run("run", "--rm", "--security-opt", f"seccomp={profile}", IMAGE, "sh", "-c", "mkdir /tmp/a || echo refused")
    contains(found, "refused")


def ports(podman: Podman) -> None:
    name = podman.started("-p", "127.0.0.1:18080:80", IMAGE, "httpd", "-f", "-p", "80", "-h", "/etc")
    due = time.monotonic() + 20
    while True:
        try:
            with urllib.request.urlopen("http://127.0.0.1:18080/passwd", timeout=5) as answer:
                contains(answer.read().decode(), "root")
            break
        except OSError as why:
            if time.monotonic() > due:
                raise Failed(f"no answer: {why}") from None
            time.sleep(0.1)
    podman.run("rm", "-f", "-t", "0", name)


def pods(podman: Podman) -> None:
    podman.run("pod", "create", "--name", "pod")
    podman.started("--pod", "pod", "--name", "server", IMAGE, "httpd", "-f", "-p", "8080", "-h", "/etc")
    equals(podman.run("run", "--rm", "--pod", "pod", IMAGE, "sh", "-c", "wget -q -O - http://127.0.0.1:8080/passwd | head -1").split(":")[0], "root")
    equals(podman.run("exec", "server", "hostname"), "pod\n")
    podman.run("pod", "rm", "-f", "-t", "0", "pod")


def kube_play(podman: Podman) -> None:
    document = podman.folder / "pod.yaml"
    document.write_text(POD)
    podman.run("play", "kube", str(document))
    podman.until("played-main", "setting fine 1000")
    podman.run("play", "kube", "--down", str(document))


POD = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {word: fine}
---
apiVersion: v1
kind: Pod
metadata: {name: played}
spec:
  containers:
  - name: main
    image: localhost/lind-test
    command: [sh, -c, "echo setting $WORD $(id -u); sleep 1000"]
    env: [{name: WORD, valueFrom: {configMapKeyRef: {name: settings, key: word}}}]
    securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true}
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  volumes: [{name: scratch, emptyDir: {}}]
"""

IMAGE = "localhost/lind-test"
CASES = [run_prints, run_terminal, exec_and_logs, top, stats, pause, signals_and_stop, with_init, other_verbs, inspect_and_ps, copies, volumes, secrets, healthcheck,
         read_only_and_limits, shared_memory, seccomp, ports, pods, kube_play]


def run(table: Table, only: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="lind-podman-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        folder.chmod(0o755)
        podman = Podman(folder)
        rootfs.archive(folder / "root.tar")
        try:
            podman.run("import", str(folder / "root.tar"), IMAGE)
            for case in CASES:
                if only in case.__name__:
                    table.case(SUITE, case.__name__, case, podman)
        finally:
            subprocess.run(podman.command("system", "reset", "-f"), env=podman.environment, capture_output=True, check=False, timeout=SECONDS)
