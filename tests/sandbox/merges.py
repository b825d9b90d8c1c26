"""Overlays: directories that a command made, and somebody else below meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

from overlays import edited, fill, verb
from world import World, holds, same

EDITS = ("m:dir", "w:dir/ours=ours\n", "w:dir/both=same\n", "m:dir/sub", "w:dir/sub/ours=ours\n", "m:alone", "w:alone/ours=ours\n")


def made_below(top: Path) -> None:
    """The same directories, with other names in them but for one file with the same contents."""
    for folder in ("dir", "dir/sub", "dir/theirs"):
        (top / folder).mkdir()
        (top / folder).chmod(0o755)
    for name, text in {"dir/file": "theirs\n", "dir/both": "same\n", "dir/sub/file": "theirs\n", "dir/theirs/file": "theirs\n"}.items():
        (top / name).write_text(text)
        (top / name).chmod(0o644)


def merged(world: World) -> tuple[Path, str]:
    top = fill(world)
    edited(world, *EDITS)
    made_below(top)
    if world.user is not None:
        owned(world, top)
    before = verb(world, "diff", "test")
    holds("diff", before, "A dir/\nA dir/ours\nA dir/sub/\nA dir/sub/ours\n")
    return top, before


def owned(world: World, top: Path) -> None:
    """Gives them the command's owner: nothing but names is to differ."""
    for path in [top / "dir", *(top / "dir").rglob("*")]:
        os.chown(path, world.user, world.user)


def contents(top: Path) -> dict[str, str]:
    return {str(path.relative_to(top)): path.read_text() for folder in ("dir", "alone") for path in (top / folder).rglob("*") if path.is_file()}


BOTH = {"dir/ours": "ours\n", "dir/both": "same\n", "dir/sub/ours": "ours\n", "dir/file": "theirs\n", "dir/sub/file": "theirs\n", "dir/theirs/file": "theirs\n"}


def directories_made_on_both_sides_are_one(world: World) -> None:
    top, _ = merged(world)
    verb(world, "apply", "test")
    same("all of it", contents(top), BOTH | {"alone/ours": "ours\n"})
    same("nothing is left", verb(world, "diff", "test"), "")


def one_name_for_two_things_is_a_conflict(world: World) -> None:
    top, _ = merged(world)
    (top / "dir" / "ours").write_text("theirs\n")
    (top / "dir" / "sub" / "ours").mkdir()
    refused = verb(world, "apply", "test", status=1)
    holds("a file", refused, "dir/ours: has been changed in the directory too")
    holds("a directory for a file", refused, "dir/sub/ours: has been changed in the directory too")
    # The one that is in the way, and the one that cannot be made.
    same("and nothing else", refused.count("has been changed"), 3)
    same("nothing was applied", [(top / "alone").exists(), (top / "dir" / "ours").read_text()], [False, "theirs\n"])
    verb(world, "apply", "test", "--force")
    same("ours", contents(top), BOTH | {"alone/ours": "ours\n"})


def part_of_a_merged_directory_is_applied(world: World) -> None:
    """The rest stays in the state, and later runs see both."""
    top, _ = merged(world)
    verb(world, "apply", "test", "dir/sub/ours")
    same("below", [(top / name).exists() for name in ("dir/sub/ours", "dir/ours", "alone")], [True, False, False])
    same("the rest", verb(world, "diff", "test"), "A alone/\nA alone/ours\nA dir/ours\n")
    edited(world, "a:dir/sub/ours=more\n", "a:dir/ours=more\n", "a:dir/file=more\n")
    verb(world, "apply", "test")
    same("all of it", contents(top), BOTH | {"alone/ours": "ours\n", "dir/sub/ours": "ours\nmore\n", "dir/ours": "ours\nmore\n", "dir/file": "theirs\nmore\n"})


def other_rights_are_a_conflict(world: World) -> None:
    top, _ = merged(world)
    (top / "dir" / "sub").chmod(0o700)
    refused = verb(world, "apply", "test", status=1)
    holds("rights", refused, "dir/sub: has been changed in the directory too")
    same("alone", refused.count("has been changed"), 1)
    verb(world, "apply", "test", "--force")
    same("ours", oct((top / "dir" / "sub").stat().st_mode), "0o40755")


def a_directory_that_was_replaced_is_not_merged(world: World) -> None:
    """The command saw the old one and removed what was in it."""
    top = fill(world)
    edited(world, "d:old/deep/x", "d:old/deep", "d:old/y", "d:old/z", "d:old", "m:old", "w:old/new=new\n")
    verb(world, "apply", "test")
    same("old", sorted(path.name for path in (top / "old").iterdir()), ["new"])


TESTS = [directories_made_on_both_sides_are_one, one_name_for_two_things_is_a_conflict, part_of_a_merged_directory_is_applied, other_rights_are_a_conflict, a_directory_that_was_replaced_is_not_merged]
