"""Tokens for the tests, made by an owner on the account's page, and a client that sends one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from tests.world import World
from tests.world.plain_http import plain_client
from tests.world.visitor import visitor

_KEYS = count()


@dataclass
class ApiClient:
    """A program with a token."""

    http: httpx.AsyncClient
    secret: str
    repository: str
    headers: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str) -> httpx.Response:
        return await self.http.get(f"/api/v1{path}", headers=self._headers())

    async def post(self, path: str, body: Any = None, *, key: str = "") -> httpx.Response:
        headers = {**self._headers(), "Idempotency-Key": key or f"key-{next(_KEYS)}"}
        return await self.http.post(f"/api/v1{path}", headers=headers, json=body)

    async def start(self, number: int, *, key: str = "", **wish: Any) -> httpx.Response:
        return await self.post("/sessions", {"repository": self.repository, "number": number, **wish}, key=key)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}", **self.headers}


@asynccontextmanager
async def api_client(world: World, url: str, **fields: str) -> AsyncIterator[ApiClient]:
    """Make a token as olga, who owns the account and may write in the repository."""
    world.github.organization("octo-org", owners=["olga"])
    world.repo.grant("olga", "write")
    given = {"token": "ci", "kind_run": "yes", "token_budget": "5", "token_days": "7", **fields}
    given.setdefault("token_repositories", world.repo.full_name)
    async with visitor(world, url, "olga") as olga:
        page = await olga.send(f"/installations/{world.installation.id}/tokens", **given)
    secret = re.search(r"fhat_[\w-]{43}", page.text)
    assert page.status_code == 200 and secret, page.text[:2000]
    async with plain_client(base_url=url, timeout=30) as http:
        yield ApiClient(http, secret[0], world.repo.full_name)
