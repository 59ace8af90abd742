"""A proxy of Go modules."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.simulation.registries.shelf import Shelf, StoredPackage

TIME = "2026-01-02T03:04:05Z"


def answer(shelf: Shelf, request: Request, path: str) -> Response:
    if request.method not in ("GET", "HEAD"):
        return Response("modules are only read", 405)
    name, _, asked = path.partition("/@")
    versions = shelf.of(name)
    if asked == "v/list" and versions:
        return Response("\n".join(one.version for one in versions) + "\n")
    if asked == "latest" and versions:
        return JSONResponse({"Version": versions[-1].version, "Time": TIME})
    version, _, end = asked.removeprefix("v/").rpartition(".")
    found = shelf.version(name, version)
    return _part(found, end) if found else Response("not found", 404)


def _part(found: StoredPackage, end: str) -> Response:
    if end == "info":
        return JSONResponse({"Version": found.version, "Time": TIME})
    if end == "mod":
        return Response(f"module {found.name}\n")
    return Response(found.data, media_type="application/zip") if end == "zip" else Response("not found", 404)
