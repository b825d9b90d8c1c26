"""`lind mcp`: reads the options, starts the sandbox, and serves."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

import lind
from lind._options import Options

from ..core import Unusable
from .arguments import options, parse
from .display import name
from .http import Front
from .server import serving


def main(words: Sequence[str]) -> int:
    """Serves until the client or a signal ends it."""
    given = parse(words)
    try:
        # uvicorn knows what to do at a signal. Otherwise it ends the program at once, and the
        # sandbox ends with it.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        front = Front.of(given) if given.listen is not None else None
        asyncio.run(_serve(given, front))
        return 0
    except (Unusable, lind.LindError) as why:
        print(f"lind mcp: {name(str(why), 4000)}", file=sys.stderr)
        return 1
    except OSError as why:
        print(f"lind mcp: {why}", file=sys.stderr)
        return 1


async def _serve(given: argparse.Namespace, front: Front | None) -> None:
    chosen = options(given)
    async with lind.AsyncSandbox(**chosen) as sandbox, serving(sandbox, Options(**chosen), given.max_output) as (server, jobs):
        if front is None:
            await server.run_stdio_async()
        else:
            await front.serve(server, jobs.close)
