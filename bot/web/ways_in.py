"""Leads requests from environments to what answers them: the model's gateway, and others by the path's beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.types import ASGIApp, Receive, Scope, Send


class WaysIn:
    """An ASGI application in front of others. Paths are compared as they were sent; each application judges its own."""

    def __init__(self, otherwise: ASGIApp, below: Mapping[str, ASGIApp], closing: Callable[[], None]) -> None:
        self._otherwise = otherwise
        self.closing = closing
        """Tells them that from now on no request waits."""
        self._below = {path.encode(): app for path, app in below.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent: bytes = scope.get("raw_path") or scope.get("path", "").encode("utf-8", "surrogateescape")
        found = next((app for path, app in self._below.items() if sent.startswith(path)), self._otherwise)
        await found(scope, receive, send)
