"""The proxy before all sandboxes: finds the one that is meant, wakes it or says that it is not there."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import re
from collections.abc import Callable

import httpx
from starlette.background import BackgroundTask
from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.e2b_stand_in.clock import Clock
from tests.e2b_stand_in.envd_files import FilesystemService
from tests.e2b_stand_in.envd_http import FilesEndpoint, refused, signature
from tests.e2b_stand_in.envd_process import ProcessService
from tests.e2b_stand_in.link import GuestGone
from tests.e2b_stand_in.paths import USERS
from tests.e2b_stand_in.registry import Refusal, Registry
from tests.e2b_stand_in.sandbox import Sandbox
from tests.world.plain_http import plain_client

ENVD = 49983
HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"}
NO_TOKEN = "unauthorized access, please provide a valid access token or method signing if supported"
PATIENCE = 0.5


class Edge:
    def __init__(self, registry: Registry, clock: Clock, cut: Callable[[Scope, bool], None]) -> None:
        self._registry = registry
        self._cut = cut
        self._files = FilesEndpoint(clock)
        self._services: dict[str, ASGIApp] = {
            "/process.Process": ProcessService(clock),
            "/filesystem.Filesystem": FilesystemService(),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted, port = self._meant(Headers(scope=scope), scope)
        sandbox = self._registry.all.get(wanted)
        response: Response | None = None
        if sandbox is not None and sandbox.paused and sandbox.lifecycle.auto_resume and sandbox.lifecycle.keep_memory:
            try:
                await self._registry.wake(sandbox)
            except Refusal as error:
                response = JSONResponse({"code": error.status, "message": str(error)}, error.status)
        if response is None and (sandbox is None or sandbox.state != "running" or sandbox.lost):
            response = not_found(wanted)
        if response is not None or sandbox is None:
            await (response or not_found(wanted))(scope, receive, send)
            return
        scope["sandbox"] = sandbox
        await self._unless_interrupted(envd_or_port(self._envd, port), sandbox, (scope, receive, send))

    def _meant(self, headers: Headers, scope: Scope) -> tuple[str, int]:
        found = named(headers)
        if found[0]:
            return found
        # With E2B_SANDBOX_URL the SDK's signed addresses name no sandbox: it is told by whose token has signed.
        query = QueryParams(scope["query_string"])
        operation = "read" if scope["method"] == "GET" else "write"
        for sandbox in self._registry.all.values():
            if query.get("signature") == signature(sandbox, operation, query):
                return sandbox.id, ENVD
        return "", ENVD

    async def _unless_interrupted(self, app: ASGIApp, sandbox: Sandbox, asgi: tuple[Scope, Receive, Send]) -> None:
        """A pause or an end breaks off what is under way: with an answer of the proxy, or in the middle of one."""
        scope, receive, send = asgi
        started = False

        async def note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        interrupted = asyncio.ensure_future(sandbox.interrupted.wait())
        serving = asyncio.ensure_future(_served(app, scope, receive, note))
        try:
            await asyncio.wait({serving, interrupted}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done() and started:
                await asyncio.wait({serving}, timeout=PATIENCE)
            if serving.done():
                if not serving.result() and not started:
                    gone = sandbox.interrupted.is_set()
                    await (not_found(sandbox.id) if gone else port_closed(sandbox.id, ENVD))(scope, receive, send)
            elif started:
                self._cut(scope, False)
            else:
                await not_found(sandbox.id)(scope, receive, send)
        finally:
            for task in (serving, interrupted):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _envd(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, headers = scope["path"], Headers(scope=scope)
        sandbox: Sandbox = scope["sandbox"]
        if path == "/health" and scope["method"] == "GET":
            await Response(status_code=204)(scope, receive, send)
            return
        if path == "/files":
            await self._files(scope, receive, send)
            return
        service = self._services.get(path.rpartition("/")[0])
        if headers.get("x-access-token") != sandbox.access_token:
            service = refused(401, NO_TOKEN)
        elif service is None:
            service = Response("404 page not found\n", 404, media_type="text/plain")
        elif (user := user_of(headers)) not in USERS:
            service = refused(401, f"invalid username: '{user}'")
        else:
            scope["user"] = user
        await service(scope, receive, send)


def named(headers: Headers) -> tuple[str, int]:
    """The sandbox and port that a request names, by headers or by its host; "" for none."""
    if "e2b-sandbox-id" in headers:
        port = headers.get("e2b-sandbox-port", "")
        return headers["e2b-sandbox-id"], int(port) if port.isdigit() else ENVD
    host = re.match(r"(\d+)-(i?[a-z0-9]+)\.", headers.get("host", ""))
    return (host[2], int(host[1])) if host else ("", ENVD)


def user_of(headers: Headers) -> str:
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() != "basic":
        return "user"
    try:
        return base64.b64decode(value).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return "user"


def not_found(sandbox_id: str) -> Response:
    return JSONResponse({"sandboxId": sandbox_id, "message": "The sandbox was not found", "code": 502}, 502)


def port_closed(sandbox_id: str, port: int) -> Response:
    said = "The sandbox is running but port is not open"
    return JSONResponse({"sandboxId": sandbox_id, "message": said, "port": port, "code": 502}, 502)


def envd_or_port(envd: ASGIApp, port: int) -> ASGIApp:
    if port == ENVD:
        return envd

    async def to_port(scope: Scope, receive: Receive, send: Send) -> None:
        await (await _through(Request(scope, receive), port))(scope, receive, send)

    return to_port


async def _served(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> bool:
    """Whether the machine was there to the end."""
    try:
        await app(scope, receive, send)
    except GuestGone:
        return False
    return True


async def _through(request: Request, port: int) -> Response:
    """To a port inside: the host's own, because sandboxes share its network."""
    sandbox: Sandbox = request.scope["sandbox"]
    closed = sandbox.network.get("allowPublicTraffic") is False
    if closed and request.headers.get("e2b-traffic-access-token") != sandbox.traffic_token:
        said = "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing"
        return JSONResponse({"sandboxId": sandbox.id, "message": said, "code": 403}, 403)
    headers = [(name, value) for name, value in request.headers.items() if name not in HOP]
    client = plain_client(timeout=None, trust_env=False)
    try:
        url = f"http://127.0.0.1:{port}{request.url.path}"
        asked = client.build_request(
            request.method, url, params=request.query_params, headers=headers, content=await request.body()
        )
        answer = await client.send(asked, stream=True)
    except httpx.TransportError:
        await client.aclose()
        return port_closed(sandbox.id, port)
    given = {name: value for name, value in answer.headers.items() if name not in HOP}

    async def close() -> None:
        await answer.aclose()
        await client.aclose()

    return StreamingResponse(answer.aiter_raw(), answer.status_code, given, background=BackgroundTask(close))
