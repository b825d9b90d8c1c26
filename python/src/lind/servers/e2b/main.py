"""`lind e2b`: a server that the stock clients of E2B use instead of its cloud."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from ...errors import CommandError, LindError, RequestError, SandboxError, TimeoutExpired
from .. import core, settings
from ..bodies import Quiet
from ..core import Guard, Place, Refusal, bearer, is_same, refused
from . import entries, files, processes
from .box import Box
from .control import Control

LISTEN = "127.0.0.1:8600"
# The paths of requests for the server itself; all others are for the inside of a sandbox.
CONTROL = ("/sandboxes", "/v2/sandboxes", "/snapshots", "/templates/")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = core.options("e2b", "Serves sandboxes to the stock clients of E2B.", LISTEN)
    made.add_argument("--env", action="store_true", help="prints the lines that point clients at the server, and exits")
    made.add_argument("--template", metavar="NAME=IMAGE", action="append", default=[], help="an image for clients that ask for the template NAME")
    settings.add(made)
    return made


def templates(given: Sequence[str]) -> dict[str, str | None]:
    """The images of templates. "base", which clients ask for if they name none, is the image of the package."""
    found: dict[str, str | None] = {"base": None}
    for pair in given:
        name, equals, image = pair.partition("=")
        if not name or not equals or not image:
            raise core.Unusable(f"--template {pair}: expected NAME=IMAGE")
        found[name] = image
    return found


def admits(token: str, control: Control) -> Callable[[Request], bool]:
    """Whether a request has what it needs: the token of the server, or for the inside of a sandbox that of the sandbox."""

    def check(request: Request) -> bool:
        path, headers = request.url.path, request.headers
        if path.startswith(CONTROL):
            return is_same(headers.get("x-api-key") or bearer(headers), token)
        id = headers.get("e2b-sandbox-id")
        if id is not None:
            try:
                box = control.box(id)
            except Refusal:
                # It is told that there is no such sandbox.
                return True
            if is_same(headers.get("x-access-token"), box.token):
                return True
        signed = signer(control, request) if path == "/files" else None
        return signed is not None and id in (None, signed.id)

    return check


def signer(control: Control, request: Request) -> Box | None:
    """The sandbox whose signature the URL of a file has."""
    operation = {"GET": "read", "POST": "write"}.get(request.method)
    if operation is None or "signature" not in request.query_params:
        return None
    return next((held.what for held in control.sandboxes.all() if held.what.signed(operation, request.query_params)), None)


def application(control: Control) -> ASGIApp:
    """The application, without the guard in front of it."""

    def box(request: Request) -> Box:
        id = request.headers.get("e2b-sandbox-id")
        found = control.box(id) if id is not None else signer(control, request)
        if found is None:
            raise Refusal(404, "the header E2b-Sandbox-Id is missing")
        return found

    async def health(request: Request) -> Response:
        await box(request).running()
        return Response(status_code=204)

    async def inside_metrics(request: Request) -> Response:
        return JSONResponse(await box(request).metric())

    def with_box(work: Callable[[Box, Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await work(box(request), request)

        return answer

    routes: list[Any] = [
        *control.routes(),
        Route("/health", health),
        Route("/metrics", inside_metrics),
        Route("/files", with_box(files.download), methods=["GET"]),
        Route("/files", with_box(files.upload), methods=["POST"]),
    ]
    for made in (processes.service(control.box), entries.service(control.box)):
        routes.append(Mount(f"/{made.name}", app=made.app()))
    handlers: dict[Any, Any] = {Refusal: lambda request, why: refused(why), LindError: _failed}
    return Quiet(Starlette(routes=routes, exception_handlers=handlers))


def _failed(request: Request, why: Exception) -> Response:
    if isinstance(why, SandboxError):
        # Clients ask after the state of the sandbox where they read this.
        return refused(Refusal(502 if "e2b-sandbox-id" in request.headers else 500, f"{why}; the sandbox was not found" if "ended" in str(why) else str(why)))
    return refused(Refusal(504 if isinstance(why, TimeoutExpired) else 400 if isinstance(why, CommandError | RequestError) else 500, str(why)))


def main(words: Sequence[str]) -> int:
    """Serves until it is told to end."""
    given = parser().parse_args(words)

    async def work() -> None:
        token = core.token(given.token_file, "e2b_")
        if given.env:
            url = f"http://{given.listen}"
            for name, value in (("E2B_API_URL", url), ("E2B_SANDBOX_URL", url), ("E2B_API_KEY", token)):
                print(f"export {name}={shlex.quote(value)}")
            return
        control = Control(settings.read(given), templates(given.template), given.allow, given.sandboxes)
        place = Place.listen(given.listen, tuple(given.host))
        print(f"lind e2b: {place.url}", flush=True)
        await core.serve(Guard(application(control), place.hosts, admits(token, control)), place, control.close)

    return core.run("e2b", work)
