"""Says that a turn is stopped when that is decided, and not only when all that it did has been saved."""

from __future__ import annotations

import asyncio
import contextlib

from bot.errors import TransientError
from bot.live.sections import stop_said_from
from bot.models import Outcome
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings

LOOK_SECONDS = 2.0
AT_ONCE_SECONDS = 0.05
"""Beyond the time at which the comment changes its form."""


async def herald(services: Services, turn: Turn) -> None:
    """Beside a step that brings the work home or publishes it: it saves the work, and so it is not cut short."""
    wish = await _wish(services, turn)
    assert wish.stop_requested is not None
    words = endings.stopped_by(wish.stop_requested)
    if await sessions.decide_stopped(services.store, turn.key, words) is not Outcome.STOPPED:
        return
    await asyncio.sleep(max(0.0, stop_said_from(wish) - services.clock()) + AT_ONCE_SECONDS)
    services.board.touch(turn.key, pressing=True)


async def _wish(services: Services, turn: Turn) -> Turn:
    while True:
        with contextlib.suppress(TransientError):
            now = await sessions.turn(services.store, turn.key)
            if now.stop_requested is not None and now.stop_at is not None:
                return now
        await services.signals.wait(turn.key, LOOK_SECONDS)
