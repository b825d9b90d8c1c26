"""Damages libraries and what programs were linked from in many ways: the driver refuses them by name, or takes them.

    damaged.py DRIVER LIBRARY PROGRAM.link"""

import os
import random
import sys

sys.path.insert(0, sys.argv[1])
os.environ["PATH"] = "/nonexistent"
from driver import build
from driver.libraries import archive, kept, library, names, table
from driver.place import Fail


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A copy with some bytes changed, taken out or put in."""
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        what = chance.randrange(3)
        if what == 0:
            data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        elif what == 1:
            del data[at : at + chance.randint(1, 9)]
        else:
            data[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 9)))
    return bytes(data)


def use(path: str) -> None:
    """All that a link does with a library before the linker sees it."""
    found = library.read(path)
    part = names.Part(found, found.soname, True)
    names.Names([part], set(), True, set())
    table.of_program([], [], [part])
    for origin in part.objects:
        origin.encoded()


def main() -> None:
    chance = random.Random(7)
    refused = taken = 0
    with open(sys.argv[2], "rb") as file:
        good = file.read()
    bodies = library.read(sys.argv[2]).members
    with open(sys.argv[3], "rb") as file:
        link = file.read()
    for turn in range(1500):
        try:
            if turn % 3 == 0:
                # The archive is right, and says its own digest.
                changed = library.Library("libx.so", [], False, [(name, damaged(body, chance)) for name, body in bodies])
                archive.write("damaged.so", changed.encoded())
                use("damaged.so")
            else:
                path, data = [("damaged.so", good), ("damaged.link", link)][turn % 3 - 1]
                with open(path, "wb") as file:
                    file.write(damaged(data, chance))
                if path.endswith(".link"):
                    workspace = build.Workspace()
                    try:
                        kept.Kept(path, workspace)
                    finally:
                        workspace.close()
                else:
                    use(path)
            taken += 1
        except Fail as problem:
            assert str(problem), problem
            refused += 1
    print(refused, "refused", taken, "taken")
    assert refused > 500 and taken > 20


main()
