"""Failing checks go back to the agent, once: the same conversation goes on in the same environment.

The one way back in a turn. It is a column of the turn, written in the transaction that leaves the step; so it is
taken once however often we are killed, and what was brought home before stays home until there is more.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence

from bot.models import Step
from bot.proposal import verification
from bot.proposal.verification import CheckedCommand
from bot.sessions import checkpoints, keeping, losses
from bot.sessions.money import exhaustion, wrapping_up
from bot.sessions.moves import To
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings

log = logging.getLogger(__name__)


async def back(services: Services, turn: Turn, checks: Sequence[CheckedCommand]) -> To | None:
    """None where there is nothing to mend, or it may not go on."""
    failing = [one for one in checks if one.is_ours]
    now = await sessions.turn(services.store, turn.key)
    if not failing or not await _may(services, now):
        return None
    try:  # what is home now is what an environment that is lost goes on from
        if turn.tree_sha is not None:
            await asyncio.to_thread(
                shutil.copyfile, keeping.collected(services, turn), checkpoints.path(services, turn)
            )
    except OSError as error:
        log.warning("what failed stays as it is", extra={"turn": turn.key.workflow_id, "error": error.strerror})
        return None
    columns = {
        "mending": turn.resumptions + 1,
        "resumed": 1,
        "stream_offset": 0,
        "checkpoint_at": services.clock(),
        "verified": verification.dump(checks),
    }
    return To(Step.WORK, columns, note=endings.checks_go_back(len(failing)))


async def _may(services: Services, turn: Turn) -> bool:
    """Once, and only with enough of its money and time left that it can come to an end."""
    if turn.work_started_at is None:  # git alone has merged: there is no agent that it could go back to
        return False
    if turn.mending is not None or turn.stop_requested or turn.outcome is not None:
        return False
    if losses.seconds_used(turn) >= wrapping_up.SHARE * turn.timeout_seconds:
        return False
    if await exhaustion.found(services, turn, refused=False) is not None:
        return False
    return await exhaustion.share(services, turn) < wrapping_up.SHARE
