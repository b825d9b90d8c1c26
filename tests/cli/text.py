"""Names from guests and users, where lind-boot and grates print them: none contains a control sequence for a terminal, or begins a line."""

from __future__ import annotations

import subprocess
import unicodedata
from pathlib import Path

from world import BOOT, TOP, Failed, World

# A line of ours that is not ours, orders to the terminal in 7 and 8 bits, and characters that
# change the order of a line.
NASTY = "a\nFORGED: b\x1b[2J\u009b1m\u202ec\u2028d\r"
TRAPS = "int main(void) { __builtin_trap(); }\n"
UNSEEN = {"Cc", "Cf", "Zl", "Zp"}


def fit(what: str, done: subprocess.CompletedProcess[bytes], part: str = "") -> None:
    for stream in (done.stdout, done.stderr):
        text = stream.decode("utf-8", errors="surrogateescape")
        wrong = {c for c in text if c not in "\n\t" and (unicodedata.category(c) in UNSEEN or "\udc80" <= c <= "\udcff")}
        if wrong or any(line.startswith("FORGED") for line in text.split("\n")):
            raise Failed(f"{what}: {sorted(wrong)}: {stream!r}")
    if part.encode() not in done.stdout + done.stderr:
        raise Failed(f"{what}: {part} is not in {done.stdout + done.stderr!r}")


def said(world: World, *words: str | bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([str(BOOT), *words], cwd=world.folder, env=world.environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=180, check=False)


def all_that_is_not_seen(world: World) -> None:
    """Every such character that Unicode has, in a name, by Rust and by C."""
    unseen = "".join(chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) in UNSEEN)
    root = ["--root", str(world.root)]
    for at in range(0, len(unseen), 60):
        name = f"FORGED{unseen[at:at + 60]}"
        fit("lind-boot", said(world, *root, name), "not found in the root")
        fit("a grate", said(world, *root, "umask_grate", f"--no{name}", "seven"), "unknown option '--noFORGED")
    fit("no text", said(world, *root, b"\x9b\xff\xe2\x80"), "not found in the root")


def names_in_messages(world: World) -> None:
    source = world.folder / "traps.c"
    source.write_text(TRAPS)
    traps = world.root / f"{NASTY}.cwasm"
    world.run("scripts/lind_compile", "-o", str(traps), str(source))
    root = ["--root", str(world.root)]
    fit("a trap", said(world, *root, NASTY), "SIGILL")
    fit("with functions", said(world, *root, "--backtrace", "--verbose", "--perf", NASTY), "SIGILL")
    fit("for programs", said(world, *root, "--perf=json", NASTY), "SIGILL")
    fit("strace", said(world, *root, "strace_grate", NASTY), "SIGILL")
    log = str(world.folder / f"log{NASTY}")
    fit("witness", said(world, *root, "witness_grate", "--log", log, NASTY), "SIGILL")
    fit("its log", said(world, *root, "witness_grate", "--verify", log, "--show"), " records in ")
    for words in (["inspect", str(traps)], ["inspect", "--json", str(traps)], ["compile", f"{NASTY}.wasm"], ["warm", str(world.root)], ["cache", "ls"],
                  ["cache", "ls", "--json"], ["explain", *root, "strace_grate", NASTY], ["explain", "--json", *root, "strace_grate", NASTY]):
        fit(" ".join(words), said(world, *words))


def names_in_a_sandbox(world: World) -> None:
    project = world.folder / NASTY
    project.mkdir()
    volume = ["-v", f"{project}:/p", "--image", str(world.root)]
    for words in (["--explain"], ["--explain", "--json"], ["-w", f"/{NASTY}"], ["-e", f"{NASTY}=1"], ["--policy", f"./{NASTY}"], ["--memory", NASTY],
                  ["--allow", NASTY], ["--tmpfs", NASTY], ["--env-file", NASTY], ["--denials", f"/nosuch/{NASTY}"]):
        fit(" ".join(words), said(world, "run", *volume, *words, "seven"))
    (project / "file").write_text("old\n")
    for words in (["session", "logs", NASTY], ["diff", NASTY], ["overlay", "rm", NASTY], ["session", "exec", NASTY, "seven"], ["session", "start", NASTY]):
        fit(" ".join(words), said(world, *words), "lind-boot: ")


def both_lists_are_one(_: World) -> None:
    """The table of characters is in Rust and in C."""
    def numbers(path: Path, begin: str, end: str) -> list[int]:
        text = path.read_text()
        table = text[text.index(begin):text.index(end, text.index(begin))]
        return [int(word, 16) if word.startswith("0x") else int(word) for word in
                table.split("=", 1)[1].replace("{", " ").replace("}", " ").replace("(", " ").replace(")", " ").replace("[", " ").replace(",", " ").split()]
    rust = numbers(TOP / "src/kernel/text.rs", "const UNSEEN", "];")
    c = numbers(TOP / "grates/sdk/c/core/text.c", "unseen[]", "};")
    if rust != c:
        raise Failed(f"{rust}\n{c}")


TESTS = [all_that_is_not_seen, names_in_messages, names_in_a_sandbox, both_lists_are_one]
