"""The most frequent mistakes on a command line, with their whole messages: each says what failed, on what, and what to do."""

from __future__ import annotations

from world import BOOT, TOP, Failed, World

# Words after `lind-boot`, the exit status, and standard error. {root}, {home} and {image} are the
# world's.
MISTAKES = [
    ("--root {root} sevem", 127, "sevem: not found in the root {root} or its /bin, with or without .cwasm or .wasm"),
    ("--root {root} nosuch_grate seven", 127, "nosuch_grate: no such grate in {grates}; for a grate inside the root, write a path with a slash"),
    ("--root /nowhere seven", 125, "root directory /nowhere: No such file or directory (os error 2)"),
    ("run nosuch", 127, "nosuch: not found in the sandbox: neither in /home/user nor in /bin, with or without .cwasm or .wasm (image {image})"),
    ("run strace_grate true", 125, "strace_grate: a grate cannot be the command; `lind-boot strace_grate ...` starts it without a sandbox"),
    ("run -v /nowhere true", 125, "-v /nowhere: /nowhere: No such file or directory (os error 2)"),
    ("run -v {home}:/src:w true", 125, "-v {home}:/src:w: w is neither ro, rw nor overlay"),
    ("run -v {home}:src true", 125, "-v {home}:src: src: must be a path of the guest, which begins with /"),
    ("run -v {home}:/ true", 125, "-v {home}:/: /: cannot mount over the root itself; name another path after a colon"),
    ("run --grates /nowhere true", 125, "--grates /nowhere: not a directory"),
    ("run -w here true", 125, "-w here: must be a path of the guest, which begins with /"),
    ("run --policy nosuch true", 125, "--policy nosuch: no such policy; there are agent, build, readonly, untrusted, or name a file (./nosuch)"),
    ("run --allow https://example.org/x true", 125, "--allow https://example.org/x: expected a host, not a URL: --allow example.org:443"),
    ("run --allow a.example --network none true", 125, "--allow a.example cannot be used with --network none"),
    ("session exec nosuch true", 125, "no session nosuch: start it with `lind-boot session start nosuch`, or see `lind-boot session ls`"),
    ("rum true", 127, "rum: not found in the root {image} or its /bin, with or without .cwasm or .wasm; did you mean the command `lind-boot run`?"),
    ("diff nosuch", 125, "nosuch: no such state ({home}/.local/state/lind/overlay/nosuch.db); `lind-boot overlay ls` lists the states"),
]


def messages_of_frequent_mistakes(world: World) -> None:
    names = {"root": world.root, "home": world.home, "image": TOP / "lindfs", "grates": TOP / "build/grates"}
    wrong = []
    for line, status, message in MISTAKES:
        done = world.run(str(BOOT), *line.format(**names).split(), XDG_RUNTIME_DIR=str(world.home))
        expected = f"lind-boot: {message.format(**names)}\n"
        if (done.returncode, done.stderr) != (status, expected):
            wrong.append(f"{line}: {done.returncode}, {done.stderr!r}, expected {status}, {expected!r}")
    if wrong:
        raise Failed("\n".join(wrong))


def values_of_options(world: World) -> None:
    """Options and values that a command does not take: clap prints the option, and the reason is ours."""
    for words, reason in (("run --memory 64 true", "invalid value '64' for '--memory <SIZE>': 64 has no unit: write 64M, or 64B for bytes"),
                          ("run --timeout soon true", "invalid value 'soon' for '--timeout <TIME>': must be a time such as 500ms, 10s, 2m"),
                          ("run -p 80 true", "must be [HOSTADDRESS:]HOSTPORT:PORT, such as 8080:80 or 127.0.0.1:8080:80"),
                          ("session signal s LOUD", "invalid value 'LOUD' for '<SIGNAL>': must be the name or number of a signal, such as TERM, KILL, 15"),
                          ("run --memroy 1G true", "a similar argument exists: '--memory'"),
                          ("session exce s true", "a similar subcommand exists: 'exec'"),
                          ("session exec s -v . true", "lind-boot: this is an option of `lind-boot session start`; write `lind-boot session start ...`\n"),
                          ("-v . true", "lind-boot: this is an option of `lind-boot run`; write `lind-boot run ...`\n")):
        done = world.run(str(BOOT), *words.split())
        if done.returncode != 125 or reason not in done.stderr:
            raise Failed(f"{words}: {done.returncode}, {done.stderr!r}, expected {reason!r}")


TESTS = [messages_of_frequent_mistakes, values_of_options]
