"""A Maven repository of released versions."""

from __future__ import annotations

import hashlib

from starlette.requests import Request
from starlette.responses import Response

from bot.simulation.registries.shelf import Shelf, StoredPackage


def answer(shelf: Shelf, request: Request, path: str) -> Response:
    if request.method not in ("GET", "HEAD"):
        return Response("artifacts are only read", 405)
    file, dot, end = path.rpartition(".")
    if dot and end == "sha1":
        found = _file(shelf, file)
        return Response(hashlib.sha1(found).hexdigest()) if found is not None else Response("not found", 404)
    found = _file(shelf, path)
    return Response(found) if found is not None else Response("not found", 404)


def _file(shelf: Shelf, path: str) -> bytes | None:
    for one in shelf.packages:
        group, _, artifact = one.name.partition(":")
        folder = f"{group.replace('.', '/')}/{artifact}/{one.version}/{artifact}-{one.version}"
        if path == f"{folder}.jar":
            return one.data
        if path == f"{folder}.pom":
            return _pom(one, group, artifact).encode()
    return None


def _pom(one: StoredPackage, group: str, artifact: str) -> str:
    return (
        "<project><modelVersion>4.0.0</modelVersion>"
        f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{one.version}</version></project>"
    )
