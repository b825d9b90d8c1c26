"""`python -m lind.mcp` is `lind mcp`. That is the better name where the current directory is a stranger's: with -m Python looks for modules there, too."""

from __future__ import annotations

import sys

from ._cli import main

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):
        # At least those that are imported from here on are none of the current directory.
        del sys.path[0]
    sys.exit(main(["mcp", *sys.argv[1:]]))
