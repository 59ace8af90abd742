"""Sends a turn back in its steps: when its agent or environment was lost, and once when its checks have failed.

Going back is a column of the turn, stored in the transaction that leaves the step. So it happens once, however often we
are killed. Earlier work stays home until newer work arrives.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence

from bot.kinds.shape import TakenOver, TurnPart
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
"""A turn that is lost more often is lost for a reason."""
MOST_TAKEOVERS = 10
"""Replicas end one after the other in an upgrade. But a turn that ends whole machines must not visit them all."""


def seconds_used(turn: Turn) -> float:
    """Count the time until the turn's last sign of life: a frozen or lost one uses none."""
    if turn.work_started_at is None:
        return 0.0
    return max(0.0, (turn.pulse_at or turn.work_started_at) - turn.work_started_at)


async def agent_lost(services: Services, turn: Turn, environment: ExecutionEnvironment) -> Move | None:
    """Go on in the same environment with an agent that nobody has ended; None if it may not."""
    if not await _may_go_on(services, turn):
        return None
    session = await sessions.session(services.store, turn.key.session)
    assert session.agent_session_id is not None
    await agent_memory.keep_transcript(services, session.agent_session_id, environment)
    return _again(turn, endings.goes_on())


async def environment_lost(services: Services, turn: Turn) -> Move:
    """Go on in a new one from the saved work; end the turn if nothing was saved or the agent had ended.

    If it is on another machine, its work is out of reach, too: begin again from what was saved, if anything."""
    now = await sessions.turn(services.store, turn.key)
    if await environments.is_elsewhere(services, now):
        before = now.part(TakenOver).times
        if before < MOST_TAKEOVERS and await _has_more(services, now, now.timeout_seconds):
            return _again(now, endings.goes_on_elsewhere(), TakenOver(before + 1))
    if now.step is Step.WORK and now.checkpoint_at is not None and await _may_go_on(services, now):
        return _again(now, endings.goes_on_elsewhere())
    saved, bundle = await rescue.checkpoint(services, now), rescue.collected_bundle(services, now)
    if saved is not None:
        bundle.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        await asyncio.to_thread(shutil.copyfile, saved, bundle)
        move = await collect.admit(services, now, bundle)
        if isinstance(move, To):
            return To(move.step, move.columns, (Outcome.KILLED, endings.environment_lost(saved=True)))
    return End(Outcome.KILLED, endings.environment_lost())


async def out_of_reach(services: Services, turn: Turn) -> Move:
    """Treat an environment that seems to be there, but never answers, as lost.

    End as much of it as possible first: it must not become the turn's next environment."""
    row = await rows.used_by(services.store, turn.key)
    if row is not None:
        try:
            await environments.give_up(services, row.id)
        except SandboxError as error:
            log.warning("an environment is left to the sweep", extra={"id": row.id, "error": str(error)})
    return await environment_lost(services, turn)


async def _may_go_on(services: Services, turn: Turn) -> bool:
    losses = turn.resumptions - turn.part(TakenOver).times
    return losses < MOST_RESUMPTIONS and await _has_more(services, turn, turn.timeout_seconds)


async def _has_more(services: Services, turn: Turn, seconds: float) -> bool:
    """Tell whether nothing has ended it, and neither these seconds nor its money are used up."""
    if turn.stop_requested or turn.outcome is not None or seconds_used(turn) >= seconds:
        return False
    return await spending_limits.exhaustion_of(services, turn, refused=False) is None


def _again(turn: Turn, words: str, *parts: TurnPart) -> Move:
    log.warning("the agent was lost and starts again", extra={"turn": turn.key.workflow_id})
    return To(Step.FURNISH, {"resumptions": turn.resumptions + 1, "stream_offset": 0}, note=words, parts=parts)


async def after_failed_checks(services: Services, turn: Turn, checks: Sequence[CheckedCommand]) -> To | None:
    """Send the turn back to its agent; None if nothing needs a fix or the agent may not go on."""
    failing = [one for one in checks if one.is_ours]
    now = await sessions.turn(services.store, turn.key)
    if not failing or not await _may_fix(services, now):
        return None
    try:  # if the environment is lost, the turn goes on from the work that is home now
        if turn.tree_sha is not None:
            collected, place = await rescue.collected(services, turn), rescue.checkpoint_place(services, turn)
            await asyncio.to_thread(shutil.copyfile, collected, place)
            await rescue.save_checkpoint(services, turn)
    except OSError as error:
        log.warning("failed checks stay as they are", extra={"turn": turn.key.workflow_id, "error": error.strerror})
        return None
    columns = {
        "mending": turn.resumptions + 1,
        "resumed": 1,
        "stream_offset": 0,
        "checkpoint_at": services.clock(),
        "verified": verification.dump(checks),
    }
    return To(Step.WORK, columns, note=endings.checks_go_back(len(failing)))


async def _may_fix(services: Services, turn: Turn) -> bool:
    """Once, and only with enough money and time left for the agent to finish."""
    if turn.work_started_at is None or turn.mending is not None:  # if git alone has merged, there was no agent
        return False
    if not await _has_more(services, turn, spending_limits.WRAP_UP_SHARE * turn.timeout_seconds):
        return False
    return await spending_limits.share_spent(services, turn) < spending_limits.WRAP_UP_SHARE
