"""Template builds: asked for, started with their steps, looked at until they are ready. Nothing is really built."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.e2b_stand_in.registry import Refusal, Registry


@dataclass
class Build:
    name: str
    cpus: int
    memory_mb: int
    id: str
    recipe: dict[str, Any] = field(default_factory=dict)
    looks: int = 0


class Templates:
    """`fails_at`: the step, counted from 1, that a test lets go wrong."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.builds: list[Build] = []
        self.fails_at: int | None = None

    async def request(self, request: Request) -> Response:
        wanted = json.loads(await request.body())
        build = Build(wanted["name"], wanted["cpuCount"], wanted["memoryMB"], f"build-{len(self.builds) + 1}")
        if build.memory_mb % 2 or build.memory_mb < 128:
            raise Refusal(400, "memoryMB must be an even number of at least 128")
        self.builds.append(build)
        told = {"templateID": f"tpl-{build.name}", "buildID": build.id, "public": False, "tags": ["default"]}
        return JSONResponse({**told, "names": [build.name], "aliases": [build.name]}, 202)

    async def start(self, request: Request) -> Response:
        build = self._build(request)
        build.recipe = json.loads(await request.body())
        if not build.recipe.get("steps") or not build.recipe.get("fromImage"):
            raise Refusal(400, "a build needs an image and steps")
        return Response(status_code=202)

    async def status(self, request: Request) -> Response:
        build = self._build(request)
        build.looks += 1
        of = len(build.recipe["steps"])
        said = [f"[builder {n}/{of}] {one['type']} {' '.join(one.get('args') or [])}" for n, one in _numbered(build)]
        seen = int(request.query_params.get("logsOffset", 0))
        now = datetime.now(UTC).isoformat()
        entries = [{"timestamp": now, "message": line, "level": "info"} for line in said[seen:]]
        told: dict[str, Any] = {
            "templateID": f"tpl-{build.name}",
            "buildID": build.id,
            "logs": [],
            "status": "building",
        }
        if build.looks > 1:
            told |= self._ended(build)
        return JSONResponse({**told, "logEntries": entries})

    def _ended(self, build: Build) -> dict[str, Any]:
        if self.fails_at is not None:
            return {"status": "error", "reason": {"message": "exit status 1", "step": str(self.fails_at)}}
        if self._registry.templates is not None:
            self._registry.templates.add(build.name)
        return {"status": "ready"}

    def _build(self, request: Request) -> Build:
        found = next((one for one in self.builds if one.id == request.path_params["build"]), None)
        if found is None:
            raise Refusal(404, "build not found")
        return found


def _numbered(build: Build) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(build.recipe["steps"], 1))
