"""`lind-boot import-settings`: settings of other sandboxes become policies that load, and each setting that is lost is named."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import text
from world import BOOT, TOP, Failed, World, ends

CLAUDE = {
    "model": "opus",
    "permissions": {"allow": ["Bash(ls:*)", "WebFetch(domain:docs.example.org)"], "deny": ["Read(secrets/**)", "Edit(/vendor/**)"]},
    "sandbox": {
        "enabled": True,
        "excludedCommands": ["docker"],
        "brandNew": 1,
        "network": {"allowedDomains": ["pypi.org:443", "any * *"], "httpProxyPort": 3128},
        "filesystem": {"allowWrite": ["~/.npm"], "denyWrite": ["locked"], "denyRead": ["~/.ssh"]},
    },
}
SRT = {
    "network": {"allowedDomains": ["example.org", "*.example.net"], "deniedDomains": ["bad.example.net"], "allowUnixSockets": ["/run/a.sock"]},
    "filesystem": {"allowWrite": ["."], "denyWrite": ["locked"], "denyRead": ["secrets"]},
    "ignoreViolations": {"*": ["/usr/bin"]},
}
CODEX = """
model = "m"
default_permissions = "work"
[permissions.work]
extends = ":workspace"
brand_new = 1
[permissions.work.filesystem]
"~/.ssh" = "deny"
[permissions.work.filesystem.":workspace_roots"]
locked = "read"
secrets = "deny"
[permissions.work.network]
enabled = true
proxy_url = "http://127.0.0.1:1"
domains = { "example.org" = "allow" }
"""
# The format, its file below the project, its text, and parts of what is said: each has one line.
SAMPLES = [
    ("claude", ".claude/settings.json", json.dumps(CLAUDE, indent=2),
     ["model: not kept", "permissions.allow[0] Bash(ls:*): not kept", "permissions.deny[0] Read(secrets/**) \"secrets/**\": not kept", "excludedCommands: not kept",
      "sandbox.brandNew: not kept: an unknown key", "allowedDomains[1] \"any * *\": not kept", "httpProxyPort: not kept", "allowWrite[0] \"~/.npm\": not kept",
      "denyRead[0] \"~/.ssh\": holds"]),
    ("srt", "srt.json", json.dumps(SRT),
     ["allowedDomains[1] \"*.example.net\": narrower", "allowUnixSockets[0] \"/run/a.sock\": not kept", "denyRead[0] \"secrets\": not kept", "ignoreViolations: not kept"]),
    ("codex", "config.toml", CODEX,
     ["model: not kept", "permissions.work.brand_new: not kept: an unknown key", "\"~/.ssh\": holds", "\"./secrets\": not kept", "network.proxy_url: not kept"]),
]
# Options for a grate, as a note has them.
GRATE = re.compile(r"add (--grate '.*'), or do not mount it")


def project(world: World) -> Path:
    folder = world.home / "project"
    if not folder.exists():
        (folder / ".claude").mkdir(parents=True)
        (folder / "secrets").mkdir()
        (folder / "secrets" / "key").write_text("secret\n")
        for _, name, content, _ in SAMPLES:
            (folder / name).write_text(content)
    return folder


def boot(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BOOT, *words], cwd=project(world), env=world.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=180, check=False)


def each_format_becomes_a_policy(world: World) -> None:
    for format_, name, _, said in SAMPLES:
        printed = boot(world, "import-settings", name)
        ends(printed, 0, *(f"lind-boot: {name}: " for _ in said[:1]), *said)
        lines = printed.stderr.splitlines()
        if len(lines) != len(said):
            raise Failed(f"{name}: {len(said)} lines expected: {lines}")
        # The same by its name, and into a file.
        own = boot(world, "import-settings", "--format", format_, "-o", f"from-{format_}", name)
        written = world.home / ".config/lind/policies" / f"from-{format_}.toml"
        ends(own, 0, f"{written}: written; lind-boot run --policy from-{format_} uses it")
        if written.read_text() != printed.stdout:
            raise Failed(f"{name}: {written.read_text()!r}, on standard output {printed.stdout!r}")
        explained = boot(world, "run", "--policy", f"from-{format_}", "-v", ".", "--explain", "true")
        ends(explained, 0)
        for rule in ("/locked cannot be changed or created", "/.git", "network: out "):
            if rule not in explained.stdout:
                raise Failed(f"{name}: {rule} is not in {explained.stdout}")
        if "any *" in explained.stdout.split("\nline\n")[0]:
            raise Failed(f"{name}: {explained.stdout}")


def what_is_not_kept_can_be_had(world: World) -> None:
    """The options that a note names hide the file that the policy cannot."""
    if not any((TOP / "lindfs/bin" / f"cat{suffix}").exists() for suffix in ("", ".cwasm", ".wasm")):
        return
    for format_, name, _, _ in SAMPLES:
        said = boot(world, "import-settings", name).stderr
        found = GRATE.search(said)
        if not found:
            raise Failed(f"{name}: no option in {said}")
        sandbox = ["run", "--policy", f"from-{format_}", "-v", "."]
        if (open_ := boot(world, *sandbox, "cat", "secrets/key")).stdout != "secret\n":
            raise Failed(f"{name}: {open_.stderr}")
        hidden = boot(world, *sandbox, *shlex.split(found[1]), "cat", "secrets/key")
        if hidden.stdout or "may not be read" not in hidden.stderr:
            raise Failed(f"{name}: {found[1]}: {hidden.stdout} {hidden.stderr}")


def hostile_settings(world: World) -> None:
    """Texts that a project brings along: none acts on the terminal or becomes a line of the policy."""
    nasty = text.NASTY
    bad = {"network": {"allowedDomains": [nasty, f"{nasty}.example.org"], "deniedDomains": []},
           "filesystem": {"allowWrite": [".", nasty], "denyWrite": [nasty, "x\"]\nnetwork = \"host\""], "denyRead": [nasty, f"~/{nasty}"]}, nasty: {nasty: 1}}
    folder = project(world)
    (folder / "nasty.json").write_text(json.dumps(bad))
    (folder / "nasty.toml").write_text(f"sandbox_mode = \"read-only\"\n{json.dumps(nasty)} = 1\n")
    for name in ("nasty.json", "nasty.toml"):
        done = boot(world, "import-settings", name)
        ends(done, 0, "FORGED")
        text.fit(name, subprocess.CompletedProcess(done.args, done.returncode, done.stdout.encode(), done.stderr.encode()), "FORGED")
        (world.folder / "nasty-policy.toml").write_text(done.stdout)
        explained = boot(world, "run", "--policy", str(world.folder / "nasty-policy.toml"), "-v", ".", "--explain", "true")
        ends(explained, 0)
        if "host's network" in explained.stdout or "network: out" in explained.stdout:
            raise Failed(explained.stdout)
    for content, said in (("{\"network\": {\"allowedDomains\": [1]}}", ":1:33: network.allowedDomains[0]: invalid type: integer `1`, expected a string"),
                          ("{\"network\": " + "[" * 100_000, ":1:"), ("sandbox_mode = " + "[" * 100_000, ":1:"), ("{\"network\": {\"allowedDomains\": \"" + "a" * 900_000, ":1:"),
                          ("{}" + " " * (1 << 20), "has more than 1 MiB"),
                          (json.dumps({"network": {"allowedDomains": [f"{n}.a" for n in range(40_000)], "deniedDomains": [f"{n}.b" for n in range(20_000)]}}),
                           "the settings have more than 4096 rules"), ("{}", "has no settings of a sandbox"), ("sandbox_mode = 7\n", ":1:16: sandbox_mode: ")):
        (folder / "bad").write_text(content)
        done = boot(world, "import-settings", "bad")
        ends(done, 125, f"bad{said}" if said[0] == ":" else said)
        if done.stdout or len(done.stderr) > 1000:
            raise Failed(f"{content[:40]}: {done.stdout[:100]!r} {done.stderr[:100]!r}")
    (folder / "bad").write_bytes(b"{\n\xff}")
    ends(boot(world, "import-settings", "bad"), 125, "bad:2:1: is not UTF-8")


def files_that_are_not_ours(world: World) -> None:
    """Neither is a file read or written through a link, nor is one overwritten, nor is half a policy left."""
    folder = project(world)
    kept = world.folder / "kept"
    kept.write_text("kept\n")
    os.symlink(kept, folder / "link.toml")
    os.symlink(world.folder / "nowhere", folder / "dangling.toml")
    os.symlink("srt.json", folder / "linked.json")
    (folder / "target").write_text("kept\n")
    os.symlink("target", folder / "alias")
    (folder / "aliases.json").write_text(json.dumps({"filesystem": {"allowWrite": ["."], "denyWrite": ["alias"]}}))
    protected = boot(world, "import-settings", "aliases.json")
    ends(protected, 0)
    if '"target"' not in protected.stdout or '"alias"' not in protected.stdout:
        raise Failed(protected.stdout)
    os.mkfifo(folder / "fifo")
    for words, said in ((["-o", "./link.toml", "srt.json"], "-o ./link.toml: is a symbolic link"), (["-o", "./dangling.toml", "srt.json"], "is a symbolic link"),
                        (["linked.json"], "import-settings linked.json: is a symbolic link"), (["-o", str(kept), "srt.json"], "there is such a file"),
                        (["fifo"], "import-settings fifo: not a regular file"),
                        (["-o", "./fifo", "srt.json"], "-o ./fifo: not a regular file"), (["-o", "agent", "srt.json"], "comes with lind-boot"), (["nowhere.json"], "nowhere.json: No such file"), (["-o", "./new.toml", "config.toml", "--format", "srt"], "config.toml:2:1: ")):
        ends(boot(world, "import-settings", *words), 125, said)
    if kept.read_text() != "kept\n" or (world.folder / "nowhere").exists() or (folder / "new.toml").exists():
        raise Failed("a file was written")
    if Path("/dev/full").exists():
        ends(boot(world, "import-settings", "-o", "/dev/full", "srt.json"), 125, "No space left on device")


TESTS = [each_format_becomes_a_policy, what_is_not_kept_can_be_had, hostile_settings, files_that_are_not_ours]
