"""The gateway for packages between a registry on loopback and a client, as an environment uses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from bot.keyring import KeyRing
from bot.models import InstallationId, SessionId, TurnKey
from bot.outside import services
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.simulation.loopback import serving
from bot.simulation.registries import SimulatedRegistries
from bot.store import gateway, packages
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.store.package_cache import PackageCache
from bot.store.packages import FetchedPackage
from bot.vault import Vault
from bot.web.packages import PackageGateway
from bot.web.packages.fetching import PackageFetcher
from tests.world import SECRET_KEY

SECRET = "canary-registry-secret"
ACCOUNT = InstallationId(7)
KEY = TurnKey(SessionId("s0000001"), 1)
LOOPBACK = InsideHosts(frozenset({"127.0.0.1"}))


@dataclass
class PackageRig:
    store: Store
    vault: Vault
    gateway: PackageGateway
    registries: SimulatedRegistries
    port: int
    token: str = ""

    async def opened(self, *names: str, installation: InstallationId = ACCOUNT) -> str:
        """Make a token that opens registries, and use it from now on."""
        expires_at = self.store.now() + 600
        self.token = (await gateway.mint_for_packages(self.store, KEY, installation, names, expires_at)).reveal()
        return self.token

    async def noted(self, downloads: int = 1) -> list[FetchedPackage]:
        """Return what the session has got, once so many downloads are stored."""
        async with asyncio.timeout(10):
            while sum(one.downloads for one in await packages.of_session(self.store, KEY.session, 10)) < downloads:
                await self.store.write(lambda db: None)
        return await packages.of_session(self.store, KEY.session, 10)

    async def stored(
        self,
        kind: str,
        name: str = "",
        *,
        scope: str = "",
        public: bool = False,
        secret: str = SECRET,
        options: Mapping[str, str] | None = None,
    ) -> OutsideService:
        service = OutsideService(
            ACCOUNT,
            Purpose.REGISTRY,
            name or kind,
            kind,
            self.registries.address(kind, public=public),
            "alice",
            scope=scope,
            options={"hosts": "127.0.0.1"} if options is None else dict(options),
            credential=CredentialKind.NONE if public else CredentialKind.BEARER,
        )
        given = None if public else Secret(secret)
        await services.keep(self.store, self.vault, service, given, account="octo", inside=LOOPBACK)
        return service


@asynccontextmanager
async def rigged(folder: Path, elsewhere: SimulatedRegistries | None = None) -> AsyncIterator[PackageRig]:
    """`elsewhere` names registries that another process runs."""
    store = await Store.open(folder / "state.db")
    vault = Vault(store, KeyRing([Secret(SECRET_KEY)]))
    await vault.prepare()
    cache = PackageCache(folder, 1 << 30)
    packages_app = PackageGateway(store, PackageFetcher(vault, LOOPBACK, cache), Secret(SECRET_KEY))
    running = nullcontext(elsewhere) if elsewhere else SimulatedRegistries.running(f"Bearer {SECRET}")
    async with running as registries, serving(packages_app) as port:
        try:
            yield PackageRig(store, vault, packages_app, registries, port)
        finally:
            await packages_app.close()
            await store.close()
