"""The routes by which clients make, list and end sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ... import AsyncSandbox
from ...errors import LindError, RequestError
from ..core import Held, Refusal, Sandboxes, body
from . import copies, network
from .box import HOME, Box, number, texts
from .copies import Snapshot, Snapshots

# The version of E2B's daemon whose interfaces are there: above it clients ask for more.
VERSION = "0.5.8"
# The seconds that a sandbox has if the client does not say, and the most.
SECONDS, LONGEST = 300, 30 * 24 * 3600
# The seconds of a fork.
FORK_SECONDS = 15
PAGE = 100
UNKNOWN = ("mcp", "iam", "volumeMounts")


@dataclass
class Control:
    """The sandboxes of the server, and what new ones are made of: the options of all, an image for each template, and the hosts that may be reached."""

    options: dict[str, Any]
    templates: dict[str, str | None]
    allow: Sequence[str]
    most: int
    sandboxes: Sandboxes[Box] = field(init=False)
    snapshots: Snapshots = field(init=False)

    def __post_init__(self) -> None:
        self.sandboxes = Sandboxes(self.most, self._over)
        self.snapshots = Snapshots(self.most, frozenset(self.templates))

    def box(self, id: str) -> Box:
        """The sandbox that a request for its inside is for. The words of the error are those by which clients know that it has ended."""
        try:
            return self.sandboxes.get(id).what
        except Refusal:
            raise Refusal(502, "the sandbox was not found") from None

    def routes(self) -> list[Route]:
        """The routes. The paths with a version are those of newer clients."""
        one = "/sandboxes/{id}"
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("POST", "/sandboxes", self.create),
            ("POST", "/v2/sandboxes", self.create),
            ("GET", "/sandboxes", self.list),
            ("GET", "/v2/sandboxes", self.list),
            ("GET", one, self.info),
            ("DELETE", one, self.kill),
            ("POST", f"{one}/connect", self.connect),
            ("POST", f"/v2{one}/connect", self.connect),
            ("POST", f"{one}/resume", self.connect),
            ("POST", f"{one}/pause", self.pause),
            ("POST", f"{one}/timeout", self.timeout),
            ("POST", f"{one}/refreshes", self.refresh),
            ("PUT", f"{one}/network", self.change_network),
            ("GET", f"{one}/metrics", self.metrics),
            ("POST", f"{one}/fork", self.fork),
            ("POST", f"{one}/snapshots", self.snapshot),
            ("GET", "/snapshots", self.list_snapshots),
            ("DELETE", "/templates/{id:path}", self.delete_snapshot),
        ]
        return [Route(path, work, methods=[method]) for method, path, work in table]

    async def create(self, request: Request) -> Response:
        """Makes a sandbox."""
        asked = await body(request)
        for key in UNKNOWN:
            if asked.get(key):
                raise Refusal(501, f"{key}: sandboxes of Lind do not have this")
        template = asked.get("templateID")
        snapshot = self.snapshots.find(template) if template not in self.templates else None
        if not isinstance(template, str) or (template not in self.templates and snapshot is None):
            raise Refusal(404, f"template {str(template)[:100]!r} is not known: the server has {', '.join(sorted(self.templates))}; its --template adds more")
        metadata, envs = texts(asked.get("metadata"), "metadata"), texts(asked.get("envVars"), "envVars")
        allow, deny = network.rules(self.allow, asked.get("allow_internet_access"), asked.get("network"))
        seconds = self._seconds(asked, SECONDS)
        resumes = asked.get("autoResume")

        async def make(id: str) -> Box:
            sandbox = await self._start(template, snapshot)
            try:
                before = [rule.number for rule in (await sandbox.policy()).rules]
                numbers = await network.hold(sandbox, allow, deny, before)
            except BaseException:
                await sandbox.close()
                raise
            return Box(id, template, sandbox, metadata, {"HOME": HOME, "USER": "user", **envs}, numbers, pauses=asked.get("autoPause") is True,
                       resumes=isinstance(resumes, dict) and resumes.get("enabled") is True, network=asked.get("network") or {},
                       internet=asked.get("allow_internet_access"))

        held = await self.sandboxes.add(make, Box.close, seconds)
        return JSONResponse(self._made(held.what), 201)

    async def _start(self, template: str, snapshot: Snapshot | None) -> AsyncSandbox:
        if snapshot is not None:
            return await snapshot.copy.start(AsyncSandbox, copies.SECONDS)
        sandbox = AsyncSandbox(**self.options, image=self.templates[template], workdir=HOME)
        try:
            await sandbox.open()
        except BaseException:
            await sandbox.close()
            raise
        return sandbox

    async def close(self) -> None:
        """Ends all sandboxes, and removes all snapshots."""
        self.snapshots.close()
        await self.sandboxes.close()

    def _seconds(self, asked: dict[str, Any], otherwise: float) -> float:
        return min(number(asked["timeout"], "timeout"), LONGEST) if asked.get("timeout") is not None else otherwise

    def _made(self, box: Box) -> dict[str, Any]:
        return {"templateID": box.template, "sandboxID": box.id, "clientID": "lind", "envdVersion": VERSION, "envdAccessToken": box.token, "alias": box.template}

    def _about(self, held: Held[Box], *, secret: bool) -> dict[str, Any]:
        box = held.what
        left = (held.end or 0) - asyncio.get_running_loop().time()
        memory = self.options.get("memory")
        about = {
            **self._made(box),
            "state": "paused" if box.paused else "running",
            "startedAt": box.started.isoformat(),
            "endAt": (datetime.now(timezone.utc) + timedelta(seconds=left if held.end is not None else LONGEST)).isoformat(),
            "cpuCount": 1,
            "memoryMB": memory >> 20 if isinstance(memory, int) else 0,
            "diskSizeMB": 0,
            "metadata": box.metadata,
        }
        if secret:
            lifecycle = {"onTimeout": "pause" if box.pauses else "kill", "autoResume": box.resumes}
            return about | {"lifecycle": lifecycle} | ({"allowInternetAccess": box.internet} if box.internet is not None else {}) | (
                {"network": box.network} if box.network else {})
        del about["envdAccessToken"]
        return about

    async def list(self, request: Request) -> Response:
        """Lists sandboxes, a page at a time."""
        query = request.query_params
        wanted = [(unquote(key), unquote(value)) for key, value in parse_qsl(query.get("metadata", ""))]
        states = [state for given in query.getlist("state") for state in given.split(",")] or ["running", "paused"]
        found = [
            held
            for held in self.sandboxes.all()
            if ("paused" if held.what.paused else "running") in states
            and all(held.what.metadata.get(key) == value for key, value in wanted)
            and query.get("template") in (None, held.what.template)
        ]
        found.sort(key=lambda held: held.what.started, reverse=query.get("order") != "asc")
        return _page([self._about(held, secret=False) for held in found], query)

    async def info(self, request: Request) -> Response:
        """Says what is known about a sandbox."""
        return JSONResponse(self._about(self._held(request), secret=True))

    def _held(self, request: Request) -> Held[Box]:
        return self.sandboxes.get(request.path_params["id"])

    async def kill(self, request: Request) -> Response:
        """Ends a sandbox."""
        if not await self.sandboxes.end(request.path_params["id"]):
            raise Refusal(404, "there is no sandbox of this id")
        return Response(status_code=204)

    async def connect(self, request: Request) -> Response:
        """Has a paused sandbox go on, and gives it more time."""
        held, asked = self._held(request), await body(request)
        was_paused, seconds = held.what.paused, self._seconds(asked, SECONDS)
        await held.what.resume(restores=asked.get("memory") is not False)
        if was_paused or held.end is None or held.end < asyncio.get_running_loop().time() + seconds:
            self.sandboxes.limit(held, seconds)
        return JSONResponse(self._made(held.what), 201 if was_paused else 200)

    async def pause(self, request: Request) -> Response:
        """Stops all that runs in a sandbox."""
        held, asked = self._held(request), await body(request)
        await self._pause(held, keeps_memory=asked.get("memory") is not False)
        return Response(status_code=204)

    async def _pause(self, held: Held[Box], *, keeps_memory: bool) -> None:
        await held.what.pause(keeps_memory)
        self.sandboxes.limit(held, LONGEST)

    async def _over(self, held: Held[Box]) -> None:
        try:
            if held.what.pauses and not held.what.paused:
                await self._pause(held, keeps_memory=True)
                return
        except (Refusal, LindError):
            pass
        await self.sandboxes.end(held.id)

    async def timeout(self, request: Request) -> Response:
        """Sets how long a sandbox has from now."""
        held, asked = self._held(request), await body(request)
        self.sandboxes.limit(held, self._seconds(asked, SECONDS))
        return Response(status_code=204)

    async def refresh(self, request: Request) -> Response:
        """Gives a sandbox more time."""
        held, asked = self._held(request), await body(request)
        self.sandboxes.limit(held, min(number(asked.get("duration", SECONDS), "duration"), LONGEST))
        return Response(status_code=204)

    async def change_network(self, request: Request) -> Response:
        """Changes what a sandbox may reach, for its next connection."""
        box, asked = self._held(request).what, await body(request)
        allow, deny = network.rules(self.allow, asked.get("allow_internet_access"), asked)
        try:
            async with box.lock:
                box.rules = await network.hold(box.sandbox, allow, deny, box.rules)
        except RequestError as why:
            raise Refusal(400, str(why)) from None
        box.network, box.internet = {key: asked[key] for key in ("allowOut", "denyOut") if key in asked}, asked.get("allow_internet_access")
        return Response(status_code=204)

    async def metrics(self, request: Request) -> Response:
        """The amounts that a sandbox uses now."""
        box = self._held(request).what
        return JSONResponse([] if box.paused else [await box.metric()])

    async def fork(self, request: Request) -> Response:
        """Makes sandboxes with the files of one, and says of each whether it was made."""
        source, asked = self._held(request).what, await body(request)
        seconds, count = self._seconds(asked, FORK_SECONDS), copies.forks(asked.get("count"))
        copy = await copies.taken(source, whole=True)

        async def make(id: str) -> Box:
            sandbox = await copy.start(AsyncSandbox, copies.SECONDS)
            try:
                rules = [rule.number for rule in (await sandbox.policy()).rules]
            except BaseException:
                await sandbox.close()
                raise
            return source.twin(id, sandbox, rules)

        async def one() -> dict[str, Any]:
            return self._made((await self.sandboxes.add(make, Box.close, seconds)).what)

        try:
            return JSONResponse([await copies.result(one) for _ in range(count)], 201)
        finally:
            copy.close()

    async def snapshot(self, request: Request) -> Response:
        """Keeps the files of a sandbox, for others."""
        source, asked = self._held(request).what, await body(request)
        made = await self.snapshots.make(source, asked.get("name"), asked.get("memory"))
        return JSONResponse(made.about(), 201)

    async def list_snapshots(self, request: Request) -> Response:
        """Lists snapshots, a page at a time."""
        query = request.query_params
        found = [
            one for one in self.snapshots.all()
            if query.get("sandboxID") in (None, one.source) and (query.get("name") is None or query["name"] in (one.id, one.id.partition(":")[0]))
        ]
        return _page([one.about() for one in found], query)

    async def delete_snapshot(self, request: Request) -> Response:
        """Removes a snapshot. Templates of the server stay."""
        if not self.snapshots.delete(request.path_params["id"]):
            raise Refusal(404, "there is no snapshot of this id")
        return Response(status_code=204)


def _page(found: Sequence[dict[str, Any]], query: Mapping[str, str]) -> Response:
    """The page of a list that a client asks for."""
    try:
        limit, start = min(int(query.get("limit", PAGE)), PAGE), int(query.get("nextToken", 0))
    except ValueError:
        raise Refusal(400, "limit and nextToken are numbers") from None
    if limit < 1 or start < 0:
        raise Refusal(400, "limit is positive, and nextToken not negative")
    more = {"x-next-token": str(start + limit)} if start + limit < len(found) else {}
    return JSONResponse(found[start : start + limit], headers=more)
