"""A fresh environment that holds one commit and nothing that an agent left: where the declared checks run.

It is one of its turn's environments: its row is there before it, it is metered, and it is ended in all cases.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from bot.git.pack import Had, RepositoryPack
from bot.git.quarantine import Quarantine
from bot.proposal import verification
from bot.sessions import environments
from bot.sessions.environments import growing, metering, warmth
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store import sessions
from bot.store.sessions import Turn
from bot.store.snapshots import Snapshot
from sandbox.errors import EnvironmentBusy, EnvironmentGone, KeyRefused, SandboxError
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentPrimitives

log = logging.getLogger(__name__)

ROOM_SECONDS = 30.0
"""Whoever waits for room holds room himself, the agent's environment: so nobody waits for long."""
END_SECONDS = 5.0
"""What takes longer is left to the sweep, which finds it given up."""


class NotToBeHad(Exception):
    """There is no room for another environment, its provider refused, or the commit cannot be checked out in it."""

    def __init__(self, why: str, error: BaseException) -> None:
        super().__init__(f"{why}: {error}")
        self.why = why
        """For people; the error's own words are for the log."""


@asynccontextmanager
async def opened(
    services: Services, turn: Turn, quarantine: Quarantine, commit: str
) -> AsyncIterator[ExecutionEnvironment]:
    """With a clean checkout of the commit, which is in the quarantine. What an earlier try has left is ended first."""
    await _end_left(services, turn)
    try:
        snapshot = await warmth.found(services, turn, (await sessions.session(services.store, turn.key.session)).thread)
        environment = ExecutionEnvironment(await _created(services, turn, snapshot), services.agent)
        try:
            await _bring_in(services, turn, environment, (quarantine, commit), snapshot)
        except (EnvironmentGone, EnvironmentBusy, KeyRefused):
            raise
        except SandboxError as error:
            raise NotToBeHad(verification.NOT_FURNISHED, error) from error
        yield environment
    finally:
        await leave(services, turn)


async def leave(services: Services, turn: Turn) -> None:
    """Nothing is left of it, or the sweep has it in hand; safe to repeat."""
    row = await rows.for_checks(services.store, turn.key)
    if row is None:
        return
    await rows.give_up(services.store, row.id)
    try:
        async with asyncio.timeout(END_SECONDS):
            await _end_left(services, turn)
    except (TimeoutError, SandboxError) as error:
        log.warning("an environment is left to the sweep", extra={"id": row.id, "error": str(error)})


async def _end_left(services: Services, turn: Turn) -> None:
    """Before there can be another one under its name: what has run in it must not be found again."""
    async with services.environment_locks.of(turn.key.session):
        if (row := await rows.for_checks(services.store, turn.key)) is not None:
            await environments.give_up(services, row.id)


async def _created(services: Services, turn: Turn, snapshot: Snapshot | None) -> EnvironmentPrimitives:
    spec = await environments.spec_of(services, turn)
    # Before sessions that are only to begin: this one is nearly done, and then gives back two places.
    spec = replace(spec, labels={**spec.labels, "purpose": rows.Purpose.CHECKS.value}, ahead=True)
    async with services.environment_locks.of(turn.key.session):
        row = await rows.take_for_checks(services.store, turn.key)
    try:
        async with asyncio.timeout(ROOM_SECONDS):
            primitives = await environments.created(services, row, spec, snapshot)
    except KeyRefused:
        raise
    except TimeoutError as error:
        raise NotToBeHad(verification.NO_ROOM, error) from error
    except SandboxError as error:
        raise NotToBeHad(verification.NOT_MADE, error) from error
    await services.ways.open(row.id, None if spec.egress is None else frozenset(spec.egress))
    await metering.look(services.store, turn.key, primitives)
    return primitives


async def _bring_in(
    services: Services,
    turn: Turn,
    environment: ExecutionEnvironment,
    source: tuple[Quarantine, str],
    snapshot: Snapshot | None,
) -> None:
    folder = services.turn_folder(turn.key.workflow_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    quarantine, commit = source

    async def packed(had: Had | None) -> RepositoryPack:
        return await quarantine.pack(commit, folder / "checks.pack", had=had)

    if snapshot is not None and await growing.grown(services, turn, environment, snapshot, packed):
        return
    pack = await packed(None)
    try:
        assert turn.base is not None
        await environment.prepare(pack.path, pack.sha, pack.shallow, turn.base, turn=turn.key.n, fresh=True)
    finally:
        pack.path.unlink(missing_ok=True)
