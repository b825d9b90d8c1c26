"""Commands for another user of a sandbox."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

    from .. import AsyncSandbox


class UserError(RuntimeError):
    """A sandbox cannot run commands as this user."""


@dataclass(frozen=True)
class Account:
    """The user of a sandbox, and the directory in which commands start."""

    number: str
    name: str
    directory: str

    @classmethod
    async def of(cls, sandbox: AsyncSandbox) -> Self:
        """Asks a sandbox."""
        return cls(*(await sandbox.run("id -u; id -un; pwd", check=True)).stdout.splitlines())

    def words(self, command: Sequence[str], user: str) -> list[str]:
        """The command for a user. Only root can become another. The `su` of the sandbox is called by its path, and takes no shell of the user's.

        >>> Account("0", "root", "/").words(["id", "-un"], "nobody")
        ['/bin/su', '-p', '-s', '/bin/sh', '-c', 'exec "$@"', '--', 'nobody', 'sh', 'id', '-un']
        >>> Account("1000", "user", "/").words(["id", "-un"], "1000")
        ['id', '-un']
        """
        if user in (self.number, self.name):
            return list(command)
        if self.number != "0":
            raise UserError(f"the sandbox cannot run commands as {user!r}: its user is {self.name}, and not root")
        return ["/bin/su", "-p", "-s", "/bin/sh", "-c", 'exec "$@"', "--", user, "sh", *command]
