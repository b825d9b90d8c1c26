#!/usr/bin/env python3
"""The checks of a small change, in under five minutes after a build: lints, the unit tests of the crates that it touches, and the
tests of the folders that it touches, on Linux and in a cage.

    scripts/quick.py [--dry-run] [COMMIT]

The change is what differs from COMMIT, by default from where the branch left main (or from the commit before, on main itself).
`make test` has all tests.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
CRATES = {"src/abi": "lind-abi", "src/abigen": "lind-abigen", "src/kernel": "lind-kernel", "src/engine": "lind-engine", "src/passes": "lind-passes",
          "lind-boot": "lind-boot", "lind-oci": "lind-oci"}
# Further tests to run when a file changes: the first pattern that its name begins with decides.
TESTS = [
    (r"src/kernel/sys/(fs|ipc|memory|net|process|signal|time|wait)\b", [r"\1/"]),
    (r"src/kernel/(root|fd)\b", ["fs/"]),
    (r"src/kernel/procfs\b", ["proc/"]),
    (r"src/kernel/mem\b", ["memory/"]),
    (r"src/kernel/terminal\b", ["terminal/"]),
    (r"src/(kernel|engine)\b", ["process/", "signal/", "thread/"]),
    (r"src/passes/wasi\b", ["wasi"]),
    (r"src/(passes|sysroot)\b", ["libc/", "driver"]),
    (r"lind-boot/src/(plan|sandbox|session|overlay)\b", ["sandbox"]),
    (r"lind-boot/src/(cli|tools)/image\b", ["oci"]),
    (r"lind-boot/src/tools/doctor\b", ["cli", "deploy"]),
    (r"lind-boot\b", ["cli"]),
    (r"lind-oci\b", ["oci"]),
    (r"grates/sdk\b", ["grates/sdk", "grates/strace"]),
    (r"grates/(\w+)", [r"grates/\1"]),
    (r"tests/conformance/(\w+/\w+)", [r"\1"]),
    (r"tests/(grates/\w+)", [r"\1"]),
    (r"tests/(\w[\w-]*)/", [r"\1"]),
    (r"python\b|scripts/wheel", ["python"]),
    (r"deploy\b", ["deploy"]),
    (r"scripts/image", ["oci"]),
    (r"(docs|.*\.md)\b", ["docs"]),
    (r"scripts/(bench|\w*bench)", ["benchmarks"]),
    (r"scripts/(driver|bin|lind_compile)", ["driver"]),
]


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True, check=False).stdout.strip()


def changed(commit: str | None) -> list[str]:
    head = git("rev-parse", "HEAD")
    base = commit or next((base for ref in ("origin/main", "main") if (base := git("merge-base", ref, "HEAD")) not in ("", head)), "HEAD~1")
    names = git("diff", "--name-only", base).split("\n") + git("ls-files", "--others", "--exclude-standard").split("\n")
    return sorted({name for name in names if name})


def tests(names: list[str]) -> list[str]:
    """Prefixes for scripts/test.py; those of no test are left out."""
    known = subprocess.run([sys.executable, str(TOP / "scripts/test.py"), "--list"], capture_output=True, text=True, check=True).stdout.split()
    found: set[str] = set()
    for name in names:
        for pattern, prefixes in TESTS:
            if match := re.match(pattern, name):
                found |= {match.expand(prefix) for prefix in prefixes}
                break
    return sorted(prefix for prefix in found if any(test.startswith(prefix) for test in known))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run none")
    parser.add_argument("commit", nargs="?", metavar="COMMIT", help="the commit that the change is compared with")
    options = parser.parse_args()
    names = changed(options.commit)
    crates = sorted({crate for folder, crate in CRATES.items() if any(name.startswith(f"{folder}/") for name in names)})
    steps = [["make", "--no-print-directory", "check"]]
    if crates:
        steps.append(["cargo", "test", "-q", *(word for crate in crates for word in ("-p", crate))])
    if prefixes := tests(names):
        steps.append(["scripts/test.py", "--no-grates", *prefixes])
    print(f"quick: {len(names)} files changed", flush=True)
    start, failed = time.monotonic(), []
    for step in steps:
        line = shlex.join(step)
        print(f"quick: {line}", flush=True)
        if not options.dry_run and subprocess.run(step, cwd=TOP, check=False).returncode:
            failed.append(line)
    for line in failed:
        print(f"quick: FAILED {line}")
    print(f"quick: {len(steps) - len(failed)} of {len(steps)} steps passed in {time.monotonic() - start:.0f} s")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
