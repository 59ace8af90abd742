"""The service's settings: the environment over the GitHub App that set-up stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bot import settings
from bot.settings import Settings

APP_NAMES = ("FORGEHAND_APP_ID", "FORGEHAND_PRIVATE_KEY", "FORGEHAND_WEBHOOK_SECRET")


async def chosen(values: Mapping[str, str], *, poll: bool) -> Settings:
    from bot import registration

    polled = {"FORGEHAND_POLL_SECONDS": registration.POLL_SECONDS, **values} if poll else values
    return settings.read(await merged(polled))


async def merged(values: Mapping[str, str]) -> dict[str, str]:
    """Add the stored App to the settings, if there is a store."""
    from bot import registration
    from bot import vault as vaults
    from bot.keyring import KeyRing
    from bot.store.base import place

    where = settings.read_database(values)
    if not await asyncio.to_thread(place(where).exists):
        return dict(values)
    ring = KeyRing(settings.read_secret_keys(values))
    await asyncio.to_thread(vaults.verify, where, ring)
    app = await asyncio.to_thread(registration.peek, where, ring)
    return registration.under(values, app)


async def has_no_app(values: Mapping[str, str]) -> bool:
    """Return True if no App is set or stored, as before the first start. A partly set App gives an error later."""
    if any(name.removesuffix("_FILE") in APP_NAMES and value.strip() for name, value in values.items()):
        return False
    return "FORGEHAND_APP_ID" not in await merged(values)
