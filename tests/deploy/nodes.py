"""Nodes: the installer on a directory that looks like one, and the doctor about it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from tools import TOP
from world import Skipped, ends, equals

BOOT = TOP / "target" / "release" / "lind-boot"
DEPLOY = TOP / "deploy"
K3S = "var/lib/rancher/k3s/agent/etc/containerd"


def doctor(node: Path) -> dict[str, Any]:
    """The facts that the doctor finds about a node, by name."""
    done = subprocess.run([BOOT, "doctor", f"--node={node}", "--json"], capture_output=True, text=True, timeout=60, check=False)
    found = json.loads(done.stdout)
    equals(done.returncode == 0, found["holds"], "the exit status")
    facts = {fact["name"]: fact for fact in found["node"]}
    for fact in facts.values():
        equals(bool(fact["advice"]) or fact["holds"], True, f"advice about {fact['name']}")
    return facts


def node_of(folder: Path) -> Path:
    node = folder / "node"
    (node / "etc/containerd").mkdir(parents=True)
    (node / "etc/crio/crio.conf.d").mkdir(parents=True)
    (node / K3S).mkdir(parents=True)
    (node / "etc/containerd/config.toml").write_text('version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\n  default_runtime_name = "runc"\n')
    (node / K3S / "config.toml").write_text("version = 3\n")
    return node


def release(folder: Path) -> Path:
    """The directory of a release, as far as the installer looks at it."""
    programs = folder / "lind" / "bin"
    programs.mkdir(parents=True)
    (folder / "lind/lib/lind").mkdir(parents=True)
    for name in ("lind-boot", "lind-oci"):
        shutil.copy(TOP / "target" / "release" / name, programs / name)
    return programs.parent


def install(what: str, node: Path, lind: Path, more: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LIND": str(lind), "RESTART": "no"} | (more or {})
    return subprocess.run(["sh", DEPLOY / "installer/install.sh", what, node], env=env, capture_output=True, text=True, timeout=120, check=False, **options)


def a_restart_that_failed_is_repeated(folder: Path) -> None:
    """The files are as they should be after the first installation, and the engine has not read them."""
    node, lind = node_of(folder), release(folder)
    tools, calls, fails = folder / "tools", folder / "calls", folder / "fails"
    tools.mkdir()
    (tools / "nsenter").write_text(f'#!/bin/sh\necho "$*" >>{calls}\n[ ! -e {fails} ]\n')
    (tools / "nsenter").chmod(0o755)
    fails.touch()
    more = {"RESTART": "yes", "PATH": f"{tools}:{os.environ['PATH']}"}
    first = install("install", node, lind, more)
    equals((first.returncode, "cannot restart containerd" in first.stderr), (1, True), first.stderr)
    fails.unlink()
    second = install("install", node, lind, more)
    equals((second.returncode, "wrote /etc/containerd/config.toml" in second.stdout, "restarted containerd" in second.stdout), (0, False, True), second.stdout + second.stderr)
    third = install("install", node, lind, more)
    equals((third.returncode, "restarted" in third.stdout), (0, False), third.stdout)
    restarted = [line.split()[-1] for line in calls.read_text().splitlines()]
    equals((restarted.count("containerd"), restarted.count("crio"), len(restarted)), (2, 1, 4), restarted)
    last = install("uninstall", node, lind, more)
    equals((last.returncode, (node / "run/lind-installer").exists()), (0, False), last.stderr)


def an_installer_configures_every_engine(folder: Path) -> None:
    node, lind = node_of(folder), release(folder)
    config = node / "etc/containerd/config.toml"
    before = config.read_text()
    facts = doctor(node)
    equals([facts[name]["value"] for name in ("containerd", "k3s", "crio")], ["has no handler lind"] * 3)
    first = install("install", node, lind)
    equals("installed /opt/lind" in first.stdout and "wrote /etc/containerd/config.toml" in first.stdout, True, first.stdout + first.stderr)
    equals(config.read_text().startswith(before), True, "the former lines stay")
    equals((node / K3S / "config-v3.toml.tmpl").exists(), True, "k3s with containerd 2.x")
    equals(first.returncode, 0, "findings of the doctor do not make it fail")
    equals(os.path.realpath(node / "opt/lind/lib/lind/runc/runc"), str(node / "opt/lind/bin/lind-oci"))
    # k3s makes its file of the template when it starts.
    rendered = (node / K3S / "config-v3.toml.tmpl").read_text().replace('{{ template "base" . }}', "version = 3").replace("{{ .SystemdCgroup }}", "true")
    (node / K3S / "config.toml").write_text("\n".join(line for line in rendered.splitlines() if not line.startswith("{{/*")))
    facts = doctor(node)
    for name in ("containerd", "k3s", "crio"):
        equals((facts[name]["value"], facts[name]["holds"]), ("handler lind is /opt/lind/bin/lind-oci", True), name)
    kept = (node / "opt/lind").stat().st_ino
    again = install("install", node, lind)
    equals("wrote" in again.stdout or "installed" in again.stdout, False, f"a second time changes nothing: {again.stdout}")
    equals((node / "opt/lind").stat().st_ino, kept, "the directory stays")
    (node / "opt/lind/bin/lind-oci").unlink()
    equals("which is not a program" in doctor(node)["crio"]["value"], True)
    ends(install("uninstall", node, lind), 0)
    equals((config.read_text(), (node / "opt/lind").exists(), (node / "etc/crio/crio.conf.d/50-lind.conf").exists()), (before, False, False))


def an_installer_says_what_is_missing(folder: Path) -> None:
    (folder / "node").mkdir()
    ends(install("install", folder / "node", folder), 1, "is no release of Lind")
    ends(install("install", folder / "node", release(folder)), 1, "neither containerd nor k3s nor CRI-O")
    node = node_of(folder / "other")
    (node / K3S / "config-v3.toml.tmpl").write_text("# of another\n")
    ends(install("install", node, folder / "lind"), 1, "is there already", "k3s-config-v3.toml.tmpl")


def a_configuration_stays_valid(folder: Path) -> None:
    """The handler is there once, beside all that administrators write, and a mistake changes nothing."""
    node, lind = node_of(folder), release(folder)
    config, template = node / "etc/containerd/config.toml", node / K3S / "config-v3.toml.tmpl"
    by_hand = (DEPLOY / "containerd-1.7.toml").read_text()
    # Without a newline at the end, and with the tables added by hand or in part.
    for text in ("version = 2\nroot = '/var/lib/containerd'", "version = 2\n" + by_hand, "version = 2 # two\n" + by_hand.replace("runtimes.lind", 'runtimes."lind"')):
        config.write_text(text)
        for _ in range(2):
            ends(install("install", node, lind), 0)
            found = tomllib.loads(config.read_text())
            equals(found["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]["lind"]["runtime_type"], "io.containerd.runc.v2", text)
        equals(config.read_text() == text, "lind" in text, "tables written by hand stay as they are")
        ends(install("uninstall", node, lind), 0)
        equals(config.read_text().rstrip("\n"), text.rstrip("\n"))
    for text, why in (
        ("root = '/x'\n", "has no `version = 2`"),
        ("version = 1\n", "has no `version = 2`"),
        ("", "has no `version = 2`"),
        ("[x]\nversion = 2\n", "has no `version = 2`"),
        ('version = 2\ndisabled_plugins = [\n  "io.containerd.grpc.v1.cri",\n]\n', "cri in disabled_plugins"),
        ("version = 2\n# BEGIN lind: written by the installer\nx = 1\n", 'has no line "# END lind"'),
    ):
        config.write_text(text)
        ends(install("install", node, lind), 1, why)
        equals(config.read_text(), text)
    config.write_text('version = 2\ndisabled_plugins = [] # "cri"\n')
    ends(install("install", node, lind), 0)
    # A template with more than the installer's tables is the administrator's.
    own = template.read_text() + "\n[debug]\n  level = 'debug'\n"
    template.write_text(own)
    equals("is left as it is" in ends(install("install", node, lind), 0), True)
    ends(install("uninstall", node, lind), 0)
    equals(template.read_text(), own)


def a_configuration_keeps_its_rights(folder: Path) -> None:
    node, lind = node_of(folder), release(folder)
    config, target = node / "etc/containerd/config.toml", node / "etc/static/containerd.toml"
    target.parent.mkdir()
    config.rename(target)
    owner = (1234, 1234) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(target, *owner)
    target.chmod(0o600)
    # The target of a link is one of the node's.
    for link in ("/etc/static/containerd.toml", "../static/containerd.toml"):
        config.symlink_to(link)
        for what in ("install", "uninstall"):
            ends(install(what, node, lind), 0)
            found = target.stat()
            equals((str(config.readlink()), found.st_mode & 0o777, (found.st_uid, found.st_gid)), (link, 0o600, owner), what)
            equals("runtimes.lind" in target.read_text(), what == "install")
        config.unlink()


def a_full_disk_leaves_the_file(folder: Path) -> None:
    node, lind = node_of(folder), release(folder)
    ends(install("install", node, lind), 0)
    config = node / "etc/containerd/config.toml"
    text = "version = 2\n" + "# settings of the administrator\n" * 200
    config.write_text(text)

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6400, 6400))

    # `restore_signals` would make the limit deadly, instead of an error.
    wrote = install("install", node, lind, preexec_fn=little_room, restore_signals=False)
    ends(wrote, 1, "cannot write /etc/containerd/config.toml.lind")
    equals(config.read_text() == text, True, "the file is as it was")
    equals([path.name for path in config.parent.iterdir()], ["config.toml"], "no other files")


def containerd_is_asked_first(folder: Path) -> None:
    """A file that the node's containerd does not read is not put into place."""
    program = shutil.which("containerd")
    if not program or os.geteuid() != 0:
        raise Skipped("containerd is missing, or the user may not change the root directory")
    node, lind = node_of(folder), release(folder)
    libraries = [word for word in subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout.split() if word.startswith("/")]
    for file in (program, *libraries):
        place = node / ("usr/bin/containerd" if file == program else file[1:])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    config = node / "etc/containerd/config.toml"
    # A table that is one by a name of its own is there twice for containerd alone.
    text = 'version = 2\n[plugins]\n  "io.containerd.grpc.v1.cri" = {}\n'
    config.write_text(text)
    ends(install("install", node, lind), 1, "containerd would not read it")
    equals((config.read_text(), [path.name for path in config.parent.iterdir()]), (text, ["config.toml"]))
    config.write_text("version = 2\n")
    ends(install("install", node, lind), 0)
    equals("runtimes.lind" in config.read_text(), True)


def the_doctor_looks_at_this_kernel(folder: Path) -> None:
    facts = doctor(folder)
    equals({"kernel", "control groups", "Landlock", "seccomp", "mounts of its own", "lind-oci", "engine"} <= set(facts), True, str(sorted(facts)))
    equals(facts["lind-oci"]["value"], str(BOOT.with_name("lind-oci")))
    equals((facts["engine"]["holds"], str(folder) in facts["engine"]["value"]), (False, True))
    done = subprocess.run([BOOT, "doctor", f"--node={folder}"], capture_output=True, text=True, timeout=60, check=False)
    equals((done.returncode, "neither containerd" in done.stdout), (1, True), done.stdout)
    if not Path("/sys/fs/cgroup").is_dir():
        raise Skipped("there are no control groups here")


TESTS = [
    a_restart_that_failed_is_repeated, an_installer_configures_every_engine, an_installer_says_what_is_missing, a_configuration_stays_valid, a_configuration_keeps_its_rights,
    a_full_disk_leaves_the_file, containerd_is_asked_first, the_doctor_looks_at_this_kernel,
]
