"""One command in a sandbox of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._sync.sandbox import Command, Sandbox
from .results import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import SandboxOptions


def run(
    command: Command,
    *,
    timeout: float | None = None,
    input: bytes | str | None = None,
    check: bool = False,
    **options: Unpack[SandboxOptions],
) -> Result:
    """Runs a command in a sandbox that ends with it.

    >>> run("echo hello").stdout
    'hello\\n'

    The first three keywords are those of `Sandbox.run`, all others those of `Sandbox`.
    """
    with Sandbox(**options) as sandbox:
        return sandbox.run(command, timeout=timeout, input=input, check=check)
