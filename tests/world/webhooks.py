"""The running edge of webhooks with a store behind it, and requests as GitHub sends them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from starlette.applications import Starlette

from bot.settings import Secret
from bot.store import deliveries
from bot.store.base import Store
from bot.web.bodies import BodyLimits
from bot.web.health import health_routes
from bot.web.server import HeadLimits, Server, tcp_socket
from bot.web.webhooks import webhook_routes
from tests.world import stored
from tests.world.plain_http import plain_client

SECRET = "first secret"
HANDLED = ("issue_comment", "issues.opened")
BODY = b'{"action":"created","issue":{"number":5},"repository":{"id":7},"sender":{"login":"alice"}}'
MEGABYTE = 1024 * 1024


def signed(body: bytes, *, guid: str = "g-1", event: str = "issue_comment", secret: str = SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-GitHub-Delivery": guid, "X-GitHub-Event": event, "X-Hub-Signature-256": f"sha256={digest}"}


@dataclass
class Edge:
    """A running edge, its store, and how often it announced work."""

    store: Store
    server: Server
    client: httpx.AsyncClient
    nudges: list[int] = field(default_factory=list)

    async def post(self, body: bytes, headers: dict[str, str] | list[tuple[str, str]]) -> httpx.Response:
        return await self.client.post("/webhook", content=body, headers=headers)

    async def rows(self) -> list[deliveries.StoredDelivery]:
        return await stored.newest_deliveries(self.store)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = httpx.URL(self.server.url)
        return await asyncio.open_connection(url.host, url.port)


@asynccontextmanager
async def running(
    folder: Path, *, limits: BodyLimits | None = None, head_limits: HeadLimits | None = None
) -> AsyncIterator[Edge]:
    store = await Store.open(folder / "state.db")
    nudges: list[int] = []
    secrets = [Secret(SECRET), Secret("second secret")]
    routes = webhook_routes(
        store, secrets, handled=HANDLED, on_stored=lambda: nudges.append(1), limits=limits or BodyLimits()
    )
    app = Starlette(routes=[*routes, *health_routes({})])
    server = Server(app, tcp_socket("127.0.0.1", 0), head_limits=head_limits or HeadLimits(), grace_seconds=1)
    async with server, plain_client(base_url=server.url, timeout=30) as client:
        yield Edge(store, server, client, nudges)
    await store.close()
