"""What becomes of an environment when its turn is over: kept for the session's next one, or ended.

The row says first that it is kept, then it is laid to rest; whoever dies in between leaves it to the sweep.
"""

from __future__ import annotations

import logging

from bot.models import Outcome
from bot.sessions import environments
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store.environments import EnvironmentState
from bot.store.sessions import Turn
from sandbox.errors import SandboxError

log = logging.getLogger(__name__)

IN_PEACE = (
    Outcome.PULL_REQUEST,
    Outcome.PUSHED,
    Outcome.ANSWERED,
    Outcome.REVIEWED,
    Outcome.PLANNED,
    Outcome.NO_CHANGE,
    Outcome.NEEDS_INPUT,
    Outcome.OVER_BUDGET,
    Outcome.TIMED_OUT,
)
"""After these the next turn may go on there. After any other, who knows what state it is in."""


async def keep_or_end(services: Services, turn: Turn) -> bool:
    """Whether it is kept; safe to repeat."""
    row = await rows.last_of(services.store, turn.key)
    if row is None:
        return False
    if row.state is EnvironmentState.KEPT:
        return True
    if not _may_stay(services, turn):
        await environments.give_up(services, row.id)
        return False
    await rows.keep(services.store, row.id, services.clock() + 60 * services.settings.limits.keep_minutes)
    return True


async def rest(services: Services, turn: Turn) -> None:
    """Where that cannot be done now, the sweep does it."""
    async with services.environment_locks.of(turn.key.session):
        row = await rows.last_of(services.store, turn.key)
        if row is None or row.state is not EnvironmentState.KEPT:
            return
        try:
            await environments.lay_to_rest(services, row)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": row.id, "error": str(error)})


def _may_stay(services: Services, turn: Turn) -> bool:
    """Not what has read words of people without write access (they might have laid something down for the next), and
    not where an agent was lost."""
    if turn.untrusted or turn.resumptions or turn.stop_requested or turn.outcome not in IN_PEACE:
        return False
    return services.settings.limits.keep_minutes > 0
