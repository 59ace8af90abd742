"""The environment of a turn: where it comes from, how it is found again, what the agent is told about it."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace

from bot import repo_config
from bot.errors import EnvironmentUnavailable
from bot.models import Step
from bot.sessions.environments import hosts, metering
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store import machines, sessions, snapshots
from bot.store.environments import EnvironmentRow
from bot.store.sessions import Turn
from bot.store.snapshots import Snapshot
from sandbox.errors import EnvironmentGone, SandboxError, SnapshotGone
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentPrimitives, EnvironmentSpec

log = logging.getLogger(__name__)
CLOSED = 1
"""Grows whenever more of a sandbox is closed before an agent comes: in one that was open, one has been already."""
NETWORKED = (Step.WORK, Step.VERIFY)
"""Steps in which commands of others run there; bringing the work home asks for nothing but the work."""


async def find_or_create(
    services: Services, turn: Turn, snapshot: Snapshot | None
) -> tuple[ExecutionEnvironment, EnvironmentRow]:
    """The turn's own, the one that was kept for it, or a new one; under a key that a repetition finds again."""
    spec = await spec_of(services, turn)
    again = await rows.used_by(services.store, turn.key) is not None
    async with services.environment_locks.of(turn.key.session):
        # No longer than this: there may not be room for it for hours, and who looks for strays must not wait for that.
        row = await rows.take(services.store, turn.key, _made_of(services, spec))
    await _end_given_up(services, turn)
    if again:
        await metering.catch_up(services, row.id)
    if is_reused(row) and not row.prepared:
        # By way of `attach`, which says so when it is not there: `create` would make another, unseen.
        kept = await services.environments.attach(row.id)
        await kept.still()
    primitives = await created(services, row, spec, snapshot)
    await services.ways.open(row.id, None if spec.egress is None else frozenset(spec.egress))
    await metering.look(services.store, turn.key, primitives)
    return ExecutionEnvironment(primitives, services.agent, attempt=turn.attempt), row


async def _end_given_up(services: Services, turn: Turn) -> None:
    """What was kept and does not fit: it may hold the place that the new one needs."""
    for left in await rows.given_up(services.store, turn.key.session):
        try:
            await give_up(services, left)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": left, "error": str(error)})


async def created(
    services: Services, row: EnvironmentRow, spec: EnvironmentSpec, snapshot: Snapshot | None
) -> EnvironmentPrimitives:
    """From the snapshot where there is one still."""
    found = await _created(services, row, spec, snapshot)
    log.info("a sandbox is there", extra={"sandbox": row.id, "purpose": row.purpose, "kept": is_reused(row)})
    return found


async def _created(
    services: Services, row: EnvironmentRow, spec: EnvironmentSpec, snapshot: Snapshot | None
) -> EnvironmentPrimitives:
    if snapshot is None or is_reused(row):
        return await services.environments.create(row.id, spec)
    try:
        return await services.environments.create(row.id, replace(spec, snapshot=snapshot.snapshot_id))
    except SnapshotGone:
        await snapshots.condemn(services.store, snapshot.name)
        return await services.environments.create(row.id, spec)


def is_reused(row: EnvironmentRow) -> bool:
    """An earlier turn has left it."""
    return row.purpose is rows.Purpose.WORK and row.id != f"{row.session_id}-{row.turn}"


async def spec_of(services: Services, turn: Turn) -> EnvironmentSpec:
    thread = (await sessions.session(services.store, turn.key.session)).thread
    config, reachable = repo_config.load(turn.config), await hosts.open_to(services, turn)
    return EnvironmentSpec(
        labels={"app": "forgehand", "session": turn.key.session, "turn": str(turn.key.n), "repo": str(thread.repo.id)},
        public_repository=not thread.repo.private,
        lifetime_seconds=turn.timeout_seconds + 600,
        egress=None if reachable is None else tuple(sorted(reachable)),
        template=config.template,
    )


def _made_of(services: Services, spec: EnvironmentSpec) -> str:
    """What cannot be changed in one that is there, also of the operator's: the cloud's firewall stays as it was."""
    e2b = services.settings.e2b
    operators = [] if e2b is None else [CLOSED, e2b.template, e2b.hosts(), e2b.unmetered is not None]
    wish = [spec.public_repository, spec.egress, spec.template, *operators]
    return hashlib.sha256(json.dumps(wish).encode()).hexdigest()


async def attach(services: Services, turn: Turn) -> ExecutionEnvironment:
    row = await rows.used_by(services.store, turn.key)
    if row is None:
        raise EnvironmentUnavailable("the turn has no environment yet")
    primitives = await services.environments.attach(row.id)
    if turn.step in NETWORKED:
        await services.ways.open(row.id, await hosts.open_to(services, turn))
    await metering.look(services.store, turn.key, primitives)
    return ExecutionEnvironment(primitives, services.agent, attempt=turn.attempt)


async def is_gone(services: Services, turn: Turn, error: SandboxError) -> bool:
    """Whether what failed in it failed because there is no environment any more. What says so itself is believed: of
    one that is just being removed something may be left for a moment."""
    if isinstance(error, EnvironmentGone):
        return True
    try:
        environment = await attach(services, turn)
        return not await environment.primitives.is_running()
    except EnvironmentGone:
        return True
    except (EnvironmentUnavailable, SandboxError):
        return False


async def give_up(services: Services, environment_id: str) -> None:
    """Gone for good; that it is gone already is as good."""
    await rows.give_up(services.store, environment_id)
    await metering.catch_up(services, environment_id)
    await services.environments.end(environment_id)
    await machines.end_of(services.store, environment_id)
    await services.ways.close(environment_id)
    await rows.forget(services.store, environment_id)
    log.info("a sandbox was ended", extra={"sandbox": environment_id})


async def lay_to_rest(services: Services, row: EnvironmentRow) -> None:
    """A kept one, by who holds its session's lock: it needs nothing from now on. One that does not come to rest is
    given up, since it would go on to cost."""
    try:
        await services.environments.rest(row.id)
    except SandboxError as error:
        log.warning("a kept environment does not come to rest", extra={"id": row.id, "error": str(error)})
        await give_up(services, row.id)
    else:
        await machines.end_of(services.store, row.id)
