"""MCP servers of an account: stored as its owner does, and a door to them with a turn that may use them."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bot import repo_config, settings
from bot.keyring import KeyRing
from bot.models import InstallationId, Repo, RepoId, Thread, TurnKey
from bot.outside import services
from bot.outside.client import OutsideClient
from bot.settings import Secret
from bot.settings.inside import InsideHosts
from bot.simulation.loopback import serving
from bot.simulation.mcp import SimulatedMcp
from bot.store import gateway, outside_services, sessions
from bot.store.base import Store
from bot.store.outside_services import CredentialKind, OutsideService, Purpose
from bot.store.records import NewTurn
from bot.vault import Vault
from bot.web.mcp.door import McpDoor
from tests.world import SECRET_KEY, World

BEARER = "canary-bearer-of-the-tracker"
INSIDE = InsideHosts(names=frozenset({"127.0.0.1"}))
OPENED = {"FORGEHAND_INSIDE_HOSTS": "127.0.0.1"}
"""The stand-in's address is an inside one."""
CONFIG = "mcp: {tracker: {tools: [find_issue, create_issue, repeat], permission: allow}}\n"
THREAD = Thread(Repo(RepoId(1), "octo-org", "shop", True, "main"), InstallationId(1), 7, is_pull=False)


def stored(name: str, url: str, **changes: Any) -> OutsideService:
    given: dict[str, Any] = {"credential": CredentialKind.BEARER, "stored_by": "alice", **changes}
    return OutsideService(given.pop("installation", InstallationId(1)), Purpose.MCP, name, "http", url, **given)


async def keep(world: World, server: SimulatedMcp, *names: str, **options: str) -> None:
    """Store the stand-in under these names, with its bearer token, beside a running service."""
    store = await Store.open(world.database)
    vault = Vault(store, KeyRing(settings.read(world.environment).secret_keys))
    await vault.prepare()
    for name in names:
        service = stored(name, server.url, installation=world.installation.id, options=options)
        await services.keep(store, vault, service, Secret(BEARER), account=world.repo.owner.login, inside=INSIDE)
    await store.close()


@dataclass
class Rig:
    """A door to a stand-in, the store behind it, and a client with a turn's token."""

    server: SimulatedMcp
    store: Store
    vault: Vault
    door: McpDoor
    client: httpx.AsyncClient
    key: TurnKey
    numbers: Any

    async def keep(self, service: OutsideService, secret: str = BEARER) -> None:
        await services.keep(self.store, self.vault, service, Secret(secret), account="octo-org", inside=INSIDE)

    async def ask(
        self, method: str, params: Mapping[str, Any] | None = None, server: str = "tracker"
    ) -> httpx.Response:
        asked = {"jsonrpc": "2.0", "id": next(self.numbers), "method": method, "params": params or {}}
        return await self.client.post(f"/gateway/anthropic/mcp/{server}", json=asked)

    async def call(self, tool: str, **arguments: Any) -> tuple[bool, str]:
        """Return (whether it worked, the words of the result)."""
        answer = (await self.ask("tools/call", {"name": tool, "arguments": arguments})).json()
        result = answer["result"]
        return not result.get("isError"), "\n".join(one.get("text", json.dumps(one)) for one in result["content"])

    async def tools(self) -> dict[str, dict[str, Any]]:
        return {one["name"]: one for one in (await self.ask("tools/list")).json()["result"]["tools"]}


@asynccontextmanager
async def rigged(root: Path, server: SimulatedMcp, config: str = CONFIG) -> AsyncIterator[Rig]:
    store = await Store.open(root / "state.db")
    vault = Vault(store, KeyRing((Secret(SECRET_KEY),)))
    await vault.prepare()
    new = NewTurn(THREAD, "run", "work", "alice", 11, "comment:1", "claude-sonnet-5-5", 5.0, 3600.0)
    key = await sessions.begin_turn(store, new)
    assert key is not None
    await sessions.update_turn(store, key, config=repo_config.dump(repo_config.parse(config)))
    token = await gateway.mint(
        store, key, THREAD.installation, model="claude-sonnet-5-5", budget_usd=5.0, expires_at=store.now() + 600
    )
    outside = OutsideClient(INSIDE)
    door = McpDoor(store, vault, outside)
    headers = {"authorization": f"Bearer {token.reveal()}"}
    async with serving(door) as port:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
            rig = Rig(server, store, vault, door, client, key, itertools.count(1))
            await rig.keep(stored("tracker", server.url))
            yield rig
        await door.close()
        await outside.close()
    await store.close()


async def forget(rig: Rig, name: str) -> None:
    found = await outside_services.of_installation(rig.store, Purpose.MCP, THREAD.installation)
    await outside_services.remove(
        rig.store, next(one for one in found if one.name == name), by="alice", account="octo-org"
    )
