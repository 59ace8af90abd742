"""Sees to it, at the start and ever again, that there is no environment but those that are used or kept."""

from __future__ import annotations

import logging

from bot.loops import Loop
from bot.models import SessionId
from bot.sessions import environments
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store.environments import EnvironmentRow, EnvironmentState
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentPrimitives

log = logging.getLogger(__name__)

LABEL = {"app": "forgehand"}
EVERY_SECONDS = 30.0
"""Twice in the minute in which whatever nobody needs has to be gone."""


def loop(services: Services) -> Loop:
    """The sweeps; woken when an environment was given up."""

    async def look() -> None:
        if ended := await sweep(services):
            log.info("stray environments were ended", extra={"count": ended})

    return Loop("strays", look, EVERY_SECONDS)


async def sweep(services: Services) -> int:
    """How many were ended. One that resists is left for the next sweep."""
    known = await rows.all_of_them(services.store)
    found = {one.id: one for one in await services.environments.find(LABEL)}
    ended = 0
    for one in [*found, *(known.keys() - found.keys())]:
        try:
            ended += await _one(services, one, found.get(one), known.get(one))
        except SandboxError as error:
            log.warning("an environment could not be swept", extra={"id": one, "error": str(error)})
    return ended


async def _one(
    services: Services, name: str, environment: EnvironmentPrimitives | None, row: EnvironmentRow | None
) -> int:
    """A kept one that still runs is of somebody who died before it was at rest. One that was not there when we looked
    may be by now: whether a turn needs it is for the store to say."""
    session = SessionId(name.partition("-")[0]) if row is None else row.session_id
    async with services.environment_locks.of(session):
        if await rows.give_up_unneeded(services.store, name):
            await environments.give_up(services, name)
            return int(environment is not None)
        now = (await rows.all_of_them(services.store)).get(name)
        kept = now is not None and now.state is EnvironmentState.KEPT
        if now is not None and kept and environment is not None and await environment.is_running():
            await environments.lay_to_rest(services, now)
    return 0
