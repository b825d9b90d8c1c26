#!/usr/bin/env python3
"""Tests the adapters of the Python package against the real frameworks, each in a virtual environment of its own.

    scripts/sdk_test.py [--source] [NAME]...

An adapter is python/src/lind/adapters/NAME.py. python/tests/adapters/NAME.txt pins what it is tested with, by hashes, and
python/tests/adapters/test_NAME.py are its tests: the framework's own, where it has some that can be pointed at a sandbox. The examples of its
docstrings are run too. Where
NAME.sdist.txt names a source archive, the framework's tests are taken from that. Its types are checked, and the example
python/examples/with_NAME.py has to exit with 0. Environments are kept in build/python/NAME; where
NAME.in begins with `# python 3.12`, they have that Python. The package is that of the wheel in dist; with --source, or without a wheel, it is
python/src with the runner of target/release, and the image $LIND_ROOT, which needs bash, GNU's tools and Python. Skips where pip reaches
nothing. The names mcp, e2b and sandboxd stand for the servers, with the stock clients: of npm, which are kept in build/python/node and
build/python/e2b-js, and of PyPI, as python/requirements.txt and python/tests/servers/sandboxd.txt pin them; and under load.
Prints PASS, FAIL and SKIP lines, and `N passed, N failed, N skipped`.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PYTHON = TOP / "python"
TESTS = PYTHON / "tests" / "adapters"
SERVERS = PYTHON / "tests" / "servers"
WORK = TOP / "build" / "python"
RUNNER = TOP / "target" / "release" / "lind-boot"
# An image that scripts/wheel.py has made.
IMAGE = TOP / "build" / "wheel" / "base"
PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
VERSION = re.compile(r"# python (3\.\d+)$", re.MULTILINE)
OWN_IMPORT = re.compile(r"^from \.(_\w+) import", re.MULTILINE)
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed)\b")
MYPY = ["--strict", "--config-file=", "--explicit-package-bases", f"--cache-dir={WORK / 'mypy-adapters'}"]
SECONDS = 1800

sys.path.insert(0, str(TOP / "tests" / "python"))
from tools import TOOLS, get_tools

sys.path.insert(0, str(SERVERS))
from node import get_programs


class Missing(Exception):
    """Something that an adapter is tested with is not there."""


class Totals(collections.Counter[str]):
    """How many passed, failed, and were skipped."""

    def __str__(self) -> str:
        return ", ".join(f"{self[kind]} {kind}" for kind in ("passed", "failed", "skipped"))


def package(source: bool) -> dict[str, str]:
    """The environment in which `import lind` finds the package, and that a runner."""
    wheels = sorted((TOP / "dist").glob("lind_sandbox-*.whl"))
    known = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    if source or not wheels:
        known |= {"PYTHONPATH": str(PYTHON / "src"), "LIND_BOOT": os.environ.get("LIND_BOOT", str(RUNNER))}
        return known | ({"LIND_ROOT": str(IMAGE)} if IMAGE.exists() and "LIND_ROOT" not in known else {})
    target, mark = WORK / "package", WORK / "package.from"
    stamp = f"{wheels[-1].name} {wheels[-1].stat().st_mtime_ns}"
    if not mark.exists() or mark.read_text() != stamp:
        shutil.rmtree(target, ignore_errors=True)
        words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--target", target, wheels[-1]]
        subprocess.run([sys.executable, *words], check=True)
        mark.write_text(stamp)
    known.pop("LIND_BOOT", None)
    known.pop("LIND_ROOT", None)
    return known | {"PYTHONPATH": str(target)}


def interpreter(pins: Path) -> str | None:
    """The Python for what a file pins: the one that it asks for, or this one."""
    asked = VERSION.match(pins.with_suffix(".in").read_text())
    if asked is None or sys.version_info[:2] == tuple(map(int, asked[1].split("."))):
        return sys.executable
    found = shutil.which(f"python{asked[1]}")
    works = found and subprocess.run([found, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode == 0
    kept = sorted(Path.home().glob(f".pyenv/versions/{asked[1]}.*/bin/python"))
    return found if works else str(kept[-1]) if kept else None


def environment(pins: Path) -> Path:
    """The interpreter of a virtual environment, with what a file pins."""
    venv = WORK / pins.stem
    mark, python = venv / "installed.txt", venv / "bin" / "python"
    if mark.exists() and mark.read_text() == pins.read_text():
        return python
    base = interpreter(pins)
    if base is None:
        raise Missing(f"the Python that {pins.with_suffix('.in').relative_to(TOP)} asks for")
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([base, "-m", "venv", venv], check=True)
    if subprocess.run([python, *PIP, "-r", pins], check=False).returncode:
        raise Missing(f"what {pins.relative_to(TOP)} names: pip cannot get it")
    mark.write_text(pins.read_text())
    return python


def sources(name: str, python: Path) -> dict[str, str]:
    """The variable that names the directory of the framework's source archive, if the adapter is tested with one. Its build needs are pinned too."""
    pins, target = TESTS / f"{name}.sdist.txt", WORK / f"{name}.sdist"
    mark = target / "from.txt"
    if not pins.exists():
        return {}
    if not mark.exists() or mark.read_text() != pins.read_text():
        shutil.rmtree(target, ignore_errors=True)
        words = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", "--no-build-isolation"]
        if subprocess.run([python, *words, "--require-hashes", "-d", target, "-r", pins], check=False).returncode:
            raise Missing(f"what python/tests/adapters/{name}.sdist.txt names: pip cannot get it")
        (archive,) = target.glob("*.tar.gz")
        with tarfile.open(archive) as file:
            file.extractall(target, filter="data")
        archive.unlink()
        mark.write_text(pins.read_text())
    return {"LIND_TEST_SOURCES": str(next(path for path in target.iterdir() if path.is_dir()))}


def modules(package: Path, name: str) -> list[Path]:
    """The files of an adapter: its own, and those of its folder that it imports. The examples of their docstrings are tests."""
    wanted, found = [name], []
    while wanted:
        file = package / "lind" / "adapters" / f"{wanted.pop()}.py"
        if file not in found:
            found.append(file)
            wanted += OWN_IMPORT.findall(file.read_text())
    return found


def call(words: list[str | Path], known: dict[str, str]) -> tuple[int, str]:
    """Runs a command, and returns its status and what it said."""
    done = subprocess.run(words, cwd=PYTHON, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode, done.stdout


def run(name: str, known: dict[str, str], totals: Totals) -> None:
    """Tests one adapter."""
    began = time.monotonic()
    python = environment(TESTS / f"{name}.txt")
    known = known | sources(name, python)
    got = time.monotonic()
    words = ["-c", TESTS / "pytest.ini", f"--confcutdir={TESTS}", "--doctest-modules"]
    status, said = call([python, "-m", "pytest", *words, TESTS / f"test_{name}.py", *modules(Path(known["PYTHONPATH"]), name)], known)
    counts = [(int(count), kind) for count, kind in COUNT.findall(said.rstrip().rpartition("\n")[2])]
    for count, kind in counts:
        totals["failed" if kind.startswith("error") else kind] += count
    if status and not any(kind in ("failed", "error", "errors") for _, kind in counts):
        totals["failed"] += 1
    told = ", ".join(f"{count} {kind}" for count, kind in counts) or f"exit status {status}"
    print(f"{'FAIL' if status else 'PASS'} {name}: {told} in {time.monotonic() - got:.0f} s, installed in {got - began:.0f} s", flush=True)
    status, _ = call([sys.executable, "-m", "mypy", *MYPY, f"--python-executable={python}", f"src/lind/adapters/{name}.py"], known | {"PYTHONPATH": str(TOOLS), "MYPYPATH": "src"})
    totals["failed" if status else "passed"] += 1
    print(f"{'FAIL' if status else 'PASS'} {name}: types", flush=True)
    example = PYTHON / "examples" / f"with_{name}.py"
    status, _ = call([python, example], known)
    totals["failed" if status else "passed"] += 1
    print(f"{'FAIL' if status else 'PASS'} {name}: examples/{example.name}", flush=True)


def run_server(name: str, python: Path | str, known: dict[str, str], totals: Totals) -> None:
    """Tests a server with the stock clients, and under load."""
    runner = WORK / "package" / "lind" / "_bundle" / "bin" / "lind-boot"
    known = known | {"LIND_LOADS": "1"} | ({} if "LIND_BOOT" in known else {"LIND_BOOT": str(runner)})
    files = sorted(SERVERS.glob(f"test_{name}*.py"))
    status, said = call([python, "-m", "pytest", "-rf", *files], known)
    counts = [(int(count), kind) for count, kind in COUNT.findall(said.rstrip().rpartition("\n")[2])]
    for count, kind in counts or [(1, "failed")]:
        totals["failed" if kind.startswith("error") else kind] += count
    print(f"{'FAIL' if status else 'PASS'} {name}: {', '.join(f'{count} {kind}' for count, kind in counts)}", flush=True)


def run_mcp(known: dict[str, str], totals: Totals) -> None:
    """Tests `lind mcp`, also with programs from npm."""
    programs = get_programs()
    if programs is None:
        raise Missing("a program of python/tests/servers/node/package-lock.json: npm cannot get it")
    run_server("mcp", sys.executable, with_tools(known) | {"LIND_NODE": str(programs)}, totals)


def run_e2b(known: dict[str, str], totals: Totals) -> None:
    """Tests `lind e2b`."""
    run_server("e2b", sys.executable, with_tools(known), totals)


def run_sandboxd(known: dict[str, str], totals: Totals) -> None:
    """Tests `lind sandboxd` with the client of agent-sandbox, which is not among the tools."""
    run_server("sandboxd", environment(SERVERS / "sandboxd.txt"), known, totals)


def with_tools(known: dict[str, str]) -> dict[str, str]:
    """The environment in which also the tools of python/requirements.txt are found."""
    return known | {"PYTHONPATH": f"{known['PYTHONPATH']}:{TOOLS}"}


OWN = {"e2b": run_e2b, "mcp": run_mcp, "sandboxd": run_sandboxd}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--source", action="store_true")
    options = parser.parse_args()
    there = sorted(OWN) + sorted(path.stem.removeprefix("test_") for path in TESTS.glob("test_*.py"))
    if unknown := set(options.names) - set(there):
        raise SystemExit(f"sdk_test.py: no adapter {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    WORK.mkdir(parents=True, exist_ok=True)
    if not get_tools():
        print("SKIP adapters: pip cannot get what python/requirements.txt names")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    known, totals = package(options.source), Totals()
    for name in options.names or there:
        try:
            OWN[name](known, totals) if name in OWN else run(name, known, totals)
        except Missing as what:
            print(f"SKIP {name}: there is not {what}", flush=True)
            totals["skipped"] += 1
    print(totals)
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
