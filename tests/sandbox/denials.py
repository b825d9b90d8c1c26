"""Tests the reports of denials: on standard error, by --denials and by --result."""

from __future__ import annotations

import json
import os
import shlex
import subprocess

from world import Failed, World, holds, needs_tools, same


def lines_say_who_and_how(world: World) -> None:
    done = world.run("-v", ".", str(world.folder / "tool" / "probe"), "c:192.0.2.1:22", "c:192.0.2.1:22", "w:.envrc", "w:.envrc")
    lines = done.stderr.splitlines()
    same("each once", len(lines), 2)
    holds("network", lines[0], "lind-boot: denied: probe (")
    holds("network", lines[0], "connect tcp 192.0.2.1:22: no rule allows it: Permission denied (EACCES); instead: work without it, or ask for access; to allow it: --allow 192.0.2.1:22")
    holds("files", lines[1], f"open {world.project}/.envrc: may not be changed")
    holds("the command's own way out", lines[1], "; instead: use another name, or a directory in /tmp, or ask for access; ")
    holds("the starter's", lines[1], "; to allow it: --allow-name .envrc")


def objects_say_all(world: World) -> None:
    file, result = world.home / "denials", world.home / "result"
    options = ["-v", ".", "--denials", str(file), "--result", str(result)]
    world.run(*options, str(world.folder / "tool" / "probe"), "c:192.0.2.1:22", "m:.vscode")
    found = [json.loads(line) for line in file.read_text().splitlines()]
    same("count", (len(found), json.loads(result.read_text())["denials"]), (2, 2))
    keys = {"time", "grate", "rule", "call", "arguments", "error", "program", "cage", "instead", "hint"}
    same("keys", set(found[0]), keys)
    same("network", [found[0][key] for key in ["grate", "call", "program", "hint"]], ["net", "connect", "probe", "--allow 192.0.2.1:22"])
    same("files", [found[1][key] for key in ["grate", "call", "arguments"]], ["write_filter", "mkdir", f"{world.project}/.vscode"])


def a_number_is_an_open_file(world: World) -> None:
    done = world.run("-v", ".", "--result", "2", "--denials", "1", str(world.folder / "tool" / "probe"), "c:192.0.2.1:22")
    holds("denial", done.stdout, '"call":"connect"')
    holds("result", done.stderr, '"denials":1')


def looking_is_not_told(world: World) -> None:
    """How a C library sorts addresses, and how programs find out whether there is IPv6: nothing is sent or heard."""
    probe = str(world.folder / "tool" / "probe")
    for options in ((), ("--allow", "192.0.2.1:443")):
        done = world.run("-v", ".", *options, probe, "a:192.0.2.9", "a:127.0.0.1")
        ends = ["ask 192.0.2.9: ok", "send 192.0.2.9: Destination address required", "bind 192.0.2.9: Permission denied"]
        # The loopback is the sandbox's own, and nobody receives there.
        ends += ["ask 127.0.0.1: ok", "send 127.0.0.1: Connection refused", "bind 127.0.0.1: ok"]
        same(f"{options}", done.stdout.splitlines()[1:], ends)
        same(f"{options}", done.stderr.count("denied: "), 1)


def limits_are_told_once(world: World) -> None:
    result = world.home / "result"
    done = world.run("-v", ".", "--cpu", "300ms", "--result", str(result), str(world.folder / "tool" / "command"), "spin")
    same("status", done.returncode, 137)
    lines = done.stderr.splitlines()
    same("one line", len(lines), 1)
    holds("says which", lines[0], "command (")
    holds("says which", lines[0], "limit cpu: ")
    same("result", json.loads(result.read_text())["limit"], "cpu")


def the_result_has_signals_and_peaks(world: World) -> None:
    result = world.home / "result"
    command = str(world.folder / "tool" / "command")

    def of(*words: str) -> dict:
        world.run("-v", ".", "--memory", "1G", "--cages", "10", "--cpu", "60s", "--result", str(result), command, *words)
        return json.loads(result.read_text())

    for signal in (9, 11, 15):
        same("by a signal", [of("die", str(signal))[key] for key in ("signal", "status", "limit")], [signal, None, None])
    found = of("files")
    same("by itself", [found[key] for key in ("signal", "status", "timed_out")], [None, 0, False])
    same("limits", {name: amounts["limit"] for name, amounts in found["peaks"].items()}, {"memory": 1 << 30, "cages": 10, "cpu": 60, "files": 4096})
    for name, amounts in found["peaks"].items():
        same(name, 0 < amounts["peak"] < amounts["limit"], True)
    if not 2 <= found["cages"] <= 10:
        raise Failed(f"{found['cages']} cages")
    same("nothing of it is explained", "--learn" in world.run("--result", str(result), "--explain", command).stdout, False)


def hints(world: World, *words: str, options: tuple[str, ...] = ("-v", ".")) -> list[dict]:
    """The hints for the denials of the probe with these words."""
    file = world.runtime / "denials"
    done = world.run(*options, "--denials", str(file), str(world.folder / "tool" / "probe"), *words)
    told = [json.loads(line) for line in file.read_text().splitlines()]
    for denial in told:
        if denial["hint"]:
            holds("the line has the hint", done.stderr, f"; to allow it: {denial['hint']}\n")
    return told


def hints_can_be_followed(world: World) -> None:
    """Each is about what was refused: with it, this is not refused again."""
    words = ["c:192.0.2.1:19999", "u:/usr/s", "u:@name", "u:@odd*[name]?\\", "u:@$(touch${IFS}RAN)'"]
    told = hints(world, *words)
    rules = [shlex.split(denial["hint"]) for denial in told if denial["hint"]]
    same("rules", [rule[1] for rule in rules if rule[0] == "--allow"],
         ["192.0.2.1:19999", "in unix:/usr/s"])
    again = hints(world, *words, options=("-v", ".", *(word for rule in rules for word in rule)))
    same("denials then", [denial["arguments"] for denial in again], [])


def a_hint_is_of_one_word_or_none(world: World) -> None:
    """The text of a guest does not run as code where a hint is pasted; a denial that no rule can allow has no hint."""
    names = ["@a $(touch RAN):1", "@tcp *:1-65535", "@line\nfeed", "@\x1b[2J", "@\u202e", "@", "@;touch RAN", "@`touch RAN`"]
    told = hints(world, *(f"u:{name}" for name in names))
    script = world.runtime / "pasted"
    script.write_text("".join(f"true {denial['hint']}\n" for denial in told if denial["hint"]))
    subprocess.run(["bash", "-e", script], cwd=world.project, env={"PATH": os.environ["PATH"]}, check=True)
    same("nothing ran", (world.project / "RAN").exists(), False)
    same("only what a rule can say", [denial["hint"] for denial in told if denial["hint"]], [])
    same("no other", any("65535" in (denial["hint"] or "") or "--network" in (denial["hint"] or "") for denial in told), False)


def a_refused_look_up_names_the_host(world: World) -> None:
    """It fails at once, with and without rules for others."""
    for options in ((), ("--allow", "192.0.2.1:19999")):
        file = world.runtime / "denials"
        done = world.run("-v", ".", *options, "--denials", str(file), str(world.folder / "tool" / "probe"), "h:denied.example.org")
        holds("at once", done.stdout, "look up denied.example.org: -11, at once")
        told = [json.loads(line) for line in file.read_text().splitlines()]
        same(f"{options}", {(denial["arguments"], denial["hint"]) for denial in told}, {("look up denied.example.org", "--allow denied.example.org")})
        same("one line", len(done.stderr.splitlines()), 1)


def denials_are_bounded(world: World) -> None:
    """However long the names are; see `objects_are_bounded_and_the_last_says_so` for the file's end."""
    deep = "/".join(["\x01" * 250] * 3)
    (world.project / deep).mkdir(parents=True)
    if world.user is not None:
        subprocess.run(["chown", "-R", str(world.user), str(world.project)], check=True)
    told = hints(world, f"w:{deep}/.envrc")
    same("left out", "bytes left out]" in told[0]["arguments"], True)
    same("size", len((world.runtime / "denials").read_bytes()) < 6000, True)


def limits_name_no_grate(world: World) -> None:
    for limit in [("--memory", "256K"), ("--cages", "1"), ("--files", "3")]:
        done = world.run(*limit, "-v", ".", str(world.folder / "tool" / "probe"))
        # A grate that has no memory says so as well, before or after.
        line = next((line for line in done.stderr.splitlines() if "denied: " in line), done.stderr)
        holds(f"{limit}", line, "denied: the sandbox itself (")
        holds(f"{limit}", line, f"a larger {limit[0]}")


def grates_are_not_spoken_of(world: World) -> None:
    """Of those that end before a program in the background only --verbose tells."""
    needs_tools()
    script = ("bash", "-c", "sleep 2 < /dev/null > /dev/null 2>&1 & echo hi")
    done = world.run("-v", ".", *script)
    same("quiet", (done.returncode, done.stdout, "grate" in done.stderr), (0, "hi\n", False))
    done = world.run("--verbose", "-v", ".", *script)
    holds("verbose", done.stderr, "ended before its clients")
    same("the walls once", done.stderr.count("walls: "), 1)


def a_timeout_leaves_time_to_save(world: World) -> None:
    needs_tools()
    policy, result = world.runtime / "policy.toml", world.runtime / "result"
    done = world.run("--timeout", "3s", "--learn", str(policy), "--result", str(result), "-v", ".", "--", "bash", "-c",
                     "echo x > kept; while :; do :; done")
    same("status", done.returncode, 124)
    holds("learned", policy.read_text(), '"kept"')
    same("result", json.loads(result.read_text())["limit"], "timeout")


def a_session_tells_the_command(world: World) -> None:
    done = world.boot("session", "start", "one", "-v", ".", "-v", f"{world.folder}/tool:/tool:ro")
    if done.returncode:
        raise Failed(done.stderr)
    for _ in range(2):
        done = world.boot("session", "exec", "one", "/tool/probe", "c:192.0.2.1:22")
        holds("at the command", done.stderr, "to allow it: --allow 192.0.2.1:22")
    other = world.boot("session", "exec", "one", "/tool/command", "cwd")
    same("and at no other", other.stderr, "")


TESTS = [lines_say_who_and_how, objects_say_all, a_number_is_an_open_file, looking_is_not_told, limits_are_told_once, the_result_has_signals_and_peaks, hints_can_be_followed,
         a_hint_is_of_one_word_or_none, a_refused_look_up_names_the_host, denials_are_bounded,
         limits_name_no_grate, grates_are_not_spoken_of, a_timeout_leaves_time_to_save, a_session_tells_the_command]
