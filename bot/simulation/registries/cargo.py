"""A sparse index of Cargo."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.simulation.registries.shelf import Shelf


def answer(shelf: Shelf, request: Request, path: str) -> Response:
    if request.method not in ("GET", "HEAD"):
        return Response("this index is only read", 405)
    folder, _, rest = path.partition("/")
    if folder == "crates":
        name, version, _ = rest.split("/")
        found = shelf.version(name, version)
        return Response(found.data, media_type="application/x-tar") if found else Response("no such crate", 404)
    if folder != "index":
        return Response("no such page", 404)
    if rest == "config.json":
        public = shelf.url.endswith("/public/cargo")
        place = f"{shelf.files_url}/{{crate}}/{{crate}}-{{version}}.crate" if public else f"{shelf.url}/crates"
        return JSONResponse({"dl": place, "api": shelf.url} | ({} if public else {"auth-required": True}))
    versions = shelf.of(rest.rpartition("/")[2])
    lines = [
        json.dumps({
            "name": one.name, "vers": one.version, "deps": [], "cksum": one.sha256, "features": {}, "yanked": False,
        })
        for one in versions
    ]  # fmt: skip
    return Response("\n".join(lines) + "\n", media_type="text/plain") if lines else Response("no such crate", 404)
