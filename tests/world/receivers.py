"""A receiver of bulletins on loopback. It takes only what passes the check that the documentation shows."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.simulation.loopback import serving

DOCS = Path(__file__).parents[2] / "docs" / "webhooks.md"
PATH = "/services/T0/canary-address"


@dataclass
class BulletinReceiver:
    url: str = ""
    key: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    holds: bool = False
    """It takes requests, and does not answer until `released`."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    clock: Callable[[], float] = time.time
    posts: list[tuple[str, Any]] = field(default_factory=list)
    """The id and the JSON of each request, whatever it was answered."""
    others: list[str] = field(default_factory=list)
    """Paths of requests that are no bulletins."""
    at_once: int = 0
    most_at_once: int = 0
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[Self]:
        one = cls()
        app = Starlette(
            routes=[
                Route(PATH, one._take, methods=["POST"]),
                Route("/{path:path}", one._other, methods=["GET", "POST"]),
            ]
        )
        async with serving(app, 0) as port:
            one.url = f"http://127.0.0.1:{port}{PATH}"
            try:
                yield one
            finally:
                one.released.set()

    async def got(self, count: int, seconds: float = 30.0) -> list[tuple[str, Any]]:
        async with asyncio.timeout(seconds), self.news:
            await self.news.wait_for(lambda: len(self.posts) >= count)
        return self.posts

    async def _take(self, request: Request) -> Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            body = await request.body()
            check = self._documented()
            if not check(self.key, request.headers, body) or check(self.key, request.headers, body + b" "):
                return Response(status_code=401)
            async with self.news:
                self.posts.append((request.headers["webhook-id"], json.loads(body)))
                self.news.notify_all()
            if self.holds:
                await self.released.wait()
            return Response("x" * 100_000, self.status, self.headers)
        finally:
            self.at_once -= 1

    async def _other(self, request: Request) -> Response:
        self.others.append(request.url.path)
        return Response(status_code=404)

    def _documented(self) -> Callable[..., bool]:
        """Return the check as the documentation has it, by our clock."""
        [code] = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
        names: dict[str, Any] = {"base64": base64, "hmac": hmac, "time": SimpleNamespace(time=self.clock)}
        exec(code, names)
        return names["check"]  # type: ignore[no-any-return]
