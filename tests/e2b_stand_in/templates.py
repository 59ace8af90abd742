"""Templates being built: asked for, begun, and ready some looks later; nothing of them is really run."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.e2b_stand_in.registry import Refusal, Registry

MOST_LOGGED = 100


@dataclass
class Build:
    name: str
    cpus: int
    memory_mb: int
    template_id: str = field(default_factory=lambda: secrets.token_hex(10))
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    status: str = "waiting"
    definition: dict[str, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)


class Templates:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.builds: list[Build] = []

    async def ask(self, request: Request) -> Response:
        body = json.loads(await request.body())
        if not body.get("name"):
            raise Refusal(400, "name is required")
        build = Build(body["name"], int(body.get("cpuCount", 2)), int(body.get("memoryMB", 1024)))
        self.builds.append(build)
        told = {"public": False, "names": [build.name], "tags": ["default"], "aliases": [build.name]}
        return JSONResponse({"templateID": build.template_id, "buildID": build.id, **told}, 202)

    async def begin(self, request: Request) -> Response:
        build = self._find(request)
        build.definition = json.loads(await request.body())
        if not build.definition.get("fromImage") and not build.definition.get("fromTemplate"):
            raise Refusal(400, "either fromImage or fromTemplate is required")
        build.status = "building"
        return Response(status_code=202)

    async def status(self, request: Request) -> Response:
        """A step further at every look."""
        build, offset = self._find(request), int(request.query_params.get("logsOffset", 0))
        steps = build.definition.get("steps", [])
        if build.status == "building" and len(build.log) < len(steps):
            step = steps[len(build.log)]
            build.log.append(f"{step['type']} {' '.join(step.get('args') or [])}"[:500])
        elif build.status == "building":
            build.status = "ready"
            if self._registry.templates is not None:
                self._registry.templates.add(build.name)
        entries = [_entry(line) for line in build.log[offset : offset + MOST_LOGGED]]
        told = {"templateID": build.template_id, "buildID": build.id, "status": build.status}
        return JSONResponse({**told, "logs": [one["message"] for one in entries], "logEntries": entries})

    def _find(self, request: Request) -> Build:
        for build in self.builds:
            if (build.template_id, build.id) == (request.path_params["id"], request.path_params["build"]):
                return build
        raise Refusal(404, "Build not found")


def _entry(message: str) -> dict[str, str]:
    return {"timestamp": datetime.now(UTC).isoformat(), "level": "info", "message": message}
