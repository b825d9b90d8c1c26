"""Which sandbox a request is for, and who may ask it."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..core import Refusal, bearer, is_same

# The sandbox of requests that name none, and the header that names one.
DEFAULT, HEADER = "default", "x-sandbox-id"
# The path below which all of one sandbox is, for clients that send no headers of their own.
PREFIX = "/sandboxes/"
ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def checked(id: str) -> str:
    """An id: a name as Kubernetes has them, so that it can be the name of a directory."""
    if ID.fullmatch(id) is None:
        raise Refusal(400, "the id of a sandbox has up to 63 of the characters a-z, 0-9 and -, and begins and ends with a letter or digit")
    return id


def target(path: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """The sandbox that a request is for, and its path without that.

    >>> target("/v1/health", {}), target("/sandboxes/a/v1/health", {}), target("/execute", {"x-sandbox-id": "b"})
    (('default', '/v1/health'), ('a', '/v1/health'), ('b', '/execute'))
    """
    named = headers.get(HEADER)
    if not path.startswith(PREFIX):
        return checked(named or DEFAULT), path
    id, slash, rest = path[len(PREFIX) :].partition("/")
    if named is not None and named != id:
        raise Refusal(400, "the path and the header X-Sandbox-ID name two sandboxes")
    return checked(id), slash + rest or "/"


@dataclass(frozen=True)
class Tokens:
    """The tokens: `server` opens all sandboxes, and each has one of its own. Without `server` anybody may ask."""

    server: str | None

    def of(self, id: str) -> str:
        """The token of one sandbox, which is made of that of the server."""
        return "sbx_" + hmac.new((self.server or "").encode(), f"sandbox {id}".encode(), hashlib.sha256).hexdigest()

    def admit(self, headers: Mapping[str, str], id: str | None) -> bool:
        """Whether a request may ask this sandbox, or without an id the server itself."""
        if self.server is None:
            return True
        given = bearer(headers)
        whole = is_same(given, self.server)
        return whole or (id is not None and is_same(given, self.of(id)))
