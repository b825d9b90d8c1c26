"""Files that other tools would execute later: they can be neither changed nor made, and git works all the same."""

from __future__ import annotations

import json
import os
import subprocess

from world import TOP, Failed, Skipped, World, holds, needs_tools, same

REFUSED = "Read-only file system"


def needs_git() -> None:
    needs_tools()
    if not (TOP / "lindfs" / "bin" / "git").exists():
        raise Skipped("the port of git is not built: make ports PORT=git")


def git(world: World, *words: str) -> str:
    """The host's git, in the project."""
    settings = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    names = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", *words]
    return subprocess.run(command, cwd=world.project, env=world.known | settings | names, user=world.user, group=world.user, check=True,
                          capture_output=True, text=True).stdout


def ends(lines: list[str]) -> list[str]:
    return [line.rsplit(": ", 1)[1] for line in lines[1:]]


def at_any_depth(world: World) -> None:
    for name in ["sub/deep", "linked", "nested/.git/hooks", ".git/worktrees/one"]:
        (world.project / name).mkdir(parents=True)
    (world.project / "linked" / ".git").write_text("gitdir: ../elsewhere\n")
    if world.user is not None:
        for path in world.project.rglob("*"):
            os.chown(path, world.user, world.user)
    refused = ["w:.git/commondir", "w:.git/config.worktree", "m:.git/modules", "w:.git/worktrees/one/commondir", "m:.git/worktrees/two",
               "w:linked/.git", "w:sub/.git", "m:sub/deep/.git", "w:nested/.git/hooks/pre-commit", "w:nested/.git/config", "v:nested/.git",
               "w:sub/.envrc", "m:.GIT", "w:.Bashrc", "m:sub/deep/.vscode", "m:.cargo", "w:.zshenv", "w:sub/.npmrc", "m:.husky", "w:.pre-commit-config.yaml"]
    found = ends(world.probe(*refused))
    same("refused", dict(zip(refused, found, strict=True)), dict.fromkeys(refused, REFUSED))
    allowed = ["w:.git/index", "m:.git/objects", "w:.git/worktrees/one/index", "w:sub/file", "m:sub/deep/more", "w:.gitattributes", "w:nested/.git/HEAD", "v:sub"]
    found = ends(world.probe(*allowed))
    same("allowed", dict(zip(allowed, found, strict=True)), dict.fromkeys(allowed, "ok"))
    lines = world.probe("w:.git/commondir", "m:nested/.git/modules", "w:.zshenv", options=("--policy", "build", "-v", "."))
    same("build", ends(lines), [REFUSED, REFUSED, "ok"])


# Names that tools execute unasked, of which some came up after the list was written.
EXECUTED = [".tool-versions", ".dir-locals-2.el", "lefthook-local.yml", "lefthook.toml", "lefthook.json", "mise.local.toml", ".pnp.cjs", "pnpm-workspace.yaml",
            ".Renviron", ".RData", ".iex.exs", ".ocamlinit", ".lldbinit", "lazygit.yml", ".hg/sharedpath", ".sl/config", "_darcs/prefs", ".bundle",
            "opencode.json", ".opencode", ".tcshrc", ".xprofile", ".emacs", ".config/systemd", "rust-toolchain.toml", ".perldb", ".env", ".bashrc.d",
            ".a-tool-of-tomorrow", "sub/.a-tool-of-tomorrow/hooks/run", ".github/hooks/x.json", "LEFTHOOK.YML", ".Cla\u200cude", "\u200d.claude",
            "lefthoo\u212a.yml", "pnpm-work\u017fpace.yaml"]

# The files that a day of an agent makes.
MADE = [".gitignore", ".editorconfig", ".github/workflows/ci.yml", ".venv/bin/python", ".venv/.gitignore", ".pytest_cache/v/cache", ".mypy_cache/3/a.json",
        ".cache/x", ".tox/py3", ".coverage", ".coverage.host.1", ".next/cache/a", ".main.c.swp", ".#main.c", ".main.c.tmp123", "sedXyz123", "sub/.gitkeep",
        ".deps/a.Po", "node_modules/.bin/tool", "a.config", "sub/file.envrc", "\u65e5\u672c.txt", ".env.example"]


def ways_to(world: World, names: list[str]) -> None:
    for name in names:
        path = world.project / name
        for folder in reversed(path.relative_to(world.project).parents):
            (world.project / folder).mkdir(exist_ok=True)
            if world.user is not None:
                os.chown(world.project / folder, world.user, world.user)


def names_with_a_dot(world: World) -> None:
    """Files that tools look for: one that is not known to be harmless can be neither made nor changed, in whatever letters."""
    ways_to(world, [*EXECUTED, *MADE])
    for mounts in ((), ("--mounts=kernel",), ("--dry-run",)):
        found = ends(world.probe(*(f"w:{name}" for name in EXECUTED), options=(*mounts, "-v", ".")))
        same(f"{mounts} executed", dict(zip(EXECUTED, found, strict=True)), dict.fromkeys(EXECUTED, REFUSED))
    found = ends(world.probe(*(f"w:{name}" for name in MADE)))
    same("made", dict(zip(MADE, found, strict=True)), dict.fromkeys(MADE, "ok"))
    # Also below a directory whose own path has such names.
    place = world.folder / ".own" / "work"
    place.mkdir(parents=True)
    if world.user is not None:
        os.chown(place, world.user, world.user)
    found = ends(world.probe("w:file", "w:.envrc", "m:sub", options=("-v", str(place), "-w", str(place))))
    same("below", found, ["ok", REFUSED, "ok"])


def directories_above_names(world: World) -> None:
    """Where a name further down is protected, the directory above it can be made and removed, with nothing in it."""
    tries = {"m:.github": "ok", "m:.github/workflows": "ok", "w:.github/workflows/ci.yml": "ok", "m:sub": "ok", "m:sub/.github": "ok", "m:mise": "ok",
             "w:.github/hooks": REFUSED, "m:sub/.github/HOOKS": REFUSED, "w:mise/config.toml": REFUSED, "v:.github": REFUSED, "w:_darcs": REFUSED,
             "D:sub/.github": "ok", "D:.github/workflows": "Directory not empty", "m:sub/a": "ok", "m:sub/a/hooks": "ok", "v:sub/a": "ok",
             "V:.github": REFUSED, "V:sub/.github": REFUSED, "L:_darcs": REFUSED, "m:.git": "File exists", "m:sub/.git": REFUSED}
    for mounts in ((), ("--mounts=kernel",), ("--dry-run",)):
        top = world.folder / f"above{len(mounts)}{''.join(mounts)}"
        (top / ".git").mkdir(parents=True)
        if world.user is not None:
            for path in (top, top / ".git"):
                os.chown(path, world.user, world.user)
        lines = world.probe(*tries, options=(*mounts, "-v", f"{top}:/p", "-w", "/p"))
        found = ends(lines[:len(tries) + 1])  # a dry run says what would have been changed
        same(f"{mounts}", dict(zip(tries, found, strict=True)), tries)


def short_names(world: World) -> None:
    """The pattern of second names that lind-boot adds on FAT and NTFS."""
    policy = world.home / "short.toml"
    policy.write_text('[protect]\nnames = ["**/*~[0-9]*"]\n')
    tries = {"w:GIT~1": REFUSED, "w:MCP~1.JSO": REFUSED, "m:VSCODE~2": REFUSED, "w:PNPM-~12.YAM": REFUSED, "w:kept~": "ok", "w:a~b": "ok", "w:1.txt": "ok"}
    found = ends(world.probe(*tries, options=("--policy", str(policy), "-v", ".")))
    same("names", dict(zip(tries, found, strict=True)), tries)


def names_are_let_through(world: World) -> None:
    (world.project / ".kept").write_text("")
    if world.user is not None:
        os.chown(world.project / ".kept", world.user, world.user)
    tries = ("w:.kept", "w:.made-1", "w:lefthook.yml", "w:.other")
    options = ("--allow-name", ".kept", "--allow-name", ".made-?", "--allow-name", "lefthook.yml")
    same("by option", ends(world.probe(*tries, options=(*options, "-v", "."))), ["ok", "ok", "ok", REFUSED])
    policy = world.home / "p.toml"
    policy.write_text('[protect]\nhidden = true\nnames = ["**/lefthook.yml", "fixed"]\nexcept = [".kept", ".made-*", "lefthook.yml"]\n')
    same("by policy", ends(world.probe(*tries, "w:fixed", options=("--policy", str(policy), "-v", "."))), ["ok", "ok", "ok", REFUSED, REFUSED])
    for name in (".other", "lefthook.toml"):
        done = world.run("-v", ".", str(world.folder / "tool" / "probe"), f"w:{name}")
        holds("says how", done.stderr, f"to allow it: --allow-name {name}\n")
    for wrong in ("a/b", "", ".."):
        done = world.run("--allow-name", wrong, "true")
        same(wrong, done.returncode, 125)
        holds(wrong, done.stderr, "expected a name without a slash")
    same("a session", world.boot("session", "start", "named", "--allow-name", ".other", "-v", ".", "-v", f"{world.folder}/tool:ro").returncode, 0)
    lines = world.boot("session", "exec", "named", "--", f"{world.folder}/tool/probe.wasm", "w:.other", "w:.more").stdout.splitlines()
    same("a session", ends(lines), ["ok", REFUSED])
    learned = world.home / "learned.toml"
    probe = str(world.folder / "tool" / "probe")
    world.boot("learn", "-o", str(learned), "--allow-name", ".kept", "-v", ".", "--", probe, "w:.kept", "w:new")
    same("learned", ends(world.probe("w:.kept", "w:new", options=("--policy", str(learned), "-v", "."))), ["ok", "ok"])
    for part in ("\n[protect]\n", "\nhidden = true\n"):
        holds("learned", learned.read_text(), part)


def no_directory_becomes_a_repository(world: World) -> None:
    """git takes any directory with a HEAD for a repository, and then its `config` counts; also the project, if its `.git` is broken."""
    for name in [".git/objects", ".git/refs/remotes/origin", "sub"]:
        (world.project / name).mkdir(parents=True)
    (world.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    if world.user is not None:
        for path in world.project.rglob("*"):
            os.chown(path, world.user, world.user)
    for policy in ("agent", "build"):
        lines = world.probe("w:HEAD", "m:HEAD", "w:sub/HEAD", "w:sub/head", "m:.git/own", "w:.git/own/HEAD", "v:.git/own", "w:.git/refs/remotes/origin/HEAD",
                            "w:sub/config", "w:sub/HEADER", options=("--policy", policy, "-v", "."))
        same(policy, ends(lines), [REFUSED] * 4 + ["ok"] * 2 + [REFUSED] + ["ok"] * 3)
        (world.project / ".git" / "own" / "HEAD").unlink()
        (world.project / ".git" / "own").rmdir()


def what_protected_links_lead_to(world: World) -> None:
    for name in ["scripts", "cfg", "editor"]:
        (world.project / name).mkdir()
    (world.project / ".git" / "hooks" / "pre-commit").symlink_to("../../scripts/hook")
    (world.project / ".envrc").symlink_to("cfg/rc")
    (world.project / ".vscode").symlink_to("editor")
    for name in ["scripts/hook", "cfg/rc"]:
        (world.project / name).write_text("")
    if world.user is not None:
        for path in world.project.rglob("*"):
            os.chown(path, world.user, world.user, follow_symlinks=False)
    lines = world.probe("w:.git/hooks/pre-commit", "w:scripts/hook", "w:.envrc", "w:cfg/rc", "w:editor/tasks.json", "w:scripts/other")
    same("ends", ends(lines), [REFUSED] * 5 + ["ok"])


def a_repository_by_another_name(world: World) -> None:
    """Its `.git` is a file that says where it is, or the volume is the repository itself."""
    for name in ["own/objects", "own/refs", "project/work"]:
        (world.folder / name).mkdir(parents=True)
    (world.folder / "own" / "HEAD").write_text("ref: refs/heads/main\n")
    (world.project / "work" / ".git").write_text("gitdir: ../kept-apart\n")
    (world.project / "kept-apart").mkdir()
    if world.user is not None:
        for path in [*world.project.rglob("*"), world.folder / "own", *(world.folder / "own").rglob("*")]:
            os.chown(path, world.user, world.user)
    lines = world.probe("w:hooks", "w:config", "w:index", options=("-v", f"{world.folder}/own:/own", "-w", "/own"))
    same("the volume itself", ends(lines), [REFUSED, REFUSED, "ok"])
    options = ("-v", f"{world.project}/work:/w", "-v", ".:/p", "-w", "/p")
    same("where a file leads", ends(world.probe("w:kept-apart/config", "w:kept-apart/index", options=options)), [REFUSED, "ok"])


ESCAPE = """
cp -r .git evil; printf '[core]\\n\\tfsmonitor = touch %s\\n' "$1" >>evil/config; mkdir -p evil/hooks
printf '#!/bin/sh\\ntouch %s\\n' "$1" >evil/hooks/post-index-change; chmod +x evil/hooks/post-index-change
echo ../evil >.git/commondir
mv .git old; mv evil .git; rm -r .git/config; ln -s ../evil/config .git/config; ln -sfn evil .git; ln evil/config .git/config
echo 'gitdir: evil' >.git
mkdir inner; cp -r evil inner/.git; mv evil inner/.git; ln -s ../evil inner/.git; echo 'gitdir: ../evil' >inner/.git
git -C inner commit -qm inner --allow-empty; git add inner
true
"""


def git_of_the_host_runs_nothing(world: World) -> None:
    needs_git()
    git(world, "init", "-q", ".")
    git(world, "add", "kept")
    git(world, "commit", "-qm", "one")
    mark = world.project / "executed"
    done = world.run("-v", ".", "--", "bash", "-c", ESCAPE, "bash", str(mark))
    same("status", done.returncode, 0)
    for words in [("status",), ("add", "kept"), ("worktree", "list")]:
        git(world, *words)
    if mark.exists() or (world.project / ".git" / "commondir").exists():
        raise Failed("git executed what the sandbox left")


def git_of_the_sandbox_works(world: World) -> None:
    needs_git()
    git(world, "init", "-q", "-b", "main", ".")
    script = """set -e
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git add kept; git commit -qm one; git status --short; git checkout -q -b other; echo 2 >>kept; git commit -qam two
        git checkout -q main; git branch third; echo 3 >new; git add new; git commit -qm three; echo 4 >>new; git stash -q; git stash pop -q
        git commit -qam four; git rebase -q other; git worktree list >/dev/null; git gc -q; git log --oneline | wc -l"""
    result = world.home / "result"
    done = world.run("-v", ".", "--result", str(result), "--", "bash", "-c", script)
    same("ends", (done.returncode, done.stdout.split(), done.stderr), (0, ["4"], ""))
    same("denials", json.loads(result.read_text())["denials"], 0)


def git_knows_the_user(world: World) -> None:
    """As at the host, and by no settings of a repository."""
    needs_git()
    git(world, "init", "-q", "-b", "main", ".")
    (world.home / ".gitconfig").write_text("[user]\n\tname = A \"B\" C\n\temail = a@b.example\n")
    commit = "git add kept; git commit -qm one --allow-empty; git log -1 --format='%an %ae'"
    done = world.run("-v", ".", "--", "bash", "-c", commit)
    same("the user's", (done.stdout, "denied" in done.stderr), ("A B C a@b.example\n", False))
    done = world.run("-v", ".", "-e", "GIT_AUTHOR_NAME=other", "--", "bash", "-c", commit)
    same("the named author", done.stdout, "other a@b.example\n")
    git(world, "config", "user.name", "local")
    git(world, "config", "user.email", "l@b")
    same("the project's", world.run("-v", ".", "--", "bash", "-c", commit).stdout, "local l@b\n")
    done = world.run("-v", ".:ro", "--", "bash", "-c", "echo ${GIT_CONFIG_COUNT-none}")
    same("nothing to commit to", done.stdout, "none\n")


def settings_that_stay_the_same(world: World) -> None:
    """`git branch -d` writes them as they were."""
    needs_git()
    git(world, "init", "-q", "-b", "main", ".")
    git(world, "commit", "-qm", "one", "--allow-empty")
    before = (world.project / ".git" / "config").read_text()
    # On a busy machine lind-boot says what it compiles.
    world.run("-v", ".", "--", "bash", "-c", "git branch; ls")
    done = world.run("-v", ".", "--", "bash", "-c", "git branch other && git branch -qd other && ls .git/config.lock 2>/dev/null; git branch")
    same("a branch", (done.stdout, done.stderr), ("* main\n", ""))
    done = world.run("-v", ".", "--", "bash", "-c", "cp .git/config .git/x && echo a >>.git/x && mv .git/x .git/config")
    same("other settings", done.returncode, 1)
    holds("other settings", done.stderr, "git -c NAME=VALUE")
    done = world.run("-v", ".", "--", "git", "init", "-q", "sub")
    same("a repository", done.returncode, 1)
    holds("a repository", done.stderr, "in a directory in /tmp")
    same("kept", (world.project / ".git" / "config").read_text(), before)


def no_denial_where_nothing_was_refused(world: World) -> None:
    needs_tools()
    (world.project / "sub").mkdir()
    (world.project / "sub" / "x").write_text("")
    if world.user is not None:
        os.chown(world.project / "sub", world.user, world.user)
    done = world.run("-v", ".", "--", "bash", "-c", "mv sub/x . && mkdir -p .git/hooks && ls x")
    same("moved", (done.returncode, done.stdout, done.stderr), (0, "x\n", ""))


def a_path_that_is_no_text(world: World) -> None:
    """The protected paths in it are given by their bytes."""
    project = world.folder / os.fsdecode(b"b\xff\xfe")
    world.project.rename(project)
    world.project = project
    lines = world.probe("w:.git/hooks/pre-commit", "m:.vscode", "w:sub", "w:.bashrc", options=("-v", "."))
    same("protected", ends(lines), [REFUSED, REFUSED, "ok", REFUSED])
    for options in [(), ("--json",)]:
        holds("explained", world.run("--explain", *options, "-v", ".", "true").stdout.replace("\\\\", "\\"), r"/b\xff\xfe")
    done = world.run("--learn", "../policy.toml", "-v", ".", "true")
    same("a policy is a text", done.returncode, 125)
    holds("a policy is a text", done.stderr, "-v .:/project")
    command = str(world.folder / "tool" / "command")
    for how in [("--audit", str(world.home / "log"), "-v", "."), ("-v", ".:overlay")]:
        same(f"{how}", world.run(*how, command, "files").returncode, 0)
    same("there is a log", (world.home / "log").stat().st_size > 0, True)


TESTS = [at_any_depth, names_with_a_dot, directories_above_names, short_names, names_are_let_through, no_directory_becomes_a_repository, what_protected_links_lead_to, a_repository_by_another_name, git_of_the_host_runs_nothing, git_of_the_sandbox_works, git_knows_the_user, settings_that_stay_the_same,
         no_denial_where_nothing_was_refused,
         a_path_that_is_no_text]
