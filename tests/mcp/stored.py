"""Stores MCP servers as an account's owner does, beside a running service."""

from __future__ import annotations

from collections.abc import Mapping

from bot import settings
from bot.keyring import KeyRing
from bot.models import InstallationId
from bot.outside import services
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.simulation.mcp import SimulatedMcp
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.vault import Vault
from tests.world import World

BEARER = "canary-bearer-of-the-tracker"
INSIDE = InsideHosts(names=frozenset({"127.0.0.1"}))
OPENED = {"FORGEHAND_INSIDE_HOSTS": "127.0.0.1"}
"""The stand-in's address is an inside one."""


def bearer(name: str, url: str, installation: int = 0, options: Mapping[str, str] | None = None) -> OutsideService:
    return OutsideService(
        InstallationId(installation),
        Purpose.MCP,
        name,
        "http",
        url,
        stored_by="alice",
        options=dict(options or {}),
        credential=CredentialKind.BEARER,
    )


async def keep(world: World, server: SimulatedMcp, *names: str, **options: str) -> None:
    """Store the stand-in under these names, with its bearer token."""
    store = await Store.open(world.database)
    ring = KeyRing(settings.read(world.environment).secret_keys)
    vault = Vault(store, ring)
    await vault.prepare()
    for name in names:
        service = bearer(name, server.url, world.installation.id, options)
        await services.keep(store, vault, service, Secret(BEARER), account=world.repo.owner.login, inside=INSIDE)
    await store.close()
