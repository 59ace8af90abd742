"""A gateway between a scripted model and a client, as an environment uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from bot.errors import BotError
from bot.models import InstallationId, SessionId, TurnKey
from bot.settings import Secret
from bot.simulation.anthropic import SimulatedAnthropic
from bot.simulation.loopback import serving
from bot.store import gateway as rows
from bot.store import spend
from bot.store.base import Store
from bot.web.gateway import AnthropicApi, Credential, Credentials, Gateway

REAL_KEY = "sk-ant-api03-canary-of-the-installation"
OAUTH = "sk-ant-oat01-canary-of-the-subscription"
MODEL = "claude-sonnet-5-5"
MESSAGES = "/gateway/anthropic/v1/messages"
COUNT = "/gateway/anthropic/v1/messages/count_tokens"
INSTALLATION = InstallationId(7)
TOOL = {"name": "Bash", "input_schema": {"type": "object"}}


class Time:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Rig:
    """A gateway, its upstream, its store and a client."""

    model: SimulatedAnthropic
    store: Store
    client: httpx.AsyncClient
    app: Starlette
    port: int
    time: Time
    credential: list[Credential] = field(default_factory=lambda: [Credential(Secret(REAL_KEY))])
    turns: int = 0

    async def token(self, **terms: Any) -> tuple[str, TurnKey]:
        self.turns += 1
        key = TurnKey(SessionId("s0000001"), self.turns)
        given = {"model": MODEL, "budget_usd": 5.0, "expires_at": self.time.now + 600, **terms}
        return (await rows.mint(self.store, key, INSTALLATION, **given)).reveal(), key

    async def ask(self, token: str, words: str = "hi", path: str = MESSAGES, **more: Any) -> httpx.Response:
        return await self.client.post(path, headers=headers(token), json=body(words, **more))

    def stream(self, token: str, words: str = "hi", **more: Any) -> AbstractAsyncContextManager[httpx.Response]:
        return self.client.stream("POST", MESSAGES, headers=headers(token), json=body(words, stream=True, **more))

    async def settled(self, key: TurnKey) -> spend.ModelCost:
        """Return the turn's cost once no request is under way."""
        async with asyncio.timeout(10):
            while (cost := await spend.turn_cost(self.store, key)).open:
                await self.store.write(lambda db: None)
        return cost

    @property
    def refusals(self) -> dict[str, int]:
        return dict(self.app.state.gateway.refusals)


def headers(token: str) -> dict[str, str]:
    return {"x-api-key": token, "anthropic-version": "2023-06-01", "user-agent": "claude-cli/2.1.326"}


def body(words: str, **more: Any) -> dict[str, Any]:
    base = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": words}], "tools": [TOOL]}
    return {**base, **more}


@asynccontextmanager
async def rigged(
    folder: Path,
    *,
    upstream: str | None = None,
    finding: Callable[[Store], Credentials] | None = None,
    **settings: Any,
) -> AsyncIterator[Rig]:
    """Run a rig; with `finding`, the gateway looks for credentials in the store instead of the rig's list."""
    clock = Time()
    store = await Store.open(folder / "state.db", clock=clock)
    credentials: list[Credential] = [Credential(Secret(REAL_KEY))]

    async def credential(installation: InstallationId) -> Credential:
        if not credentials:
            raise BotError("no credential is stored")
        return credentials[0]

    async with SimulatedAnthropic.running(REAL_KEY, oauth_token=OAUTH) as model:
        found = finding(store) if finding else credential
        provider = AnthropicApi(upstream or model.url, found, settings.get("dialect"))
        app = gateway_app(Gateway(store, provider, clock, **settings))
        async with (
            serving(Starlette(routes=[Mount("/gateway", app=app)])) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, verify=False) as client,
        ):
            try:
                yield Rig(model, store, client, app, port, clock, credentials)
            finally:
                await app.state.gateway.close()
                await store.close()


def gateway_app(gateway: Gateway) -> Starlette:
    """Make an app to mount. Its caller closes `app.state.gateway`, because nothing calls a mounted app's own end."""
    app = Starlette(routes=[Mount("/", app=gateway)])
    app.state.gateway = gateway
    return app


@asynccontextmanager
async def odd_upstream(endpoint: Callable[..., Any]) -> AsyncIterator[str]:
    app = Starlette(routes=[Route("/{path:path}", endpoint, methods=["POST", "GET"])])
    async with serving(app) as port:
        yield f"http://127.0.0.1:{port}"


def kind(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["type"]
