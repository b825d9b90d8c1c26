"""Overlays on volumes: what a command changes is kept beside the directory, and is looked at, applied, thrown away or kept as a snapshot."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import pwd
import re
import shutil
import sqlite3
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

from world import BOOT, SECONDS, Failed, Skipped, World, holds, needs_tools, same

EDITS = ("a:src/n.txt=41\n", "w:made.txt=new\n", "m:dir", "w:dir/in=in\n", "d:gone.txt", "d:old/z", "v:trash/saved=saved", "d:trash", "v:old=renamed", "a:renamed/y=more\n", "v:src/a.c=src/b.c",
         "d:link", "l:link=other", "x:kept=755", "v:one=third", "v:two=one", "v:third=two")
NAMES = """\
A dir/
A dir/in
D gone.txt
M kept
M link
A made.txt
D old/z
R two -> one
R old/ -> renamed/
M renamed/y
R trash/saved -> saved
R src/a.c -> src/b.c
M src/n.txt
D trash/
R one -> two
"""


def fill(world: World) -> Path:
    """A project to edit."""
    top = world.project
    for folder in ("src", "old/deep", "trash"):
        (top / folder).mkdir(parents=True)
    for name, text in {"src/n.txt": "".join(f"{n}\n" for n in range(1, 41)), "src/a.c": "hello\n", "gone.txt": "bye\n", "old/deep/x": "x\n", "old/y": "y\n", "old/z": "z\n", "trash/saved": "s\n",
                       "one": "1\n", "two": "2\n"}.items():
        (top / name).write_text(text)
    (top / "link").symlink_to("src/a.c")
    if world.user is not None:
        for path in [top, *top.rglob("*")]:
            shutil.chown(path, world.user, world.user) if not path.is_symlink() else None
    return top


def tree(top: Path) -> dict[str, object]:
    """The contents of a directory: modes, and contents or where links lead."""
    found: dict[str, object] = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        else:
            found[name] = (oct(path.stat().st_mode), None if path.is_dir() else path.read_text())
    return found


def edited(world: World, *edits: str, state: str = "test", options: tuple[str, ...] = ()) -> str:
    """Edits the project under an overlay; what was said at the end."""
    done = world.run(*options, "-v", f".:overlay={state}", str(world.folder / "tool" / "edit"), *edits)
    if done.returncode:
        raise Failed(f"status {done.returncode}: {done.stderr}")
    return done.stderr


def verb(world: World, *words: str, status: int = 0) -> str:
    done = world.boot(*words)
    if done.returncode != status:
        raise Failed(f"{' '.join(words)}: status {done.returncode}, {done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if status else "")


def an_edit_is_looked_at_and_applied(world: World) -> None:
    top = fill(world)
    before = tree(top)
    holds("at the end", edited(world, *EDITS), " 15 files changed: lind-boot diff test")
    same("the directory", tree(top), before)
    same("names", verb(world, "diff", "test"), NAMES)
    same("of some", verb(world, "diff", "test", "src", str(top / "kept")), "M kept\nR src/a.c -> src/b.c\nM src/n.txt\n")
    same("JSON", [row["kind"] for row in json.loads(verb(world, "diff", "test", "--json", "src"))], ["R", "M"])
    holds("stat", verb(world, "diff", "test", "--stat"), " src/n.txt | +1 -0\n")
    same("changes that would be applied", verb(world, "apply", "test", "--dry-run"), NAMES)
    same("the directory", tree(top), before)
    verb(world, "export", "test", str(world.home / "copy"))
    by_git = patched(world, top, verb(world, "diff", "test", "--patch"))
    verb(world, "apply", "test")
    same("applied", tree(top), tree(world.home / "copy"))
    if by_git is not None:
        same("patched", by_git, tree(top))
    same("nothing is left", verb(world, "diff", "test"), "")
    holds("applied", (top / "renamed" / "y").read_text(), "y\nmore\n")
    same("changed places", ((top / "one").read_text(), (top / "two").read_text()), ("2\n", "1\n"))


def patched(world: World, top: Path, patch: str) -> dict[str, object] | None:
    """The directory after git has applied a patch; none without git."""
    if not shutil.which("git"):
        return None
    copy = world.folder / "patched"
    shutil.copytree(top, copy, symlinks=True)
    environment = {"HOME": str(world.folder), "GIT_CEILING_DIRECTORIES": str(world.folder), "GIT_DIR": str(world.folder / "none"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["git", "apply", "-"], cwd=copy, input=patch, text=True, capture_output=True, env=environment, check=False)
    same("git apply", (done.returncode, done.stderr), (0, ""))
    # git does not make what has no file in it, and knows no modes but one.
    return tree(copy)


def what_becomes_a_link_is_a_patch(world: World) -> None:
    top = fill(world)
    edited(world, "d:link", "w:link=text\n", "d:one", "l:one=two")
    by_git = patched(world, top, verb(world, "diff", "test", "--patch"))
    verb(world, "apply", "test")
    if by_git is not None:
        same("patched", by_git, tree(top))
    same("a link", os.readlink(top / "one"), "two")


def changes_go_on_in_the_next_run(world: World) -> None:
    top = fill(world)
    edited(world, "a:src/n.txt=41\n", "v:old=renamed")
    edited(world, "a:src/n.txt=42\n", "a:renamed/y=more\n", "h:src/n.txt=again")
    verb(world, "export", "test", str(world.home / "copy"))
    same("text", (world.home / "copy" / "src" / "n.txt").read_text(), (top / "src" / "n.txt").read_text() + "41\n42\n")
    same("a second name", (world.home / "copy" / "again").read_text().splitlines()[-1], "42")
    same("names", verb(world, "diff", "test"), "A again\nR old/ -> renamed/\nM renamed/y\nM src/n.txt\n")
    verb(world, "discard", "test", "src/n.txt", "again", "renamed", "old")
    same("names", verb(world, "diff", "test"), "")


def what_has_changed_below_is_not_overwritten(world: World) -> None:
    top = fill(world)
    edited(world, "a:src/n.txt=ours\n", "w:made.txt=new\n")
    (top / "src" / "n.txt").write_text("theirs\n")
    before = tree(top)
    holds("refused", verb(world, "apply", "test", status=1), "src/n.txt: has been changed in the directory too")
    same("the directory", tree(top), before)
    verb(world, "apply", "test", "made.txt")
    same("applied", (top / "made.txt").read_text(), "new\n")
    same("left", verb(world, "diff", "test"), "M src/n.txt\n")
    verb(world, "apply", "test", "--force")
    holds("forced", (top / "src" / "n.txt").read_text(), "ours\n")


def committed(world: World) -> tuple[Path, str]:
    """The project as a repository; a copy of it with one more commit; and commands that bring that commit into the project."""
    if not shutil.which("git"):
        raise Skipped("the host has no git")
    needs_tools()
    top, copy = world.project, world.folder / "copy"

    def git(at: Path, *words: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "safe.directory=*", "-c", "gc.auto=0")
        subprocess.run(["git", *who, *words], cwd=at, env=world.known, user=world.user, group=world.user, check=True, capture_output=True)

    (top / "still").touch()
    if world.user is not None:
        os.chown(top / "still", world.user, world.user)
    git(top, "init", "-q", "-b", "main")
    git(top, "add", ".")
    git(top, "commit", "-qm", "one")
    shutil.copytree(top, copy, symlinks=True)
    for path in [copy, *copy.rglob("*")]:
        shutil.chown(path, world.user, world.user) if world.user is not None else None
    for name in ("kept", "more", "third"):
        (copy / name).write_text(f"new {name}\n")
        (copy / name).chmod(0o644)
    git(copy, "add", ".")
    git(copy, "commit", "-qm", "two")
    made = [path.relative_to(copy) for path in sorted((copy / ".git" / "objects").rglob("*")) if not (top / path.relative_to(copy)).exists()]
    make = "".join(f"mkdir {path};" if (copy / path).is_dir() else f"cp /copy/{path} {path};" for path in made)
    rest = "cp /copy/.git/refs/heads/main .git/refs/heads/main; cp /copy/.git/logs/HEAD .git/logs/HEAD; cp /copy/kept /copy/more /copy/third ."
    return copy, f"set -e; {make}{rest}; cp /copy/.git/index .git/index.lock; mv .git/index.lock .git/index"


def in_git(world: World, *words: str) -> str:
    done = subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=world.project, env=world.known, user=world.user, group=world.user, check=True, capture_output=True, text=True)
    return done.stdout


def a_commit_is_applied(world: World) -> None:
    """The index may be written again by `git status` on the host meanwhile, but not by staging a file."""
    copy, commands = committed(world)
    done = world.run("-v", ".:overlay=one", "-v", f"{copy}:/copy:ro", "--", "sh", "-c", commands)
    same("commit", (done.returncode, done.stdout), (0, ""))
    os.utime(world.project / "still", (1, 1))
    before = (world.project / ".git" / "index").read_bytes()
    same("status", in_git(world, "status", "--short"), "")
    same("is written", (world.project / ".git" / "index").read_bytes() == before, False)
    names = verb(world, "diff", "one")
    holds("objects", names, "A .git/objects/ (5 objects of git)\n")
    same("without .git", verb(world, "diff", "one", "--exclude", ".git"), "M kept\nA more\nA third\n")
    same("patterns", verb(world, "diff", "one", "--exclude=.git/", "--exclude", "/th?rd", "--exclude", "**/more"), "M kept\n")
    same("not a directory", verb(world, "diff", "one", "--exclude", ".git", "--exclude", "kept/", "--exclude", "x/more"), "M kept\nA more\nA third\n")
    same("each by its name", len(re.findall("^A .git/objects/../[0-9a-f]{38}$", verb(world, "diff", "--name-status", "one"), re.MULTILINE)), 5)
    holds("stat", verb(world, "diff", "--stat", "one"), " .git/objects/ | 5 objects of git\n")
    log = verb(world, "log", "one")
    holds("log", log, " A .git/objects/ (")
    same("log without .git", ".git" in verb(world, "log", "one", "--exclude", ".git").replace("/copy/.git", ""), False)
    looked_at = (world.project / ".git" / "index").read_bytes()
    (world.project / "staged").write_text("theirs\n")
    (world.project / "staged").chmod(0o644)
    in_git(world, "add", "staged")
    refused = verb(world, "apply", "one", status=1)
    holds("staged", refused, ".git/index: has been changed in the directory too")
    same("and nothing else", [line for line in refused.splitlines() if "has been changed" in line][1:], [])
    (world.project / ".git" / "index").write_bytes(looked_at)
    verb(world, "apply", "one", "--exclude", "third", "--exclude", ".git")
    same("the rest", [(world.project / name).exists() for name in ("more", "third")], [True, False])
    verb(world, "apply", "one")
    same("applied", in_git(world, "log", "--format=%s"), "two\none\n")
    same("whole", (in_git(world, "status", "--short"), in_git(world, "fsck", "--no-progress", "--no-dangling")), ("?? staged\n", ""))


def files_with_holes_keep_them(world: World) -> None:
    """A copied file takes no more blocks than before, in the run and after apply."""
    needs_tools()
    with (world.project / "thin").open("wb") as file:
        file.truncate(10 << 20)
        file.seek(5 << 20)
        file.write(b"x" * 8192)
    if world.user is not None:
        os.chown(world.project / "thin", world.user, world.user)
    before = (world.project / "thin").stat().st_blocks
    done = world.run("-v", ".:overlay=thin", "--", "sh", "-c", "stat -c %b thin; printf y | dd of=thin bs=1 seek=1M conv=notrunc 2>/dev/null; stat -c %b thin")
    first, second = map(int, done.stdout.split())
    same("as below, and what was written", (first, before < second <= before + 128), (before, True))
    verb(world, "apply", "thin")
    same("applied", ((world.project / "thin").stat().st_blocks <= before + 256, (world.project / "thin").read_bytes()[1 << 20 : (1 << 20) + 2]), (True, b"y\0"))


def what_came_below_meanwhile_is_not_overwritten(world: World) -> None:
    """A file that a command put in the place of another, or where there was none, has no note of the state before."""
    top = fill(world)
    edited(world, "w:made.txt=ours\n", "w:other=ours\n", "v:other=gone.txt", "w:more=ours\n", "w:dir=ours\n", "m:file")
    (top / "made.txt").write_text("theirs\n")
    (top / "gone.txt").write_text("theirs\n")
    (top / "dir").mkdir()
    (top / "dir" / "theirs").touch()
    (top / "file").touch()
    before = tree(top)
    refused = verb(world, "apply", "test", status=1)
    holds("made", refused, "made.txt: has been changed in the directory too")
    holds("replaced", refused, "gone.txt: has been changed in the directory too")
    holds("a directory in the place of a file", refused, "dir: has been changed in the directory too")
    holds("a file in the place of a directory", refused, "file: has been changed in the directory too")
    same("the directory", tree(top), before)
    (top / "made.txt").unlink()
    (top / "file").unlink()
    shutil.rmtree(top / "dir")
    verb(world, "apply", "test", "--force", "gone.txt")
    verb(world, "apply", "test")
    same("applied", [(top / name).read_text() for name in ("made.txt", "gone.txt", "more")], ["ours\n"] * 3)


def what_shows_through_is_not_made_up(world: World) -> None:
    """A file of which the state has a part only, if the rest is gone."""
    top = fill(world)
    edited(world, "v:src/n.txt=moved", "a:one=more\n")
    (top / "src" / "n.txt").rename(top / "moved")
    before = tree(top)
    holds("refused", verb(world, "apply", "test", status=1), "moved: has been changed")
    same("the directory", tree(top), before)
    holds("forced", verb(world, "apply", "test", "--force", status=1), "moved: No such file")
    same("the other", tree(top) | {"one": None}, before | {"one": None})
    (top / "moved").rename(top / "src" / "n.txt")
    verb(world, "apply", "test", "--force")
    same("applied", (top / "moved").read_text().splitlines()[-1], "40")


def part_of_a_new_directory_is_refused(world: World) -> None:
    top = fill(world)
    edited(world, "m:dir", "w:dir/one=1\n", "w:dir/two=2\n", "v:old=renamed", "w:renamed/more=x\n")
    before = tree(top)
    for part in "dir/one", "renamed/more":
        holds(part, verb(world, "apply", "test", "src", part, status=1), f"{part}: its directory is new or renamed")
    same("the directory", tree(top), before)
    verb(world, "apply", "test", "dir")
    verb(world, "apply", "test")
    same("applied", [(top / name).read_text() for name in ("dir/one", "dir/two", "renamed/more")], ["1\n", "2\n", "x\n"])


def changes_deep_in_a_renamed_directory(world: World) -> None:
    """Below a directory that comes along with it, and without which nothing below is applied."""
    top = fill(world)
    edited(world, "v:old=src/renamed", "a:src/renamed/deep/x=more\n", "w:src/renamed/deep/new=n\n", "m:src/renamed/deep/made", "w:src/renamed/deep/made/in=i\n",
           "d:src/renamed/y")
    holds("a part", verb(world, "apply", "test", "src/renamed/deep/x", status=1), "src/renamed/deep/x: its directory is new or renamed")
    verb(world, "export", "test", str(world.home / "copy"))
    verb(world, "apply", "test")
    same("applied", tree(top), tree(world.home / "copy"))
    same("all of it", verb(world, "diff", "test"), "")


def names_of_apply_are_not_known_before(world: World) -> None:
    """A file that another apply left, or that a command gave such a name, is neither overwritten nor lost."""
    top = fill(world)
    (top / ".lind-apply-1-0").write_text("left\n")
    edited(world, *(f"w:.lind-apply-{cage}-{number}=ours {cage} {number}\n" for cage in range(1, 9) for number in range(1, 4)), "w:zz=last\n",
           options=("--allow-name", ".lind-apply-*"))
    verb(world, "export", "test", str(world.home / "copy"))
    verb(world, "apply", "test")
    same("applied", tree(top), tree(world.home / "copy"))
    same("the file that was left", (top / ".lind-apply-1-0").read_text(), "left\n")


def what_cannot_be_made_stays_in_the_state(world: World) -> None:
    top = fill(world)
    (top / "secret").write_text("x\n")
    edited(world, "w:first=1\n", "w:huge=x", f"t:huge={1 << 62}", "v:old=renamed", "a:src/n.txt=41\n", "a:secret=more\n")
    (top / "secret").chmod(0)
    told = verb(world, "apply", "test", "--dry-run", "--force", status=1) if world.user else "secret: Permission denied"
    holds("said before", told, "secret: Permission denied")
    refused = verb(world, "apply", "test", "--force", status=1)
    holds("refused", refused, "huge: ")
    same("the others", [(top / name).exists() for name in ("first", "renamed", "huge")], [True, True, False])
    (top / "secret").chmod(0o644)
    holds("left", verb(world, "diff", "test"), "A huge\n")
    same("nothing at the top", [name for name in os.listdir(top) if name.startswith(".lind-apply")], [])
    edited(world, f"t:huge={1 << 40}")
    verb(world, "apply", "test", "--force")
    same("size", (top / "huge").stat().st_size, 1 << 40)
    same("first byte", (top / "huge").open("rb").read(2), b"x\0")


def only_what_was_meant_is_applied_to(world: World) -> None:
    """A state says itself which directory it belongs to: one from elsewhere could name any."""
    top = fill(world)
    edited(world, "w:made.txt=x\n")
    file = world.home / ".local" / "state" / "lind" / "overlay" / "test.db"
    refused = verb(world, "apply", str(file), status=125)
    holds("by its path", refused, f"if it is meant for {top}, add --lower {top}")
    holds("shown", world.boot("diff", str(file)).stderr, f"is a state of {top}\n")
    other = world.folder / "other"
    top.rename(other)
    top.mkdir()
    holds("another directory", verb(world, "apply", "test", status=125), "another directory of that name")
    with contextlib.closing(sqlite3.connect(file)) as state, state:
        state.execute("update about set value = '/a\x1b[2J' where key = 'lower'")
    same("a terminal", "\x1b" in verb(world, "diff", "test", status=125), False)
    verb(world, "apply", "--lower", str(other), str(file))
    same("applied", (other / "made.txt").read_text(), "x\n")


def an_interrupted_apply_goes_on(world: World) -> None:
    top = fill(world)
    edited(world, "w:made.txt=x\n", "d:gone.txt", "v:one=first")
    file = states(world) / "test.db"
    with contextlib.closing(sqlite3.connect(file if file.exists() else states(world) / "test" / "state.db")) as state, state:
        state.execute("insert into about values('applying', 'writing 0123456789abcdef ' || ? || ' 1')", (top.stat().st_ino,))
    (top / ".lind-apply-0123456789abcdef-7").write_text("begun")
    for words in ("diff", "test"), ("discard", "test"), ("run", "-v", ".:overlay=test", "true"):
        holds(words[0], verb(world, *words, status=125), "an apply was interrupted; lind-boot apply finishes it")
    verb(world, "apply", "test")
    same("applied", [(top / name).exists() for name in ("made.txt", "gone.txt", "one", "first", ".lind-apply-0123456789abcdef-7")], [True, False, False, True, False])


def is_exported_for_overlayfs(world: World) -> None:
    top = fill(world)
    edited(world, "d:gone.txt", "w:made.txt=new\n", "v:old=renamed", "a:src/n.txt=41\n", "d:one", "m:one", "w:one/in=x\n", "v:trash/saved=saved", "d:trash", "m:trash", "w:trash/other=x\n")
    verb(world, "export", "test", str(world.home / "copy"))
    upper = world.home / "upper"
    verb(world, "export", "--format=overlayfs", "test", str(upper))
    found = {str(path.relative_to(upper)): path for path in upper.rglob("*")}
    same("names", sorted(found), ["gone.txt", "made.txt", "old", "one", "one/in", "renamed", "renamed/deep", "renamed/deep/x", "renamed/y", "renamed/z", "saved", "src", "src/n.txt", "trash",
                                  "trash/other"])
    same("removed", [name for name, path in found.items() if path.is_char_device() and path.stat().st_rdev == 0], [name for name in found if name in ("gone.txt", "old")])
    same("opaque", [name for name, path in found.items() if path.is_dir() and "user.overlay.opaque" in os.listxattr(path)], ["trash"])
    verb(world, "export", "--format=overlayfs", "test", str(world.home / "upper.tar"))
    with tarfile.open(world.home / "upper.tar") as archive:
        same("removed in the tar", sorted(member.name for member in archive if member.ischr()), ["gone.txt", "old"])
        same("opaque in the tar", archive.getmember("trash").pax_headers.get("SCHILY.xattr.user.overlay.opaque"), "y")
    seen = world.folder / "seen"
    script = f"mkdir {world.folder}/work {seen} && mount -t overlay -o userxattr,lowerdir={top},upperdir={upper},workdir={world.folder}/work none {seen} && cp -a {seen} {world.folder}/merged"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if os.geteuid() == 0 and not done.returncode:
        same("mounted", tree(world.folder / "merged"), tree(world.home / "copy"))


def one_run_at_a_time(world: World) -> None:
    fill(world)
    first = world.begin("run", "-v", ".:overlay=test", str(world.folder / "tool" / "edit"), "w:made.txt=first\n", "q:", stdin=subprocess.PIPE)
    try:
        same("begun", first.stdout.readline() if first.stdout else None, "waits\n")
        done = world.run("-v", ".:overlay=test", str(world.folder / "tool" / "edit"), "w:made.txt=second\n")
        same("a second run", (done.returncode, done.stderr), (125, "overlay_grate: --upper test: another run has it open\n"))
        for words in ("diff", "test"), ("apply", "test"), ("discard", "test"):
            said = verb(world, *words, status=125)
            same(f"{words[0]}: {said}", (said.rstrip("\n").removesuffix(": in use by another run").endswith(("/test.db", "/test/")), said.count("\n")), (True, 1))
    finally:
        said = first.communicate(timeout=SECONDS)[1]
    same("the first", (first.returncode, said), (0, "overlay_grate: 1 file changed: lind-boot diff test\n"))
    same("names", verb(world, "diff", "test"), "A made.txt\n")


def names_are_any_bytes(world: World) -> None:
    fill(world)
    names = [os.fsencode(name) for name in ("\udcff\udcc3(", "\u00fc\u20ac\U0001f600", "\udced\udca0\udc80", 'a"\\\n\x7f\u009b', "\udcc0\udcaf")]
    edited(world, *(os.fsdecode(b"w:" + name + b"=x") for name in names))
    found = json.loads(verb(world, "diff", "test", "--json"))
    same("JSON", sorted(bytes.fromhex(row["path_bytes"]) if "path_bytes" in row else row["path"].encode() for row in found), sorted(names))
    verb(world, "export", "test", str(world.home / "copy.tar"))
    with tarfile.open(world.home / "copy.tar") as archive:
        got = {os.fsencode(name) for name in archive.getnames()}
    same("tar", got.issuperset(names), True)


def names_deep_down_are_whole(world: World) -> None:
    """A path may become longer than any that can be named."""
    fill(world)
    edits = []
    for letter in "abcde":
        path = letter * 200
        edits.append(f"m:{path}")
        for _ in range(13):
            path += f"/{letter * 250}"
            edits.append(f"m:{path}")
        edits.append(f"w:{path}/leaf={letter}\n")
        if letter != "a":
            below = chr(ord(letter) - 1) * 200
            edits.append(f"v:{below}={path}/{below}")
    edited(world, *edits)
    verb(world, "export", "test", str(world.home / "copy.tar"))
    with tarfile.open(world.home / "copy.tar") as archive:
        leaves = sorted(len(name) for name in archive.getnames() if name.endswith("/leaf"))
        same("directories", sum(member.isdir() and member.name[0] == "e" for member in archive), 5 * 14)
    same("leaves", leaves, [200 + 13 * 251 + 5 + above * (201 + 13 * 251) for above in range(5)])
    verb(world, "apply", "test")
    same("applied", verb(world, "diff", "test"), "")
    shutil.rmtree(world.project / ("e" * 200))


def rights_that_a_file_would_give_are_shown(world: World) -> None:
    fill(world)
    edited(world, "w:tool=x", "x:tool=4755", "x:kept=2755")
    same("names", verb(world, "diff", "test"), "M kept (mode 2755)\nA tool (mode 4755)\n")


def snapshots_and_forks(world: World) -> None:
    fill(world)
    edited(world, "w:made.txt=first\n")
    verb(world, "snapshot", "test", "before")
    holds("twice", verb(world, "snapshot", "test", "before", status=1), "already")
    verb(world, "fork", "test", "try")
    edited(world, "w:made.txt=second\n", "d:kept")
    edited(world, "w:other.txt=x\n", state="test:try")
    same("main", verb(world, "diff", "test"), "D kept\nA made.txt\n")
    same("try", verb(world, "diff", "test:try"), "A made.txt\nA other.txt\n")
    lines = verb(world, "overlay", "ls", "test").splitlines()
    same("tree", sorted(line.split()[0] for line in lines), ["before", "main", "try"])
    verb(world, "rollback", "test", "before")
    same("rolled back", verb(world, "diff", "test"), "A made.txt\n")
    holds("unknown", verb(world, "rollback", "test", "nothing", status=1), "no snapshot")
    verb(world, "discard", "test")
    same("discarded", verb(world, "diff", "test"), "")
    same("the fork", verb(world, "diff", "test:try"), "A made.txt\nA other.txt\n")
    holds("listed", verb(world, "overlay", "ls"), "test")
    verb(world, "overlay", "rm", "test")
    same("gone", verb(world, "overlay", "ls"), "")


def in_a_directory(test: Callable[[World], None]) -> Callable[[World], None]:
    """The same with a state that is a directory: once it has been made, its name is enough."""
    def again(world: World) -> None:
        edited(world, state="test/")
        holds("made", str(sorted(path.name for path in states(world).iterdir())), "test")
        test(world)

    again.__name__ = f"{test.__name__}_in_a_directory"
    return again


def states(world: World) -> Path:
    return world.home / ".local" / "state" / "lind" / "overlay"


def what_a_run_has_made_runs(world: World) -> None:
    """A program or script that is in the state alone, also under a policy, and with a program's name and not its path."""
    top = fill(world)
    probe = world.folder / "tool" / "probe.wasm"
    shutil.copy(probe, top / "old.wasm")
    (top / "s.sh").write_text("#!/none\n")
    edited(world, "v:old.wasm=made.wasm", "x:made.wasm=644", f"w:s.sh=#!{probe} r:kept\n", "x:s.sh=755", f"w:n.sh=#!{probe}\n")
    options = ("-v", ".:overlay=test", "-v", f"{probe.parent}:ro")
    policy = world.folder / "free.toml"
    policy.write_text('network = "host"\n')
    by_program = world.folder / "by-program.toml"
    by_program.write_text('programs = ["/**"]\n[program."/bin/none"]\nnetwork = "none"\n')
    for more in ((), ("--mounts=kernel",), ("--policy", str(policy)), ("--policy", str(by_program))):
        for name in ("./made", "./made.wasm", "made", str(top / "made")):
            done = world.run(*options, *more, name, "r:kept")
            same(f"{more} {name}", (done.returncode, done.stdout.splitlines()[1:]), (7, ["read kept: ok"]))
        done = world.run(*options, *more, "./s.sh")
        # The script's own name, as a word, is unknown to the probe.
        same(f"{more} script", (done.returncode, done.stdout.splitlines()[1:]), (2, ["read kept: ok"]))
        same(f"{more} gone", world.run(*options, *more, "./old.wasm").returncode, 127)
        same(f"{more} not executable", world.run(*options, *more, "./n.sh").returncode, 126)


def what_a_run_has_copied_has_its_name(world: World) -> None:
    """Also where it is refused something: what runs is a copy in memory."""
    needs_tools()
    fill(world)
    done = world.run("-v", ".:overlay=test", "bash", "-c", "cp /bin/bash mine; ./mine -c 'echo x >.envrc'")
    holds("denied", done.stderr, "lind-boot: denied: mine (")


def large_files_lie_in_a_directory(world: World) -> None:
    """And only what is the state's is removed with it."""
    top = fill(world)
    (top / "large").write_bytes(b"." * 1000000)
    if world.user is not None:
        shutil.chown(top / "large", world.user, world.user)
    edited(world, "a:large=more", "w:made.txt=x", state="test/")
    folder = states(world) / "test"
    same("in it", sorted(path.name for path in folder.iterdir()), ["data", "state.db", "state.db-wal"])
    same("rights", oct(folder.stat().st_mode), "0o40700")
    data = [path for path in (folder / "data").iterdir()]
    same("data files", [path.stat().st_blocks * 512 for path in data], [4096])
    holds("listed", verb(world, "overlay", "ls"), "test/ ")
    edited(world, "a:large=and more")
    (folder / "data" / "notes").write_text("mine")
    verb(world, "export", "test", str(world.home / "copy"))
    same("exported", (world.home / "copy" / "large").read_bytes()[1000000:], b"moreand more")
    verb(world, "apply", "test")
    same("applied", (top / "large").read_bytes()[1000000:], b"moreand more")
    edited(world, "a:large=!")
    holds("said", world.boot("overlay", "rm", "test/").stderr, "was not removed, because it has files that are not the state's")
    same("left", sorted(path.name for path in folder.rglob("*")), ["data", "notes"])
    (folder / "data" / "notes").unlink()
    (folder / "data").rmdir()
    edited(world, "a:large=!", state="test/")
    verb(world, "overlay", "rm", "test/")
    same("gone", folder.exists(), False)


def mistakes_with_states_that_are_directories(world: World) -> None:
    fill(world)
    edited(world, "w:made.txt=x", state="file")
    edited(world, "w:made.txt=x", state="test/")
    other = world.home / "other"
    (other / "sub").mkdir(parents=True)
    if world.user is not None:
        shutil.chown(other, world.user, world.user)
    tool = str(world.folder / "tool" / "edit")
    for words, part in [
        (["run", "-v", ".:overlay=file/", tool], "leave out the slash"),
        (["diff", "file/"], "leave out the slash"),
        (["diff", "none/"], "no such state"),
        (["run", "-v", f".:overlay={other}", tool], "not the state of an overlay"),
        (["run", "-v", f".:overlay={other}/", tool], "not the state of an overlay"),
        (["overlay", "rm", f"{other}/"], "not the state of an overlay"),
        (["run", "-v", f".:overlay={other}/sub", tool], "add a slash at the end"),
        (["run", "-v", ".:overlay=./upper/", tool], "would be visible there"),
        (["run", "-v", f".:overlay={states(world)}/test", "-v", f"{states(world)}/test/data:/data", tool], "would be visible there"),
        (["apply", f"{states(world)}/test/"], "named by its path"),
    ]:
        done = world.boot(*words)
        same(f"{words}: status", done.returncode, 125)
        holds(f"{words}", done.stderr, part)
    same("kept", (sorted(path.name for path in other.iterdir()), (world.project / "upper").exists()), (["sub"], False))
    data = states(world) / "test" / "data"
    data.rmdir()
    data.symlink_to(other)
    same("a link", world.boot("run", "-v", ".:overlay=test", tool).returncode, 125)
    same("the other", sorted(path.name for path in other.iterdir()), ["sub"])


def a_dry_run_changes_nothing(world: World) -> None:
    top = fill(world)
    before = tree(top)
    done = world.run("--dry-run", "-v", ".", str(world.folder / "tool" / "edit"), "w:made.txt=new\n", "d:gone.txt", "d:missing")
    same("no way to look at what is gone", "lind-boot diff" in done.stderr, False)
    same("status", done.returncode, 1)
    holds("paths that would be changed", done.stdout, "D gone.txt\nA made.txt\n")
    same("a name that nobody has given", "lind-dry-run" in done.stderr, False)
    holds("where", done.stderr, f"in {top}:\n")
    same("the directory", tree(top), before)


def mistakes_with_states(world: World) -> None:
    fill(world)
    (world.folder / "file").write_text("no state\n" * 1000)
    (world.folder / "file").chmod(0o666)
    tool = str(world.folder / "tool" / "edit")
    for words, part in [
        (["diff", "nothing"], "no such state"),
        (["diff", "a b"], "the name of a state"),
        (["run", "-v", "./kept:overlay=test", "true"], "only a directory can have an overlay"),
        (["run", "-v", f".:overlay={world.project}/state.db", "true"], "would be visible there"),
        (["run", "-v", f".:overlay={world.folder}/file", tool], "not the state of an overlay"),
    ]:
        done = world.boot(*words)
        same(f"{words}: status", done.returncode, 125)
        holds(f"{words}", done.stderr, part)
    edited(world, "w:made.txt=x")
    (world.folder / "elsewhere").symlink_to(world.project)
    (world.folder / "direct").symlink_to(world.project / "state.db")
    for words, part in [
        (["run", "-v", f".:overlay={world.folder}/elsewhere/s.db", "true"], "would be visible there"),
        (["run", "-v", f".:overlay=../{world.project.name}/src/../s.db", "true"], "would be visible there"),
        (["run", "-v", f".:overlay={world.folder}/direct", "true"], "symbolic link"),
        (["run", "-v", ".:overlay=test", "-v", "src:ro", "true"], "cannot be mounted inside the overlay"),
        (["run", "-v", ".:overlay=test", "--tmpfs", f"{world.project}/src", "true"], "cannot be mounted inside the overlay"),
        (["overlay", "rm", str(world.folder / "file")], "not the state of an overlay"),
    ]:
        done = world.boot(*words)
        same(f"{words}: status", done.returncode, 125)
        holds(f"{words}", done.stderr, part)
    same("kept", ((world.folder / "file").exists(), (world.project / "s.db").exists()), (True, False))
    done = world.run("-v", f"{world.folder}/tool:overlay=test", "true")
    holds("another's state", done.stderr, "belongs to")


def what_is_no_state_stays_as_it_is(world: World) -> None:
    """A file that was named by mistake. An empty one becomes a state, by a run."""
    fill(world)
    text, other, empty = (world.folder / name for name in ("text", "other.db", "empty"))
    text.write_text("precious\n")
    with contextlib.closing(sqlite3.connect(other)) as db, db:
        db.execute("create table precious(x)")
    empty.touch()
    for file in text, other, empty:
        os.chown(file, *2 * [world.user if world.user is not None else -1])
    lower = ("--lower", str(world.project))
    verbs = [["diff"], ["diff", *lower], ["log"], ["export", str(world.home / "copy")], ["apply"], ["apply", *lower], ["discard"], ["snapshot", "x"], ["rollback", "x"], ["fork", "x"], ["overlay", "ls"],
             ["overlay", "rm"]]
    run = "run", "-v", ".:overlay={}", str(world.folder / "tool" / "edit"), "w:made.txt=x"
    for file, part in (text, "not the state of an overlay"), (other, "not the state of an overlay"), (empty, "is empty"):
        before = file.read_bytes()
        for words in verbs:
            at = 2 if words[0] == "overlay" else 1
            holds(f"{words}", verb(world, *words[:at], str(file), *words[at:], status=125), part)
        if file != empty:
            holds("run", verb(world, *(word.format(file) for word in run), status=125), part)
        same(f"{file.name}: content", file.read_bytes(), before)
        if file != other:
            same(f"{file.name}: a log", Path(f"{file}-wal").exists(), False)
    verb(world, *(word.format(empty) for word in run))
    same("a state", verb(world, "diff", str(empty)), "A made.txt\n")


def directories_have_any_names(world: World) -> None:
    fill(world)
    for number, name in enumerate(("line\nfeed", "\udcff\udcc3(", "\u00fc \x1b[2J")):
        top, state = world.folder / name, f"odd{number}"
        top.mkdir()
        os.chown(top, *2 * [world.user if world.user is not None else -1])
        done = world.run("-v", f"{top}:overlay={state}", str(world.folder / "tool" / "edit"), f"w:{top}/made.txt=x")
        same(f"{name!r}: a run", (done.returncode, done.stderr), (0, f"overlay_grate: 1 file changed: lind-boot diff {state}\n"))
        same(f"{name!r}: names", verb(world, "diff", state), "A made.txt\n")
        file = world.home / ".local" / "state" / "lind" / "overlay" / f"{state}.db"
        shown = world.boot("diff", str(file)).stderr + verb(world, "apply", str(file), status=125)
        same(f"{name!r}: on a terminal", [c for c in shown if ord(c) < 32 and c != "\n"] + [line for line in shown.splitlines() if "lind-boot" not in line], [])
        verb(world, "apply", state)
        same(f"{name!r}: applied", (top / "made.txt").read_text(), "x")


def an_export_into_itself_is_refused(world: World) -> None:
    top = fill(world)
    edited(world, "w:made.txt=x")
    (world.folder / "way").symlink_to(top)
    for form in [], ["--format=overlayfs"]:
        for place in "up", "src/up", "src/../up", str(world.folder / "way" / "up"), str(world.folder / "way" / "src" / "up"), str(top):
            holds(place, verb(world, "export", *form, "test", place, status=125), "already exists" if place == str(top) else "which is exported")
    for name in "up.tar.gz", "up.tgz", "up.tar.zst":
        holds(name, verb(world, "export", "test", str(world.home / name), status=125), "lind-boot does not compress a tar; run `lind-boot export test - | gzip")
    (world.home / "kept.tar").write_text("kept")
    (world.home / "link.tar").symlink_to("kept.tar")
    for name in "kept.tar", "link.tar":
        holds(name, verb(world, "export", "test", str(world.home / name), status=125), "already exists")
    same("kept", (world.home / "kept.tar").read_text(), "kept")
    same("nothing was made", [*top.rglob("up*"), *world.home.glob("up*")], [])
    verb(world, "export", "test", "up.tar")
    with tarfile.open(top / "up.tar") as archive:
        same("a tar", "made.txt" in archive.getnames(), True)
    script = f"mkdir {world.folder}/bound && mount --bind {top} {world.folder}/bound && exec {BOOT} export test {world.folder}/bound/up"
    if os.geteuid() == 0 and world.user is None:
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], env=world.known, cwd=top, capture_output=True, text=True, check=False)
        if "mount" not in done.stderr:
            holds("by a bind mount", done.stderr, "which is exported")


def what_is_said_is_what_there_is(world: World) -> None:
    """At the end of a run as in a diff; and of a damaged state one thing."""
    fill(world)
    same("times alone", edited(world, "x:kept=644"), "")
    same("a diff", verb(world, "diff", "test"), "")
    holds("a mistake", verb(world, "diff", "test", "nothing", status=1), "nothing: no such change in the state\n")
    file = world.home / ".local" / "state" / "lind" / "overlay" / "test.db"
    file.write_bytes(file.read_bytes()[:100] + b"x" * 5000)
    for words in ["diff", "test"], ["apply", "test"], ["export", "test", str(world.home / "copy")]:
        same(f"{words}: lines", verb(world, *words, status=125).count("\n"), 1)


def a_home_is_found_without_a_variable(world: World) -> None:
    known = {name: value for name, value in world.known.items() if name != "HOME"}
    done = subprocess.run([BOOT, "overlay", "ls"], env=known, user=world.user, group=world.user, capture_output=True, text=True, check=False)
    has_home = Path(pwd.getpwuid(world.user if world.user is not None else os.geteuid()).pw_dir).is_dir()
    same("no place", "cannot find the directory of states" in done.stderr, not has_home)


def what_is_shown_commands_no_terminal(world: World) -> None:
    """Names and contents with control characters, of which some would have a terminal do something."""
    fill(world)
    edited(world, "w:a\033]0;x\a=\033[2Jc\u009b1m\tend\n", "w:b\u202e\u009b\U000e0041=x")
    master, slave = pty.openpty()
    for words, part in [(("diff",), '"a\\033]0;x\\007"'), (("diff", "--patch"), "+^[[2Jc\\u{9b}1m\tend"), (("log",), '"a\\033]0;x\\007"'),
                        (("diff", "--json"), '"b\\u202e\\u009b\\udb40\\udc41"')]:
        command = [BOOT, words[0], "test", *words[1:]]
        subprocess.run(command, cwd=world.project, env=world.known, user=world.user, group=world.user, stdin=subprocess.DEVNULL, stdout=slave, check=True, timeout=SECONDS)
        shown = os.read(master, 65536).decode()
        holds(words[0], shown.expandtabs(), part.expandtabs())
        same(f"{words}: control characters", [c for c in shown if not c.isprintable() and c not in "\r\n\t"], [])
    os.close(master)
    os.close(slave)


def a_state_from_elsewhere_commands_no_terminal(world: World) -> None:
    """Rows in the state that have the names which lind-boot would make."""
    fill(world)
    edited(world, "w:made.txt=x")
    file = world.home / ".local" / "state" / "lind" / "overlay" / "test.db"
    with contextlib.closing(sqlite3.connect(file)) as state, state:
        state.execute("insert into layers values(50, 1, char(27) || '[2J', 0)")
        state.execute("insert into heads values(char(27) || ']0;x' || char(7), 50)")
        state.execute("update log set kind = char(27)")
        state.execute("create trigger refuses before delete on names begin select raise(abort, 'no\033[2J'); end")
    shown = verb(world, "overlay", "ls", "test") + verb(world, "log", "test") + verb(world, "discard", "test", "made.txt", status=125)
    for part in "\\u{1b}[2J", "\\u{1b}]0;x\\u{7}", " ? made.txt", "no\\u{1b}[2J":
        holds("shown", shown, part)
    same("control characters", [c for c in shown if not c.isprintable() and c != "\n"], [])


def links_that_lead_outside(world: World) -> None:
    """A program is executed through links of the project that lead to the image."""
    top = fill(world)
    image = world.folder / "linked"
    (image / "bin").mkdir(parents=True)
    shutil.copy(world.folder / "tool" / "probe.wasm", image / "bin" / "tool.wasm")
    if world.user is not None:
        for path in (image, *image.rglob("*")):
            shutil.chown(path, world.user, world.user)
    for name, to in {"tool": "/bin/tool", "again": "tool", "folder": "/bin"}.items():
        (top / name).symlink_to(to)
    for path in ("./tool", "./again", "./folder/tool"):
        done = world.run("--image", str(image), "-v", f"{top}:overlay=links", "-w", str(top), path, "e:HOME")
        holds(path, done.stdout, "env HOME: /home/user")


def bytes_in(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def what_is_not_text_is_a_patch(world: World) -> None:
    top = fill(world)
    for name, data in {"data": b"\0\1\2" * 100, "long": bytes(range(128)) * 1400, "away": b"\0", "moved": b"a\0b" * 50}.items():
        (top / name).write_bytes(data)
    edited(world, "a:data=more", "t:long=150000", "d:away", "w:made=x", "t:made=200", "v:moved=elsewhere", "a:elsewhere=!", "a:src/n.txt=text\n", "x:data=755")
    patch = verb(world, "diff", "test", "--patch")
    by_git = patched(world, top, patch)
    if by_git is not None:
        verb(world, "apply", "test")
        same("patched", by_git, tree(top))
        same("bytes", bytes_in(world.folder / "patched"), bytes_in(top))


def what_is_made_again_is_no_change(world: World) -> None:
    """A file that took the place of one like it; not where that went elsewhere."""
    top = fill(world)
    edited(world, "w:new=1\n", "v:new=one", "d:two", "w:two=2\n", "d:link", "l:link=src/a.c", "v:gone.txt=kept.txt", "w:gone.txt=bye\n", "d:src/a.c", "w:src/a.c=other\n")
    same("names", verb(world, "diff", "test"), "M gone.txt\nR gone.txt -> kept.txt\nM src/a.c\n")
    verb(world, "apply", "test")
    same("applied", [(top / name).read_text() for name in ("one", "two", "gone.txt", "kept.txt")], ["1\n", "2\n", "bye\n", "bye\n"])


def an_export_keeps_second_names(world: World) -> None:
    top = fill(world)
    os.link(top / "one", top / "src" / "below")
    os.link(top / "two", top / "src" / "other")
    edited(world, "w:made=m", "h:made=src/again", "h:made=third", "a:two=more")
    verb(world, "export", "test", str(world.home / "copy"))
    verb(world, "export", "test", str(world.home / "copy.tar"))
    (world.home / "unpacked").mkdir()
    with tarfile.open(world.home / "copy.tar") as archive:
        archive.extractall(world.home / "unpacked", filter="fully_trusted")
    for copy in (world.home / "copy", world.home / "unpacked"):
        same("numbers of names", [(copy / name).stat().st_nlink for name in ("made", "third", "src/again", "one", "src/below", "two", "src/other")], [3, 3, 3, 2, 2, 2, 2])
        same("contents", [(copy / name).read_text() for name in ("third", "src/again", "src/below", "src/other")], ["m", "m", "1\n", "2\nmore"])


TESTS = [a_commit_is_applied, files_with_holes_keep_them, what_is_not_text_is_a_patch, what_is_made_again_is_no_change, an_export_keeps_second_names, links_that_lead_outside, an_edit_is_looked_at_and_applied, what_a_run_has_made_runs, what_a_run_has_copied_has_its_name, what_becomes_a_link_is_a_patch, changes_go_on_in_the_next_run, what_has_changed_below_is_not_overwritten,
         what_came_below_meanwhile_is_not_overwritten, what_shows_through_is_not_made_up, part_of_a_new_directory_is_refused, changes_deep_in_a_renamed_directory, names_of_apply_are_not_known_before,
         what_cannot_be_made_stays_in_the_state, only_what_was_meant_is_applied_to, an_interrupted_apply_goes_on, is_exported_for_overlayfs, one_run_at_a_time, names_are_any_bytes, names_deep_down_are_whole,
         large_files_lie_in_a_directory, mistakes_with_states_that_are_directories, in_a_directory(an_edit_is_looked_at_and_applied), in_a_directory(changes_go_on_in_the_next_run),
         in_a_directory(an_interrupted_apply_goes_on), in_a_directory(is_exported_for_overlayfs), in_a_directory(one_run_at_a_time), in_a_directory(snapshots_and_forks),
         rights_that_a_file_would_give_are_shown, snapshots_and_forks, what_is_shown_commands_no_terminal, a_state_from_elsewhere_commands_no_terminal, a_dry_run_changes_nothing, mistakes_with_states,
         what_is_no_state_stays_as_it_is, directories_have_any_names, an_export_into_itself_is_refused, what_is_said_is_what_there_is, a_home_is_found_without_a_variable]
