"""A visitor of the service's pages, whose browser has cookies and forms but no JavaScript."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.world import World
from tests.world.plain_http import plain_client

FORM = re.compile(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)">')


@dataclass
class Visitor:
    client: httpx.AsyncClient
    github: str

    async def get(self, path: str) -> httpx.Response:
        return await self.client.get(path)

    async def csrf(self, page: str = "/") -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', (await self.get(page)).text)
        assert found
        return found[1]

    async def send(self, path: str, *, page: str = "/", **fields: str) -> httpx.Response:
        return await self.client.post(path, data={"csrf": await self.csrf(page), **fields})

    async def leave_for_github(self, next_: str = "/") -> str:
        """Return the address to which our redirect leads."""
        answer = await self.client.get("/sign-in/github", params={"next": next_})
        assert answer.status_code == 302
        return answer.headers["location"]

    async def agree(self, address: str, login: str) -> str:
        """Agree at GitHub, and return the address to which it sends the browser back."""
        async with plain_client(headers={"user-agent": "browser"}) as client:
            page = await client.get(address)
            fields = {name: html.unescape(value) for name, value in FORM.findall(page.text)}
            answer = await client.post(address.partition("?")[0], data={**fields, "login": login})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    async def sign_in(self, login: str, next_: str = "/") -> httpx.Response:
        back = urlsplit(await self.agree(await self.leave_for_github(next_), login))
        return await self.client.get(f"{back.path}?{back.query}")


@asynccontextmanager
async def visitor(world: World, url: str, login: str = "") -> AsyncIterator[Visitor]:
    async with plain_client(base_url=url, timeout=30) as client:
        one = Visitor(client, world.github.url)
        if login:
            answer = await one.sign_in(login)
            assert answer.status_code == 303, answer.text
        yield one


@dataclass
class Heard:
    """A server-sent event."""

    name: str
    data: Any
    id: str


async def hear(response: httpx.Response) -> AsyncIterator[Heard]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Heard(fields.get("event", ""), json.loads(fields["data"]), fields.get("id", ""))
            fields = {}
        else:
            fields = {}
