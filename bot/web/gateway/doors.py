"""Sends each request of a sandbox to its door: the model's gateway, or one for something else beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from bot.web.gateway import Gateway

BELOW = "/anthropic/"


class Doors:
    """An ASGI application. The doors beside the model's are below its address, which agents know, and are made when the
    first request comes."""

    def __init__(self, model: Gateway, beside: Mapping[str, Callable[[], ASGIApp]]) -> None:
        self._model = model
        self._beside = beside
        self._made: dict[str, ASGIApp] = {}

    def closing(self) -> None:
        self._model.closing()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._door(scope)(scope, receive, send)

    def _door(self, scope: Scope) -> ASGIApp:
        name = scope["path"].removeprefix("/gateway").removeprefix(BELOW).partition("/")[0]
        if scope["type"] != "http" or name not in self._beside:
            return self._model
        if name not in self._made:
            self._made[name] = self._beside[name]()
        return self._made[name]
