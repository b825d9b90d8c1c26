"""`lind sandboxd`: the daemon that the clients of the Kubernetes project agent-sandbox speak to in a pod."""

from __future__ import annotations

import argparse
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...errors import FileError, LindError, SandboxError, TimeoutExpired
from .. import core, settings
from ..bodies import Quiet
from ..core import Guard, Place, Refusal
from ..telling import refusal
from . import files, legacy, processes, rpc, watches
from .names import Tokens, checked, target
from .pod import Box, Pod

LISTEN, GRPC = "127.0.0.1:8080", "127.0.0.1:9090"
# The variable with the token, which a pod has from a secret.
VARIABLE = "LIND_SANDBOXD_TOKEN"
# Words in the names of variables that are nobody's business.
SECRET = ("AUTH", "BEARER", "CERT", "CRED", "KEY", "PASSWD", "PASSWORD", "PRIVATE", "SECRET", "TOKEN")
CODES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED", 408: "DEADLINE_EXCEEDED", 409: "CONFLICT",
         412: "ALREADY_EXISTS", 413: "RESOURCE_EXHAUSTED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED", 507: "RESOURCE_EXHAUSTED"}

Work = Callable[[Box, Request], Awaitable[Response]]


class Name(Convertor[str]):
    """The path of a file in that of a request: any characters, also the end of a line."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """The path."""
        return value

    def to_string(self, value: str) -> str:
        """The part of the request."""
        return value


register_url_convertor("name", Name())


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = core.options("sandboxd", "Serves sandboxes to the clients of the Kubernetes project agent-sandbox.", LISTEN)
    made.add_argument("--grpc", metavar="ADDRESS:PORT", default=GRPC, help=f"where the services of gRPC listen; {GRPC} unless given")
    made.add_argument("--open", action="store_true", help="asks nobody for a token; on the loopback alone")
    made.add_argument("--token-for", metavar="ID", help="prints the token that opens this sandbox and no other, and exits")
    made.add_argument("--idle", metavar="SECONDS", type=float, help="ends a sandbox that nobody has used for so long; the one without a name stays")
    made.add_argument("--keep", metavar="DIR", type=Path, help="keeps the files of each sandbox in a directory there that has its name")
    made.add_argument("--space", metavar="SIZE", help="how much memory the files of a sandbox may take without --keep; 256M unless given")
    made.add_argument("--timeout", metavar="SECONDS", type=float, default=3600.0, help="how long a command may run whose output comes at its end; 3600 unless given")
    made.add_argument("--max-output", metavar="BYTES", type=int, default=4_000_000, help="how much it may write; 4000000 unless given, which a client of gRPC takes")
    made.add_argument("--metadata-env-prefix", metavar="PREFIX", default="SANDBOX_", help="how the variables begin that /v1/metadata tells; SANDBOX_ unless given")
    made.add_argument("--image", metavar="NAME", help="the image of all sandboxes; the one of the package unless given")
    settings.add(made)
    return made


def refused(why: Refusal) -> Response:
    """The answer to a request that is refused, as the clients know it."""
    return JSONResponse({"code": CODES.get(why.status, "INTERNAL"), "message": str(why)}, why.status)


def metadata(environ: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The variables that anybody may know who may ask.

    >>> metadata({"SANDBOX_NAME": "a", "SANDBOX_API_KEY": "b", "HOME": "/"}, "SANDBOX_")
    {'SANDBOX_NAME': 'a'}
    """
    return {name: value for name, value in environ.items() if name.startswith(prefix) and not any(word in name.upper() for word in SECRET)}


def admits(tokens: Tokens) -> Callable[[Request], bool]:
    """Whether a request has the token of what it asks. Anybody may ask whether the server is well."""

    def check(request: Request) -> bool:
        id, path = target(request.url.path, request.headers)
        if path == "/v1/health" and request.method in ("GET", "HEAD"):
            return True
        if path == "/v1/sandboxes":
            return tokens.admit(request.headers, None)
        named = path.removeprefix("/v1/sandboxes/") if path.startswith("/v1/sandboxes/") else id
        return tokens.admit(request.headers, named)

    return check


class Named:
    """Tells the application which sandbox a request is for, and the path without that."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        if scope["type"] == "http":
            id, path = target(scope["path"], Headers(scope=scope))
            scope = {**scope, "path": path, "raw_path": path.encode(), "sandbox": id}
        await self._app(scope, receive, send)


def application(pod: Pod, limits: processes.Limits, about: dict[str, str]) -> ASGIApp:
    """The application, without the guard in front of it."""

    async def health(request: Request) -> Response:
        if not pod.ready:
            raise Refusal(503, "the server is ending")
        return JSONResponse({"status": "ok", "uptime_seconds": pod.seconds})

    async def tell(request: Request) -> Response:
        return JSONResponse({"env": about})

    async def all_of_them(request: Request) -> Response:
        known = [{"id": held.id, "commands": len(held.what.running), "began": held.what.began} for held in pod.sandboxes.all()]
        return JSONResponse({"sandboxes": known})

    async def end(request: Request) -> Response:
        if not await pod.sandboxes.end(checked(request.path_params["id"])):
            raise Refusal(404, "there is no sandbox of this id")
        return Response(status_code=204)

    def inside(work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            held = await pod.use(request.scope["sandbox"])
            with pod.using(held) as box:
                try:
                    return await work(box, request)
                except FileError as why:
                    raise refusal(why, files.STATUS) from None
                except SandboxError as why:
                    ended = await pod.drop(held)
                    raise Refusal(503, f"{why}: the next request begins another" if ended else str(why)) from None

        return answer

    routes = [Route("/v1/health", health), Route("/", health), Route("/v1/metadata", tell), Route("/v1/sandboxes", all_of_them),
              Route("/v1/sandboxes/{id}", end, methods=["DELETE"])]
    verbs: list[tuple[str, Work]] = [("GET", files.get), ("PUT", files.put), ("DELETE", files.delete), ("POST", files.post)]
    routes += [Route(path, inside(work), methods=[verb]) for path in ("/v1/files", "/v1/files/{path:name}") for verb, work in verbs]
    older: list[tuple[str, str, Work]] = [
        ("POST", "/execute", partial(legacy.execute, limits=limits)), ("POST", "/upload", legacy.upload), ("GET", "/download/{path:name}", legacy.fetch),
        ("GET", "/list/{path:name}", legacy.entries), ("GET", "/exists/{path:name}", legacy.exists)]
    routes += [Route(path, inside(work), methods=[verb]) for verb, path, work in older]
    handlers: dict[Any, Any] = {Refusal: lambda request, why: refused(why), LindError: _failed, HTTPException: lambda request, why: refused(Refusal(why.status_code, why.detail))}
    return Quiet(Named(Starlette(routes=routes, exception_handlers=handlers)))


def _failed(request: Request, why: Exception) -> Response:
    return refused(Refusal(504 if isinstance(why, TimeoutExpired) else 503 if isinstance(why, SandboxError) else 400, str(why)))


def _id(text: str) -> str:
    try:
        return checked(text)
    except Refusal as why:
        raise core.Unusable(f"--token-for {text}: {why}") from None


def get_token(given: argparse.Namespace) -> str | None:
    """The token of the server; None if it asks for none."""
    if given.open:
        return None
    text = os.environ.pop(VARIABLE, None)
    if text is None:
        return core.token(given.token_file)
    if len(text) < 16 or not text.isprintable() or not text.isascii():
        raise core.Unusable(f"{VARIABLE}: expected a token of 16 characters or more, in ASCII")
    return text


def main(words: Sequence[str]) -> int:
    """Serves until it is told to end."""
    given = parser().parse_args(words)

    async def work() -> None:
        tokens = Tokens(get_token(given))
        if given.token_for is not None:
            print(tokens.of(_id(given.token_for)))
            return
        keep = None if given.keep is None else given.keep.resolve()
        if keep is not None and not keep.is_dir():
            raise core.Unusable(f"--keep {keep}: is not a directory")
        about = metadata(os.environ, given.metadata_env_prefix)
        pod = Pod({**settings.read(given), "allow": given.allow, "image": given.image}, given.sandboxes, given.idle, keep, given.space)
        limits = processes.Limits(given.timeout, given.max_output, processes.Kept(processes.KEPT))
        calls = core.Address.find(given.grpc)
        if given.open and not (core.Address.find(given.listen).is_loopback and calls.is_loopback):
            raise core.Unusable("--open: beyond the loopback a token is asked for")
        place = Place.listen(given.listen, tuple(given.host))
        server = rpc.make(processes.Processes(limits).service(pod, tokens), watches.service(pod, tokens))
        try:
            port = server.add_insecure_port(str(calls))
        except RuntimeError:
            raise core.Unusable(f"{given.grpc}: cannot listen there") from None
        await server.start()

        async def end() -> None:
            await pod.close()
            await server.stop(core.GRACE)

        print(f"lind sandboxd: {place.url}, and gRPC at {replace(calls, port=port)}", flush=True)
        await core.serve(Guard(application(pod, limits, about), place.hosts, admits(tokens), refused), place, end)

    return core.run("sandboxd", work)
