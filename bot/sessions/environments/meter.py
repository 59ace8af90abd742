"""Measures what environments use and cost, and ends those that no turn needs."""

from __future__ import annotations

import asyncio
import logging

from bot.errors import BotError
from bot.loops import Loop
from bot.models import SessionId, TurnKey
from bot.sessions import environments
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store import machines
from bot.store.base import Store
from bot.store.environments import EnvironmentUse
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentPrimitives, Lease

log = logging.getLogger(__name__)

SAMPLE_SECONDS = 10.0
BEAT_SECONDS = 60.0
"""While the agent works, the next look comes sooner than this, or we are dead."""
STEP_SECONDS = 900.0
"""The same for the other steps, whose actions prolong the machine's life meanwhile."""
LABEL = {"app": "forgehand"}
EVERY_SECONDS = 30.0
"""Twice in the minute in which unneeded environments must be gone."""


async def look(store: Store, key: TurnKey, environment: EnvironmentPrimitives, *, within: float = STEP_SECONDS) -> None:
    """Note the machine that runs for the turn, if it costs money. A failed question stops nobody."""
    try:
        lease = await environment.lease()
        if lease is not None:
            await machines.seen(store, key, _run(environment.id, lease, within))
    except SandboxError as error:
        log.warning("a machine could not be asked", extra={"turn": key.workflow_id, "error": str(error)})


async def catch_up(services: Services, environment_id: str) -> None:
    """Note the machine's unseen time before waking or ending it, which would hide that time.

    Its maker may have died (or failed) before the first look. Raises, so that nothing ends unasked."""
    for lease in await services.environments.leases(environment_id):
        await _note(services.store, environment_id, lease)


class MachineWitness:
    """Notes machines that a provider ends by itself: twins, and those that came back from a pause without files."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def ending(self, environment_id: str, lease: Lease) -> None:
        await _note(self._store, environment_id, lease)

    async def ended(self, environment_id: str, lease: Lease) -> None:
        await machines.end_of_run(self._store, environment_id, lease.since)


async def _note(store: Store, environment_id: str, lease: Lease) -> None:
    if (key := await rows.turn_of(store, environment_id)) is not None:
        await machines.missed(store, key, _run(environment_id, lease, 0.0))


def _run(environment_id: str, lease: Lease, within: float) -> machines.MachineRun:
    return machines.MachineRun(
        environment_id=environment_id,
        run_at=lease.since,
        ends_by=lease.until + within,
        cpus=lease.cpus,
        memory_gib=lease.memory_gib,
        cpu_usd=lease.cpu_usd,
        gib_usd=lease.gib_usd,
    )


async def sample(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Take samples beside the run, until cancelled, and skip those that fail."""
    while True:
        try:
            await _beat(services, turn, environment.primitives)
        except (BotError, SandboxError) as error:
            log.warning("no sample was taken", extra={"turn": turn.key.workflow_id, "error": str(error)})
        await asyncio.sleep(SAMPLE_SECONDS)


async def _beat(services: Services, turn: Turn, environment: EnvironmentPrimitives) -> None:
    if not await environment.is_running():
        # Wake the follower of the run, which finds out what that means.
        services.signals.poke(turn.key)
        raise EnvironmentGone("the environment does not run")
    await look(services.store, turn.key, environment, within=BEAT_SECONDS)
    found = await environment.metrics()
    await machines.add_sample(services.store, turn.key, found.cpu_percent, found.memory_bytes, found.disk_bytes)


async def _left_here(services: Services, name: str, environment: EnvironmentPrimitives | None) -> int:
    """End what we have under the name of one on another machine: its turn was taken over there."""
    if environment is None:
        return 0
    await services.environments.end(name)
    await services.egress.close(name)
    return 1


def sweeps(services: Services) -> Loop:
    async def look() -> None:
        if ended := await sweep_strays(services):
            log.info("stray environments were ended", extra={"count": ended})

    return Loop("strays", look, EVERY_SECONDS)


async def sweep_strays(services: Services) -> int:
    """Return how many were ended. One that resists waits for the next sweep."""
    known = await rows.all_of_them(services.store)
    found = {one.id: one for one in await services.environments.find(LABEL)}
    ended = 0
    for one in [*found, *(known.keys() - found.keys())]:
        try:
            ended += await _one(services, one, found.get(one))
        except SandboxError as error:
            log.warning("an environment could not be swept", extra={"id": one, "error": str(error)})
    await rows.forget_lost(services.store, services.here)
    return ended


async def _one(services: Services, name: str, environment: EnvironmentPrimitives | None) -> int:
    """End one that no turn needs by the store (it may exist by now, even if we have not seen it).

    Bring a kept one to rest if it still runs: its process died before that."""
    row = await rows.by_id(services.store, name)
    session = SessionId(name.partition("-")[0]) if row is None else row.session_id
    async with services.environment_locks.of(session):
        row = await rows.by_id(services.store, name)  # a turn of ours may have taken it meanwhile
        if row is not None and row.bound_to != services.here:
            return await _left_here(services, name, environment)
        if await rows.give_up_unneeded(services.store, name):
            await environments.give_up(services, name)
            return int(environment is not None)
        kept = row is not None and row.state is EnvironmentUse.KEPT
        if row is not None and kept and environment is not None and await environment.is_running():
            await environments.lay_to_rest(services, row)
    return 0
