"""The work that is done in a directory: the directory, the words for the child, and how a round goes."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
from pathlib import Path

from bench.model import found
from bench.overlay.columns import Column, settings


class Workload:
    """`name` is in front of the phases' names in the rows."""

    name = ""
    # Words for a run before the measured one, on the same state: none for a new state.
    before: list[str] | None = None
    # Phases of less than a millisecond need more rounds.
    rounds_times = 1

    def make(self, directory: Path) -> None:
        raise NotImplementedError

    def words(self, column: Column) -> list[str]:
        raise NotImplementedError


def repeated(text: str, size: int) -> bytes:
    """Bytes that differ from file to file and are the same everywhere."""
    piece = hashlib.sha256(text.encode()).digest()
    return (piece * (size // len(piece) + 1))[:size]


class ReadPath(Workload):
    """A tree is looked at and read, in a new state (cold) or in one that has been used before (warm)."""

    rounds_times = 3

    def __init__(self, options: argparse.Namespace, mode: str) -> None:
        self.options, self.name = options, f"read path, {mode}"
        if mode == "warm":
            self.before = self.all_words()

    def make(self, directory: Path) -> None:
        options = self.options
        for i in range(options.dirs):
            (directory / f"dir_{i:03}").mkdir()
        for i in range(options.files):
            (directory / f"dir_{i % options.dirs:03}" / f"file_{i:04}.txt").write_bytes(repeated(f"file {i}", options.file_size_bytes))
        leaf = directory / "nested" / "a" / "b" / "leaf.txt"
        leaf.parent.mkdir(parents=True)
        leaf.write_text("a leaf at the end of a path\n")

    def all_words(self) -> list[str]:
        o = self.options
        return ["read-path", *(str(n) for n in (o.files, o.dirs + 4, o.scan_bytes, o.stat_iterations, o.readdir_iterations, o.open_iterations,
                                                o.open_read_bytes, o.repeated_read_iterations, o.repeated_read_files))]

    def words(self, column: Column) -> list[str]:
        return self.all_words()


CASES = ("begin", "middle", "end", "random", "truncate", "append", "rename", "mmap")


class LargeEdit(Workload):
    """One file of many MiB; the run before only lists the directory, which makes the state."""

    before = ("list",)

    def __init__(self, options: argparse.Namespace, case: str) -> None:
        self.size, self.case, self.name = options.file_size_mib, case, f"large edit, {case}"

    def make(self, directory: Path) -> None:
        with (directory / "large.bin").open("wb") as file:
            for i in range(self.size):
                file.write(repeated(f"piece {i}", 1 << 20))

    def words(self, column: Column) -> list[str]:
        return ["large-edit", "large.bin", self.case]


class Git(Workload):
    """A repository is cloned from a mirror in the directory and worked with."""

    name = "git"
    before = ("list",)

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def make(self, directory: Path) -> None:
        if self.options.source:
            mirror(str(self.options.source), directory)
            return
        source = directory / "source"
        synthetic(source, self.options.search_token)
        mirror(str(source), directory)
        subprocess.run(["rm", "-rf", str(source)], check=True)

    def words(self, column: Column) -> list[str]:
        o = self.options
        return ["git", "mirror.git", column.git(), str(o.read_files), str(o.read_bytes), str(o.edit_files), o.search_token, str(int(not o.skip_fsck))]


def git(*words: str, directory: Path, date: str = "") -> None:
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
    subprocess.run([found("git"), *words], cwd=directory, env=settings() | dates, check=True, capture_output=True)


def mirror(source: str, directory: Path) -> None:
    git("clone", "--quiet", "--mirror", source, "mirror.git", directory=directory)


def synthetic(source: Path, token: str) -> None:
    """96 files of 1 KiB in 8 directories, two commits, a tag."""
    source.mkdir()
    git("init", "--quiet", "--initial-branch=main", directory=source)
    for i in range(96):
        directory = source / ("src", "tests", "docs", "data")[i % 4] / f"part_{i // 4 % 2}"
        directory.mkdir(parents=True, exist_ok=True)
        line = f"{token if i % 12 == 0 else 'line'} of file {i}\n"
        (directory / f"file_{i:03}.txt").write_text((line * (1024 // len(line) + 1))[:1024])
        if i in (63, 95):
            git("add", "--all", directory=source)
            git("commit", "--quiet", "--message", f"files up to {i}", directory=source, date=f"2026-01-02T03:04:{i % 60:02}Z")
    git("tag", "v1", directory=source)


class State(Workload):
    """Takes snapshots of a state with so many changed files, and goes back to them: commands of lind-boot, most of whose time is its start."""

    def __init__(self, files: int) -> None:
        self.before, self.name = ["files", str(files)], f"state, {files} files"

    def make(self, directory: Path) -> None:
        """Empty: the files are in the state alone."""


def chosen(options: argparse.Namespace) -> list[Workload]:
    every: list[Workload] = [ReadPath(options, mode) for mode in options.modes]
    every += [LargeEdit(options, case) for case in options.cases]
    every.append(Git(options))
    every += [State(files) for files in options.state_files]
    return [workload for workload in every if not options.workloads or workload.name.startswith(tuple(options.workloads))]
