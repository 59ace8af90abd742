"""The agent's environment on this machine, with its two ways out (gateway and egress)."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.errors import SettingsError, UserError
from bot.git import quarantine
from bot.git.errors import MirrorLost
from bot.sessions.money.budget import Prices
from bot.store.base import Store
from bot.web.credentials import from_settings
from bot.web.gateway import Dialect, Gateway
from bot.web.gateway.providers.choice import chosen
from bot.web.server import Server
from bot.workbench import slots, words
from bot.workbench.job import Audience, WorkbenchJob, WorkbenchMeans
from bot.workbench.snapshot import FolderSnapshot
from sandbox.agents.claude import Claude
from sandbox.choice import EnvironmentChoice, choose
from sandbox.egress import EgressProxy
from sandbox.execution import ExecutionEnvironment
from sandbox.local.folders import EnvironmentsFolder
from sandbox.primitives import EnvironmentSpec

LABELS = {"app": "forgehand", "kind": "execute"}
SPARE_SECONDS = 900.0
MOST_PACKED_BYTES = 4 << 30
LONGEST_SOCKET = 107


@dataclass(frozen=True)
class WorkbenchPlace:
    environment: ExecutionEnvironment
    isolation: str
    egress: EgressProxy

    def blocked_hosts(self) -> list[str]:
        return list(dict.fromkeys(one.host for one in self.egress.denied))


@asynccontextmanager
async def opened(
    slot: Path, job: WorkbenchJob, means: WorkbenchMeans, store: Store, snapshot: FolderSnapshot, audience: Audience
) -> AsyncIterator[WorkbenchPlace]:
    """Open an environment with the snapshot checked out; nothing in it outlives the block."""
    async with AsyncExitStack() as stack:
        choice = await _chosen(slot, means, isolate=job.isolate)
        stack.push_async_callback(choice.provider.close)
        if not choice.isolated:
            audience.note(words.NO_ISOLATION, alarm=True)
        if choice.not_newest:
            audience.note(words.not_newest(choice.not_newest))
        for left in await choice.provider.find(LABELS):  # of a killed run: the slot is ours now
            await left.terminate()
        model = means.model
        provider = chosen(model, from_settings(model))
        gateway = Gateway(store, provider, table=Prices.at(model), dialect=Dialect(model.admitted))
        stack.push_async_callback(gateway.close)
        egress = await _sockets(stack, choice, gateway, means)
        spec = EnvironmentSpec(LABELS, public_repository=False, lifetime_seconds=job.timeout_seconds + SPARE_SECONDS)
        environment = ExecutionEnvironment(await choice.provider.create(f"execute-{job.id}", spec), Claude())
        stack.push_async_callback(environment.close)
        await _bring_in(environment, job, snapshot)
        yield WorkbenchPlace(environment, choice.words if choice.isolated else "none", egress)


async def _chosen(slot: Path, means: WorkbenchMeans, *, isolate: bool) -> EnvironmentChoice:
    with slots.alone(means.root, "tools"):
        if isolate:
            # one copy of the agent's binary for all slots; `Base` knows where either of them really lies
            here, shared = EnvironmentsFolder(slot).tools, EnvironmentsFolder(means.root / "shared").tools
            if not here.is_symlink():
                await asyncio.to_thread(shutil.rmtree, here)
                here.symlink_to(shared)
        choice = await choose(slot, isolate=isolate, newest_in=means.newest_agent)
    if isolate and not choice.isolated:
        await choice.provider.close()
        raise UserError(words.not_isolated(choice.why))
    return choice


async def _sockets(
    stack: AsyncExitStack, choice: EnvironmentChoice, gateway: Gateway, means: WorkbenchMeans
) -> EgressProxy:
    path = choice.sockets / "gateway.sock"
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        raise SettingsError(words.long_socket(path))
    await stack.enter_async_context(Server(gateway, path, grace_seconds=1.0))
    egress = EgressProxy(
        choice.sockets / "egress.sock", lambda host: host.lower() in means.egress, admits=choice.admits
    )
    await egress.start()
    stack.push_async_callback(egress.close)
    return egress


async def _bring_in(environment: ExecutionEnvironment, job: WorkbenchJob, snapshot: FolderSnapshot) -> None:
    target = snapshot.mirror.with_name("in.pack")
    try:
        packed = await quarantine.write_pack(
            snapshot.mirror, snapshot.base, target, quarantine.Extent(50, MOST_PACKED_BYTES)
        )
    except MirrorLost:
        raise UserError(words.incomplete_repository(snapshot.folder.path)) from None
    await environment.prepare(packed.path, packed.sha, packed.shallow, job.branch)
    target.unlink()
    # files that the person's own rules ignore must not come home as new ones
    exclude = f"{environment.primitives.layout.work}/.git/info/exclude"
    await environment.primitives.write(exclude, snapshot.folder.ignored)
