"""Step 6: under policy, one push of one commit to the announced branch, and a draft pull request found or created.

Work that may not be published (stopped, over budget, held by policy) goes to a rescue ref or stays on the host.
"""

from __future__ import annotations

from dataclasses import replace

from bot.kinds.parts import OnFork
from bot.models import Outcome
from bot.sessions import detours, kinds
from bot.sessions.moves import End, Move
from bot.sessions.publishing import committing, forks, holding, joining, judging, pushing, saving
from bot.sessions.publishing.judging import Judged
from bot.sessions.publishing.work import Work
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Session, Turn


async def run(services: Services, turn: Turn) -> Move:
    session = await sessions.session(services.store, turn.key.session)
    if not turn.traits.changes:
        return await _without_work(services, turn, session)
    assert turn.base_sha is not None
    async with services.cache.quarantine(session.repo_id) as quarantine:
        tree = await joining.tree(services, turn, quarantine)
        commit = await committing.commit(services, turn, quarantine, tree)
        decide = _decide if turn.part(OnFork).fork is None else forks.publish
        return await decide(Work(services, turn, session, quarantine, commit), tree)


async def _without_work(services: Services, turn: Turn, session: Session) -> Move:
    """Nothing has come home that would be lost."""
    if turn.outcome is not None:
        return End(turn.outcome, turn.detail or "")
    if not await sessions.begin_push(services.store, turn.key):
        return detours.stopped(await sessions.turn(services.store, turn.key))
    return await kinds.of(turn).publish(services, turn, session)


async def _decide(work: Work, tree: str) -> Move:
    turn, store = work.turn, work.services.store
    judged, forbidden = await judging.judge(work, tree), await judging.not_allowed(work)
    if judged.allowable and forbidden is None and turn.outcome is None:
        return await _held_for_a_yes(work, judged, tree)
    if forbidden is not None and (there := await pushing.arrived(work)) is not None:
        return there
    if (held := judged.held or forbidden) is not None:
        return await saving.keep(work, End(turn.outcome or Outcome.REFUSED, turn.detail or held))
    if turn.outcome is not None:
        return await saving.rescue(work, End(turn.outcome, turn.detail or ""))
    if not await sessions.begin_push(store, turn.key):
        return detours.stopped(await sessions.turn(store, turn.key))
    if (unsolved := await joining.unsolved(work, tree)) is not None:
        return await saving.rescue(work, End(Outcome.REFUSED, unsolved))
    return await pushing.publish(replace(work, report=judged.report))


async def _held_for_a_yes(work: Work, judged: Judged, tree: str) -> Move:
    """What no yes would mend is told at once."""
    if (unsolved := await joining.unsolved(work, tree)) is not None:
        return await saving.keep(work, End(Outcome.REFUSED, unsolved))
    return await holding.workflows(work, judged)
