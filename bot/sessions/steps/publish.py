"""Step 6: under policy, one push of one commit to the announced branch, and a draft pull request found or created.

Work that may not be published (stopped, over budget, held by policy) goes to a rescue ref or stays on the host.
"""

from __future__ import annotations

from bot.models import Outcome
from bot.sessions import detours, keeping, reviewing
from bot.sessions.moves import End, Move
from bot.sessions.publishing import committing, judging, pushing, saving, taking_back
from bot.sessions.publishing.work import Work
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Session, Turn


async def run(services: Services, turn: Turn) -> Move:
    session = await sessions.session(services.store, turn.key.session)
    if turn.kind in ("undo", "review"):
        return await _without_work(services, turn, session)
    assert turn.base_sha is not None
    async with services.cache.quarantine(session.repo_id) as quarantine:
        tree = await quarantine.admit(keeping.collected(services, turn), base=turn.base_sha)
        commit = await committing.commit(services, turn, quarantine, tree)
        work = Work(services, turn, session, quarantine, commit)
        held = await judging.held(work, tree) or await judging.not_allowed(work)
        if held is not None:
            return await saving.keep(work, End(turn.outcome or Outcome.REFUSED, turn.detail or held))
        if turn.outcome is not None:
            return await saving.rescue(work, End(turn.outcome, turn.detail or ""))
        if not await sessions.begin_push(services.store, turn.key):
            return detours.stopped(await sessions.turn(services.store, turn.key))
        return await pushing.publish(work)


async def _without_work(services: Services, turn: Turn, session: Session) -> Move:
    """Nothing has come home that would be lost."""
    if turn.outcome is not None:
        return End(turn.outcome, turn.detail or "")
    if not await sessions.begin_push(services.store, turn.key):
        return detours.stopped(await sessions.turn(services.store, turn.key))
    if turn.kind == "undo":
        return await taking_back.take_back(services, turn, session)
    return await reviewing.publish(services, turn, session)
