"""Sends a turn back in its steps: when its agent or environment was lost, and once when its checks have failed.

Going back is a column of the turn, written in the transaction that leaves the step: it happens once however often we
are killed, and what was brought home before stays home until there is more.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence

from bot.models import Outcome, Step
from bot.proposal import verification
from bot.proposal.verification import CheckedCommand
from bot.sessions import agent_memory, environments
from bot.sessions.money import spending_limits
from bot.sessions.moves import End, Move, To
from bot.sessions.publish import rescue
from bot.sessions.services import Services
from bot.sessions.steps import collect
from bot.store import environments as rows
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.errors import SandboxError
from sandbox.execution import ExecutionEnvironment

log = logging.getLogger(__name__)

MOST_RESUMPTIONS = 2
"""Of one turn: what is lost again and again is lost for a reason."""


def seconds_used(turn: Turn) -> float:
    """Counts the time of the turn until its last sign of life: what is frozen or lost uses none."""
    if turn.work_started_at is None:
        return 0.0
    return max(0.0, (turn.pulse_at or turn.work_started_at) - turn.work_started_at)


async def agent_lost(services: Services, turn: Turn, environment: ExecutionEnvironment) -> Move | None:
    """Nobody has ended it, and its environment is there: it goes on in it. None where it may not."""
    if not await _may_go_on(services, turn):
        return None
    session = await sessions.session(services.store, turn.key.session)
    assert session.agent_session_id is not None
    await agent_memory.keep_transcript(services, session.agent_session_id, environment)
    return _again(turn, endings.goes_on())


async def environment_lost(services: Services, turn: Turn) -> Move:
    """Goes on in a new one from what was saved; without that, or when the agent had ended, ends with it."""
    now = await sessions.turn(services.store, turn.key)
    if now.step is Step.WORK and now.checkpoint_at is not None and await _may_go_on(services, now):
        return _again(now, endings.goes_on_elsewhere())
    return await _with_what_was_saved(services, now)


async def out_of_reach(services: Services, turn: Turn) -> Move:
    """It is said to be there and does not answer, however often it was asked: for us it is lost. What can be ended of
    it is ended first, or the turn's next environment would be this one."""
    row = await rows.used_by(services.store, turn.key)
    if row is not None:
        try:
            await environments.give_up(services, row.id)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": row.id, "error": str(error)})
    return await environment_lost(services, turn)


async def _may_go_on(services: Services, turn: Turn) -> bool:
    return turn.resumptions < MOST_RESUMPTIONS and await _has_more(services, turn, turn.timeout_seconds)


async def _has_more(services: Services, turn: Turn, seconds: float) -> bool:
    """Tells whether nothing has ended it, and its time, which is these seconds, and its money are not used up."""
    if turn.stop_requested or turn.outcome is not None or seconds_used(turn) >= seconds:
        return False
    return await spending_limits.exhaustion_of(services, turn, refused=False) is None


def _again(turn: Turn, words: str) -> Move:
    log.warning("the agent was lost and is begun anew", extra={"turn": turn.key.workflow_id})
    return To(Step.FURNISH, {"resumptions": turn.resumptions + 1, "stream_offset": 0}, note=words)


async def _with_what_was_saved(services: Services, turn: Turn) -> Move:
    saved, bundle = rescue.checkpoint_bundle(services, turn), rescue.collected_bundle(services, turn)
    if not saved.is_file():
        return End(Outcome.KILLED, endings.environment_lost())
    await asyncio.to_thread(shutil.copyfile, saved, bundle)
    move = await collect.admit(services, turn, bundle)
    if isinstance(move, End):
        return End(Outcome.KILLED, endings.environment_lost())
    return To(move.step, move.columns, (Outcome.KILLED, endings.environment_lost(saved=True)))


async def after_failed_checks(services: Services, turn: Turn, checks: Sequence[CheckedCommand]) -> To | None:
    """None where there is nothing to mend, or it may not go on."""
    failing = [one for one in checks if one.is_ours]
    now = await sessions.turn(services.store, turn.key)
    if not failing or not await _may_mend(services, now):
        return None
    try:  # what is home now is what an environment that is lost goes on from
        if turn.tree_sha is not None:
            await asyncio.to_thread(
                shutil.copyfile,
                rescue.collected_bundle(services, turn),
                rescue.checkpoint_bundle(services, turn),
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


async def _may_mend(services: Services, turn: Turn) -> bool:
    """Once, and only with enough of its money and time left that it can come to an end."""
    if turn.work_started_at is None:  # git alone has merged: there is no agent that it could go back to
        return False
    if turn.mending is not None:
        return False
    if not await _has_more(services, turn, spending_limits.WRAP_UP_SHARE * turn.timeout_seconds):
        return False
    return await spending_limits.share_spent(services, turn) < spending_limits.WRAP_UP_SHARE
