"""The control plane's routes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.e2b_stand_in import network
from tests.e2b_stand_in.link import GuestGone
from tests.e2b_stand_in.registry import Refusal, Registry
from tests.e2b_stand_in.sandbox import Lifecycle, Sandbox, Wish
from tests.e2b_stand_in.templates import Templates
from tests.e2b_stand_in.usage import CPUS, DISK_MB, MEMORY_MB

ENVD_VERSION = "0.6.13"
DEFAULT_TIMEOUT = 300
PAGE = 100
Handler = Callable[[Request], Awaitable[Response]]


class Api:
    def __init__(self, registry: Registry, api_key: str) -> None:
        self._registry = registry
        self._key = api_key
        self.templates = Templates(registry)

    def routes(self) -> list[Route]:
        one = "/sandboxes/{id}"
        table: list[tuple[str, str, Handler]] = [
            ("POST", "/v2/sandboxes", self._create),
            ("POST", "/sandboxes", self._create),
            ("GET", "/v2/sandboxes", self._list),
            ("GET", one, self._info),
            ("DELETE", one, self._kill),
            ("POST", f"{one}/timeout", self._timeout),
            ("POST", f"{one}/pause", self._pause),
            ("POST", f"/v2{one}/connect", self._connect),
            ("POST", f"{one}/connect", self._connect),
            ("POST", f"{one}/resume", self._connect),
            ("GET", f"{one}/metrics", self._metrics),
            ("PUT", f"{one}/network", self._network),
            ("POST", f"{one}/snapshots", self._snapshot),
            ("GET", "/snapshots", self._snapshots),
            ("POST", "/v3/templates", self.templates.request),
            ("POST", "/v2/templates/{id}/builds/{build}", self.templates.start),
            ("GET", "/templates/{id}/builds/{build}/status", self.templates.status),
            ("DELETE", "/templates/{id:path}", self._delete_template),
            ("POST", "/secrets", self._create_secret),
            ("POST", "/secrets/{id}", self._update_secret),
        ]
        return [Route(path, self._guarded(handler), methods=[method]) for method, path, handler in table]

    def _guarded(self, handler: Handler) -> Handler:
        async def run(request: Request) -> Response:
            given = request.headers.get("x-api-key")
            if given != self._key:
                said = (
                    "Invalid API key, please visit https://e2b.dev/docs/api-key for more information."
                    if given
                    else ("API key is missing, please visit https://e2b.dev/docs/api-key for more information.")
                )
                return _error(401, said)
            try:
                return await handler(request)
            except Refusal as error:
                self._registry.refusals.append(error)
                return _error(error.status, str(error), error.error_code)
            except network.Invalid as error:
                return _error(400, str(error))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                return _error(400, f"Error when parsing request: {error}")

        return run

    # --- making and finding

    async def _create(self, request: Request) -> Response:
        wish = parse_wish(json.loads(await request.body()))
        sandbox = await self._registry.create(wish, request.headers.get("idempotency-key"))
        return JSONResponse(created(sandbox), 201)

    async def _connect(self, request: Request) -> Response:
        body = await _optional(request)
        timeout, keep = body.get("timeout", DEFAULT_TIMEOUT), body.get("memory") is not False
        sandbox, resumed = await self._registry.connect(_id(request), float(timeout), keep_memory=keep)
        return JSONResponse(created(sandbox), 201 if resumed else 200)

    async def _info(self, request: Request) -> Response:
        return JSONResponse(detail(self._registry.get(_id(request))))

    async def _list(self, request: Request) -> Response:
        query = request.query_params
        found = [each for each in self._registry.all.values() if matches(each, query)]
        found.sort(key=lambda each: (each.started_at, each.id), reverse=query.get("order", "desc") == "desc")
        limit = int(query.get("limit", PAGE))
        if not 1 <= limit <= PAGE:
            raise Refusal(400, f"Invalid limit: must be between 1 and {PAGE}")
        if token := query.get("nextToken"):
            ids = [each.id for each in found]
            if token not in self._registry.all:
                raise Refusal(400, "Invalid next token")
            found = found[ids.index(token) + 1 :] if token in ids else found
        headers = {"X-Total-Running": str(sum(each.state == "running" for each in found))}
        if len(found) > limit:
            headers["X-Next-Token"] = found[limit - 1].id
        return JSONResponse([listed(each) for each in found[:limit]], headers=headers)

    # --- changing

    async def _kill(self, request: Request) -> Response:
        await self._registry.kill(_id(request))
        return Response(status_code=204)

    async def _timeout(self, request: Request) -> Response:
        self._registry.set_timeout(_id(request), float(json.loads(await request.body())["timeout"]))
        return Response(status_code=204)

    async def _pause(self, request: Request) -> Response:
        body = await _optional(request)
        await self._registry.pause(_id(request), keep_memory=body.get("memory") is not False)
        return Response(status_code=204)

    async def _network(self, request: Request) -> Response:
        sandbox = self._registry.running(_id(request))
        wanted = json.loads(await request.body())
        network.check(wanted)
        kept = {
            name: value for name, value in sandbox.network.items() if name in ("allowPublicTraffic", "maskRequestHost")
        }
        if "allow_internet_access" in wanted:
            sandbox.allow_internet_access = wanted.pop("allow_internet_access")
        sandbox.network = kept | wanted
        return Response(status_code=204)

    async def _metrics(self, request: Request) -> Response:
        sandbox = self._registry.get(_id(request))
        if sandbox.state == "running":
            with contextlib.suppress(GuestGone):  # of a machine that is lost there are the earlier samples
                sandbox.usage.sample(sandbox.machine.pids())
        query = request.query_params
        start, end = int(query.get("start", 0)), int(query.get("end", 1 << 40))
        return JSONResponse([each for each in sandbox.usage.samples if start <= each["timestampUnix"] <= end])

    async def _snapshot(self, request: Request) -> Response:
        name = await self._registry.snapshot(_id(request), (await _optional(request)).get("name"))
        return JSONResponse({"snapshotID": name, "names": [name]}, 201)

    async def _snapshots(self, request: Request) -> Response:
        query = request.query_params
        found = [
            {"snapshotID": name, "names": [name]}
            for name in self._registry.snapshots
            if query.get("name", name) == name
            and query.get("sandboxID", self._registry.taken_of.get(name)) == self._registry.taken_of.get(name)
        ]
        return JSONResponse(found)

    async def _create_secret(self, request: Request) -> Response:
        body = json.loads(await request.body())
        if body["name"] in self._registry.secrets:
            return _error(409, "a secret with this name exists")
        self._registry.secrets[body["name"]] = [body["value"]]
        return JSONResponse(self._secret(body["name"]), 201)

    async def _update_secret(self, request: Request) -> Response:
        name = unquote(_id(request))
        if name not in self._registry.secrets:
            return _error(404, f"secret '{name}' not found")
        self._registry.secrets[name].append(json.loads(await request.body())["value"])
        return JSONResponse(self._secret(name))

    def _secret(self, name: str) -> dict[str, Any]:
        """Without its value, which can only be written."""
        now = _when(self._registry.clock.now())
        told = {"secretID": f"sec-{name}", "name": name, "metadata": {}, "createdAt": now, "updatedAt": now}
        return told | {"currentVersion": len(self._registry.secrets[name])}

    async def _delete_template(self, request: Request) -> Response:
        self._registry.forget_snapshot(unquote(_id(request)))
        return Response(status_code=204)


def parse_wish(body: dict[str, Any]) -> Wish:
    asked = body.get("network") or {}
    network.check(asked)
    lifecycle = Lifecycle(
        pause=bool(body.get("autoPause")),
        keep_memory=body.get("autoPauseMemory") is not False,
        auto_resume=bool((body.get("autoResume") or {}).get("enabled")),
    )
    if not lifecycle.keep_memory and not lifecycle.pause:
        raise Refusal(400, "autoPauseMemory=false only applies when autoPause is true.")
    if not lifecycle.keep_memory and lifecycle.auto_resume:
        raise Refusal(400, "autoPauseMemory=false (filesystem-only auto-pause) cannot be combined with autoResume")
    return Wish(
        template=body["templateID"],
        timeout=float(body.get("timeout", DEFAULT_TIMEOUT)),
        metadata=body.get("metadata") or {},
        env=body.get("envVars") or {},
        network=asked,
        allow_internet_access=body.get("allow_internet_access") is not False,
        lifecycle=lifecycle,
    )


def matches(sandbox: Sandbox, query: Any) -> bool:
    if sandbox.snapshotting or sandbox.state not in query.get("state", "running,paused").split(","):
        return False
    if "template" in query and query["template"] != sandbox.template:
        return False
    if "startedAfter" in query and sandbox.started_at < datetime.fromisoformat(query["startedAfter"]).timestamp():
        return False
    # The client quotes names and values before it encodes the whole.
    wanted = {unquote(name): unquote(value) for name, value in parse_qsl(query.get("metadata", ""))}
    return all(sandbox.metadata.get(name) == value for name, value in wanted.items())


def created(sandbox: Sandbox) -> dict[str, Any]:
    told: dict[str, Any] = _base(sandbox) | {"envdAccessToken": sandbox.access_token, "domain": None}
    if sandbox.network.get("allowPublicTraffic") is False:
        told["trafficAccessToken"] = sandbox.traffic_token
    return told


def listed(sandbox: Sandbox) -> dict[str, Any]:
    return _base(sandbox) | {
        "startedAt": _when(sandbox.started_at),
        "endAt": _when(sandbox.end_at),
        "cpuCount": CPUS,
        "memoryMB": MEMORY_MB,
        "diskSizeMB": DISK_MB,
        "metadata": sandbox.metadata,
        "state": sandbox.state,
    }


def detail(sandbox: Sandbox) -> dict[str, Any]:
    lifecycle = sandbox.lifecycle
    return listed(sandbox) | {
        "envdAccessToken": sandbox.access_token,
        "allowInternetAccess": sandbox.allow_internet_access,
        "network": sandbox.network,
        "domain": None,
        "lifecycle": {"autoResume": lifecycle.auto_resume, "onTimeout": "pause" if lifecycle.pause else "kill"},
    }


def _base(sandbox: Sandbox) -> dict[str, Any]:
    return {
        "templateID": sandbox.template,
        "alias": sandbox.template,
        "sandboxID": sandbox.id,
        "clientID": "6532622b",
        "envdVersion": ENVD_VERSION,
    }


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _id(request: Request) -> str:
    found: str = request.path_params["id"]
    return found


async def _optional(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(await request.body() or b"{}")
    return body


def _error(status: int, message: str, error_code: str | None = None) -> Response:
    about = {"error_code": error_code} if error_code else {}
    return JSONResponse({"code": status, "message": message, **about}, status)
