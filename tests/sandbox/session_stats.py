"""The amounts that a session uses: `session stats`, and the message of that name."""

from __future__ import annotations

import json
import time

from second import connect, until_ready
from sessions import start
from world import Failed, World, holds, same

TOOL = "/tool/command"


def amounts_and_limits(world: World) -> None:
    start(world, "--memory", "64M", "--cpu", "50s", "--disk", "1M", "--files", "300", "--cages", "20")
    session = connect(world)
    before = session.ask("stats")
    same("keys", sorted(before), ["cages", "commands", "cpu", "denials", "disk", "files", "io", "memory", "name", "pid", "seconds", "threads"])
    limits = {name: before[name]["limit"] for name in ("memory", "cpu", "disk", "files", "cages", "threads")}
    same("limits", limits, {"memory": 64 << 20, "cpu": 50.0, "disk": 1 << 20, "files": 300, "cages": 20, "threads": None})
    same("not counted", before["threads"], {"used": None, "peak": None, "limit": None})
    same("nothing runs", (before["commands"], before["disk"]["used"], before["denials"]), (0, 0, 0))
    session.send(do="exec", argv=[TOOL, "spin"], detach=True)
    number = session.receive()[0]["started"]["id"]
    time.sleep(0.5)
    during = session.ask("stats")
    same("one runs", (during["commands"], during["cages"]["used"]), (1, before["cages"]["used"] + 1))
    for name, key in (("cpu", "used"), ("memory", "used"), ("files", "used"), ("memory", "peak")):
        if not during[name][key] > before[name][key]:
            raise Failed(f"{name} {key}: {before[name][key]} before, {during[name][key]} now")
    if not 0 < during["memory"]["resident"] <= during["memory"]["resident_peak"]:
        raise Failed(f"memory: {during['memory']}")
    session.ask("signal", id=number, signal="KILL")
    session.ask("write", b"x" * 5000, path="written")
    session.run("/tool/probe", "c:192.0.2.1:22")
    after = session.ask("stats")
    same("ended", (after["commands"], after["cages"]["used"] <= during["cages"]["used"] + 1, after["denials"]), (0, True, 1))
    same("written", (after["disk"]["used"], after["disk"]["peak"]), (5000, 5000))
    same("memory is given back", after["memory"]["used"] < after["memory"]["peak"], True)
    if after["seconds"] <= before["seconds"]:
        raise Failed("the time stands still")


def without_limits(world: World) -> None:
    policy = world.home / "open.toml"
    policy.write_text('network = "none"\n')
    start(world, "--policy", str(policy))
    stats = connect(world).ask("stats")
    same("no limits", [stats[name]["limit"] for name in ("memory", "cpu", "disk", "files", "cages")], [None] * 5)
    same("known all the same", (stats["cages"]["used"] >= 1, stats["memory"]["resident"] > 0, stats["cpu"]["used"] > 0), (True, True, True))


def the_command_prints_a_table(world: World) -> None:
    start(world, "--memory", "64M", "--disk", "1536K")
    session = connect(world)
    session.send(do="exec", argv=[TOOL, "wait"], stdin=True)
    until_ready(session)
    out = world.boot("session", "stats", "one").stdout
    holds("head", out, "session one, up ")
    rows = {line[:18].strip(): line[18:].split() for line in out.splitlines()[1:]}
    same("memory", rows["memory mapped"][-2:], ["64.0", "MiB"])
    same("disk", rows["written to files"], ["0", "B", "0", "B", "1.5", "MiB"])
    same("no limit", rows["memory touched"][-1], "-")
    found = json.loads(world.boot("session", "stats", "one", "--json").stdout)
    same("exact", (found["disk"]["limit"], found["commands"]), (1536 << 10, 1))
    same("no session", world.boot("session", "stats", "two").returncode, 125)


TESTS = [amounts_and_limits, without_limits, the_command_prints_a_table]
