#!/usr/bin/env python3
"""The phases of child.c in Python, the language of most programs that look at a project. Standard library only: it also runs in a cage.

child.c says how it is called.
"""

import hashlib
import json
import mmap
import os
import stat
import subprocess
import sys
import time


class Child:
    """The digest of all that was read, and the time of each phase."""

    def __init__(self):
        self.digest = hashlib.sha256()
        self.phases = {}
        self.counts = {}
        self.started = self.before = time.perf_counter()

    def begin(self):
        self.before = time.perf_counter()

    def phase(self, name):
        self.phases[name] = time.perf_counter() - self.before
        self.before = time.perf_counter()

    def seen(self, *what):
        for each in what:
            self.digest.update(each if isinstance(each, bytes) else f"{each}\n".encode())

    def end(self):
        total = time.perf_counter() - self.started
        print(json.dumps({"total": total, "digest": self.digest.hexdigest(), "phases": self.phases, "counts": self.counts}))


def discover():
    """Two walks: one for files, one for directories."""
    files = [os.path.join(top, name) for top, _, names in os.walk(".") for name in names]
    directories = [top for top, _, _ in os.walk(".")]
    return sorted(name for name in files if not os.path.islink(name)), sorted(directories)


def scan(child, files, keep):
    for name in files:
        with open(name, "rb") as file:
            data = file.read()
        child.seen(hashlib.sha256(data[:keep]).digest(), len(data))


def stat_storm(child, files, times):
    for _ in range(times):
        for name in files:
            for st in os.stat(name), os.lstat(name):
                child.seen(st.st_size, stat.S_IFMT(st.st_mode))


def readdir_storm(child, directories, times):
    for _ in range(times):
        for name in directories:
            child.seen(*sorted(os.listdir(name)))


def readdir_plus_storm(child, directories, times):
    for _ in range(times):
        for name in directories:
            with os.scandir(name) as entries:
                found = sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)
            for entry, st in found:
                child.seen(entry, 0 if stat.S_ISDIR(st.st_mode) else st.st_size, stat.S_IFMT(st.st_mode))


def open_loop(child, files, times, size):
    for _ in range(times):
        for name in files:
            with open(name, "rb") as file:
                child.seen(file.read(size))


def read_path(child, most_files, most_directories, keep, stats, readdirs, opens, size, repeats, repeated):
    child.begin()
    files, directories = discover()
    child.phase("tree_discovery")
    files, directories = files[:most_files], directories[:most_directories]
    child.begin()
    scan(child, files, keep)
    child.phase("bounded_file_scan")
    stat_storm(child, files, stats)
    child.phase("stat_lstat_storm")
    readdir_storm(child, directories, readdirs)
    child.phase("readdir_storm")
    readdir_plus_storm(child, directories, readdirs)
    child.phase("readdir_plus_storm")
    open_loop(child, files, opens, size)
    child.phase("open_read_close_loop")
    open_loop(child, files[:repeated], repeats, size)
    child.phase("repeated_open_read_close_loop")
    child.counts = {"files": len(files), "directories": len(directories)}


def change_byte(file, at):
    file.seek(at)
    byte = file.read(1)[0]
    file.seek(at)
    file.write(bytes([(byte + 1) % 256]))


def edit(what, file, size, name):
    if what in ("begin", "middle", "end"):
        change_byte(file, {"begin": 0, "middle": size // 2, "end": size - 1}[what])
    elif what == "random":
        place = 1
        for _ in range(100):
            place = (place * 1103515245 + 12345) % 2**32
            change_byte(file, place % size)
    elif what == "truncate":
        file.truncate(size // 2)
    elif what == "append":
        file.seek(size)
        file.write(b"a" * 100)
    elif what == "rename":
        os.rename(name, f"{name}.renamed")
    else:
        with mmap.mmap(file.fileno(), size) as view:
            view[size // 2] = (view[size // 2] + 1) % 256
            view.flush()


def large_edit(child, name, what):
    child.begin()
    with open(name, "r+b", buffering=0) as file:
        edit(what, file, os.fstat(file.fileno()).st_size, name)
        child.phase("edit")
        os.fsync(file.fileno())
    child.phase("fsync")
    total = 0
    with open(name if what != "rename" else f"{name}.renamed", "rb", buffering=0) as file:
        while data := file.read(1 << 20):
            child.seen(data)
            total += len(data)
    child.phase("read_again")
    child.counts = {"bytes": total}


def search(child, names, most, keep, token):
    read = found = 0
    for name in names:
        if read == most:
            break
        if not stat.S_ISREG(os.lstat(name).st_mode):
            continue
        with open(name, "rb") as file:
            data = file.read()
        found += data.count(token.encode())
        child.seen(name, len(data), hashlib.sha256(data[:keep]).digest())
        read += 1
    child.counts |= {"read": read, "found": found}


def edit_some(child, names, most):
    starts = ["src/", "tests/", "docs/", ""]
    ordered = sorted(names, key=lambda name: next(i for i, start in enumerate(starts) if name.startswith(start)))
    chosen = [name for name in ordered if stat.S_ISREG(os.lstat(name).st_mode)][:most]
    size = 0
    for name in chosen:
        with open(name, "ab", buffering=0) as file:
            file.write(b"one more line\n")
            os.fsync(file.fileno())
            size += os.fstat(file.fileno()).st_size
    child.counts |= {"edited": len(chosen), "edited_bytes": size}


def git_work(child, mirror, program, files, keep, edits, token, fsck):
    def git(*words):
        out = subprocess.run([program, *words], stdout=subprocess.PIPE, check=True).stdout
        child.seen(out, len(out))
        return out

    child.begin()
    subprocess.run([program, "clone", "--quiet", "--local", "--no-hardlinks", mirror, "work"], check=True)
    child.phase("clone")
    os.chdir("work")
    subprocess.run([program, "checkout", "--quiet", "-B", "overlay-benchmark"], check=True)
    git("rev-parse", "HEAD")
    child.phase("checkout")
    git("status", "--short")
    git("status", "--short", "--branch")
    child.phase("status")
    names = [name.decode() for name in git("ls-files", "-z").split(b"\0") if name]
    search(child, names, files, keep, token)
    child.phase("read_search")
    edit_some(child, names, edits)
    child.phase("edit")
    git("diff", "--name-only", "--")
    git("diff", "--stat", "--")
    git("diff", "--", ".")
    child.phase("diff")
    if fsck:
        subprocess.run([program, "fsck", "--strict"], stdout=subprocess.PIPE, check=True)
        child.phase("fsck")


def make_files(child, number):
    child.begin()
    for i in range(number):
        with open(f"made_{i:05}.txt", "xb") as file:
            file.write(f"made_{i:05}.txt".encode().ljust(40, b"\0"))
    child.phase("make")


def main():
    child = Child()
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "list":
        child.counts = {"files": len(discover()[0])}
    elif what == "read-path":
        read_path(child, *map(int, arguments))
    elif what == "large-edit":
        large_edit(child, *arguments)
    elif what == "files":
        make_files(child, int(arguments[0]))
    elif what == "git":
        mirror, program, files, keep, edits, token, fsck = arguments
        git_work(child, mirror, program, int(files), int(keep), int(edits), token, int(fsck))
    else:
        sys.exit("child: which workload?")
    child.end()


if __name__ == "__main__":
    main()
