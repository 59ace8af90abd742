"""Serves the schema of a repository's config to editors, without sign-in: it is the same for everyone."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot import repo_config

FOR_ALL = {"Cache-Control": "public, max-age=3600", "Access-Control-Allow-Origin": "*"}
"""CORS, because editors also run in browsers."""


def schema_routes() -> list[BaseRoute]:
    async def answer(request: Request) -> Response:
        return JSONResponse(repo_config.schema(), headers=FOR_ALL, media_type="application/schema+json")

    return [Route(repo_config.SCHEMA_AT, answer)]
