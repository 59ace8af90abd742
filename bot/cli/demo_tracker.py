"""The demo's MCP server: started, and stored as the operator does."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AsyncExitStack

from bot import settings
from bot.cli.vault_access import opened
from bot.simulation.mcp import SimulatedMcp
from bot.simulation.scenarios import tracker
from bot.store.accounts import OPERATOR


async def stored(stack: AsyncExitStack, values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets that the service has because of it."""
    from bot.web.mcp import entry

    secret = f"mcp-{secrets.token_urlsafe(40)}"
    server = await stack.enter_async_context(SimulatedMcp.running(f"Bearer {secret}"))
    inside = settings.read_inside(values)
    async with opened(values, writes=True) as (store, vault, _):
        service = entry.ServerEntry(tracker.NAME, server.url, "bearer").service(OPERATOR, "operator", inside)
        await entry.keep(store, vault, service, secret, account="everybody", inside=inside)
    return (secret,)
