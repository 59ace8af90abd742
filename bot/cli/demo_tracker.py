"""The demo's MCP server: started, opened by the repository, and stored as an account's owner does."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from bot import settings
from bot.cli.vault_access import opened
from bot.errors import SettingsError
from bot.models import InstallationId
from bot.settings.inside import NAME as INSIDE
from bot.simulation.mcp import SimulatedMcp
from bot.simulation.scenarios import tracker

LOOPBACK = {INSIDE: "127.0.0.1"}


async def stored(stack: AsyncExitStack, values: Mapping[str, str], folder: Path, replicas: int) -> tuple[str, ...]:
    """Return the secrets that the service has because of it."""
    from bot.web.mcp import entry

    if replicas > 1:
        raise SettingsError("The scenario mcp runs with one replica.")
    secret = f"mcp-{secrets.token_urlsafe(40)}"
    server = await stack.enter_async_context(SimulatedMcp.running(f"Bearer {secret}"))
    place = {**values, "FORGEHAND_DATA_DIR": str(folder / "data")}
    inside = settings.read_inside(place)
    async with opened(place, writes=True) as (store, vault, _):
        service = entry.ServerEntry(tracker.NAME, server.url, "bearer").service(InstallationId(0), "operator", inside)
        await entry.keep(store, vault, service, secret, account="everybody", inside=inside)
    return (secret,)
