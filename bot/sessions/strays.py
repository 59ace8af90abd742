"""Environments that nobody needs any more: their turn is done, or is not known to this store."""

from __future__ import annotations

import logging

from bot.errors import StoreError
from bot.models import SessionId, TurnKey, TurnState
from bot.store import sessions
from bot.store.base import Store
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentPrimitives, EnvironmentProvider

log = logging.getLogger(__name__)

LABEL = {"app": "forgehand"}


async def sweep(store: Store, provider: EnvironmentProvider) -> int:
    """End them; how many there were. One that resists is left for the next sweep."""
    try:
        found = await provider.find(LABEL)
    except SandboxError as error:  # turns are admitted all the same: each of them will say what is wrong
        log.error("stray environments could not be looked for", extra={"error": str(error)})
        return 0
    ended = 0
    for environment in found:
        if await _is_needed(store, environment):
            continue
        try:
            await environment.terminate()
            ended += 1
        except SandboxError as error:
            log.warning("a stray environment could not be ended", extra={"id": environment.id, "error": str(error)})
    return ended


async def _is_needed(store: Store, environment: EnvironmentPrimitives) -> bool:
    session, _, number = environment.id.rpartition("-")
    try:
        turn = await sessions.turn(store, TurnKey(SessionId(session), int(number)))
    except (StoreError, ValueError):
        return False
    return turn.state is not TurnState.DONE
