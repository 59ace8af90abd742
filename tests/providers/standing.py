"""Each provider with its settings, and a gateway to it, for tests that are the same for all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.applications import Starlette
from starlette.routing import Mount

from bot import settings
from bot.sessions.money.budget import Prices
from bot.simulation.anthropic import SimulatedAnthropic
from bot.simulation.loopback import serving
from bot.store.base import Store
from bot.web.credentials import from_settings
from bot.web.gateway import Gateway
from bot.web.gateway.providers.choice import chosen
from tests.providers import bedrock_stand_in, vertex_stand_in
from tests.providers.bedrock_stand_in import SimulatedBedrock
from tests.providers.vertex_stand_in import SimulatedVertex
from tests.world.gateway import REAL_KEY, Rig, Time, gateway_app

NAMES = ("anthropic", "bedrock", "vertex")


@dataclass
class Standing:
    """A provider's stand-in, the settings that lead to it, and what nobody may see."""

    name: str
    model: SimulatedAnthropic
    values: dict[str, str]
    secrets: list[str]

    @property
    def factor(self) -> float:
        """What it costs more than Anthropic's API."""
        return 1.1 if self.name == "vertex" else 1.0


@asynccontextmanager
async def standing(name: str) -> AsyncIterator[Standing]:
    if name == "bedrock":
        async with SimulatedBedrock.opened() as bedrock:
            yield Standing(name, bedrock, bedrock_values(bedrock), [bedrock_stand_in.SECRET])
    elif name == "vertex":
        async with SimulatedVertex.opened() as vertex:
            pem = settings.read_model(vertex_values(vertex)).secrets()[0].reveal()
            yield Standing(name, vertex, vertex_values(vertex), [pem, "ya29.canary-of-vertex-0000"])
    else:
        async with SimulatedAnthropic.running(REAL_KEY) as model:
            values = {"ANTHROPIC_API_KEY": REAL_KEY, "ANTHROPIC_BASE_URL": model.url}
            yield Standing(name, model, values, [REAL_KEY])


def bedrock_values(model: SimulatedBedrock) -> dict[str, str]:
    return {
        "FORGEHAND_PROVIDER": "bedrock",
        "FORGEHAND_BEDROCK_REGION": bedrock_stand_in.REGION,
        "FORGEHAND_BEDROCK_KEY_ID": bedrock_stand_in.KEY_ID,
        "FORGEHAND_BEDROCK_SECRET": bedrock_stand_in.SECRET,
        "FORGEHAND_BEDROCK_URL": model.url,
        "FORGEHAND_BEDROCK_STS_URL": model.url,
    }


def vertex_values(model: SimulatedVertex) -> dict[str, str]:
    return {
        "FORGEHAND_PROVIDER": "vertex",
        "FORGEHAND_VERTEX_PROJECT": vertex_stand_in.PROJECT,
        "FORGEHAND_VERTEX_REGION": vertex_stand_in.REGION,
        "FORGEHAND_VERTEX_KEY": model.key_file(),
        "FORGEHAND_VERTEX_URL": model.url,
    }


@asynccontextmanager
async def gateway_to(stand: Standing, folder: Path, **changes: str) -> AsyncIterator[Rig]:
    """Run a gateway as the settings make it; its tokens are minted by `Rig.token`."""
    clock = Time()
    model = settings.read_model({**stand.values, **changes})
    store = await Store.open(folder / "state.db", clock=clock)
    app = gateway_app(Gateway(store, chosen(model, from_settings(model)), clock, table=Prices.at(model)))
    async with (
        serving(Starlette(routes=[Mount("/gateway", app=app)])) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
    ):
        try:
            yield Rig(stand.model, store, client, app, port, clock)
        finally:
            await app.state.gateway.close()
            await store.close()
