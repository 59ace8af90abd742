"""An npm registry: packuments, full and short, tarballs, and what `npm audit` asks."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.simulation.registries.shelf import Shelf, StoredPackage

SHORT = "application/vnd.npm.install-v1+json"


def answer(shelf: Shelf, request: Request, path: str) -> Response:
    if request.method == "POST" and path.startswith("-/npm/v1/security/"):
        return JSONResponse({})
    if request.method not in ("GET", "HEAD"):
        return JSONResponse({"error": "method not allowed"}, 405)
    name, tarball, file = unquote(path).partition("/-/")
    if tarball:
        found = shelf.file(file.rpartition("/")[2])
        return Response(found.data, media_type="application/octet-stream") if found else _missing()
    versions = shelf.of(name)
    return _packument(shelf, name, versions, request) if versions else _missing()


def _missing() -> Response:
    return JSONResponse({"error": "Not found"}, 404)


def _packument(shelf: Shelf, name: str, versions: list[StoredPackage], request: Request) -> Response:
    document = {
        "name": name,
        "dist-tags": {"latest": versions[-1].version},
        "versions": {one.version: _version(shelf, one) for one in versions},
    }
    short = SHORT in request.headers.get("accept", "")
    if not short:
        document |= {"_id": name, "readme": f'The address is "tarball": "{shelf.url}", in words.'}
    return JSONResponse(document, media_type=SHORT if short else "application/json")


def _version(shelf: Shelf, one: StoredPackage) -> dict[str, object]:
    return {
        "name": one.name,
        "version": one.version,
        "dependencies": one.requires,
        "dist": {
            "tarball": f"{shelf.url}/{one.name}/-/{one.file}",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(one.data).digest()).decode(),
            "shasum": hashlib.sha1(one.data).hexdigest(),
        },
    }
