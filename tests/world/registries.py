"""A registry of the world's account, as its owner stores it before the service starts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.keyring import KeyRing
from bot.models import InstallationId
from bot.outside import services
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.simulation.registries import SimulatedRegistries
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.vault import Vault
from tests.world import SECRET_KEY, World

REGISTRY_SECRET = "canary-registry-secret-" + "0123456789" * 2
INSIDE = {"FORGEHAND_INSIDE_HOSTS": "127.0.0.1"}
"""The stand-ins listen on loopback."""


@asynccontextmanager
async def with_registries(world: World, *kinds: str) -> AsyncIterator[SimulatedRegistries]:
    """Run registries that demand a credential, and store those of these kinds under their kinds' names."""
    async with SimulatedRegistries.running(f"Bearer {REGISTRY_SECRET}") as registries:
        store = await Store.open(world.database)
        vault = Vault(store, KeyRing([Secret(SECRET_KEY)]))
        await vault.prepare()
        for kind in kinds:
            service = OutsideService(
                InstallationId(world.installation.id),
                Purpose.REGISTRY,
                kind,
                kind,
                registries.address(kind),
                "alice",
                options={"hosts": "127.0.0.1"},
                credential=CredentialKind.BEARER,
            )
            inside = InsideHosts(frozenset({"127.0.0.1"}))
            await services.keep(store, vault, service, Secret(REGISTRY_SECRET), account="octo", inside=inside)
        await store.close()
        world.environment |= INSIDE
        yield registries
