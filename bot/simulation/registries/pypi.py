"""PyPI's simple API as HTML and JSON; its files are on another host."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from bot.simulation.registries.shelf import Shelf, StoredPackage

JSON = "application/vnd.pypi.simple.v1+json"


def answer(shelf: Shelf, request: Request, path: str) -> Response:
    if request.method not in ("GET", "HEAD"):
        return Response("this index is only read", 405)
    simple, _, project = path.partition("/")
    if simple != "simple":
        return Response("no such page", 404)
    wanted = re.sub(r"[-_.]+", "-", project.rstrip("/")).lower()
    if project != f"{wanted}/":
        return RedirectResponse(f"/{shelf.url.split('/', 3)[3]}/simple/{wanted}/", 301)
    versions = shelf.of(wanted)
    if not versions:
        return Response("no such project", 404)
    if JSON in request.headers.get("accept", ""):
        return _json(shelf, wanted, versions)
    links = "".join(f'<a href="{_place(shelf, one)}#sha256={one.sha256}">{one.file}</a><br>' for one in versions)
    return Response(f"<!DOCTYPE html><html><body>{links}</body></html>", media_type="text/html")


def _json(shelf: Shelf, name: str, versions: list[StoredPackage]) -> Response:
    files = [
        {"filename": one.file, "url": _place(shelf, one), "hashes": {"sha256": one.sha256}, "size": len(one.data)}
        for one in versions
    ]
    document = {
        "meta": {"api-version": "1.1"},
        "name": name,
        "versions": [one.version for one in versions],
        "files": files,
    }
    return JSONResponse(document, media_type=JSON)


def _place(shelf: Shelf, one: StoredPackage) -> str:
    return f"{shelf.files_url}/packages/{one.sha256[:2]}/{one.sha256[2:]}/{one.file}"
