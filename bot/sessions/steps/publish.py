"""Step 6: judge the work, push one commit to the announced branch, find or create the draft pull request.

Work that may not be published (stopped, over budget, held by policy) goes to a rescue ref or stays on the host.
"""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.kinds.shape import OnFork
from bot.models import Outcome
from bot.sessions import kinds, moves
from bot.sessions.moves import End, Move
from bot.sessions.publish import forks, push, rescue, turn_commit
from bot.sessions.publish.turn_commit import TurnWork
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn


async def run(services: Services, turn: Turn) -> Move:
    session = await sessions.session(services.store, turn.key.session)
    if not turn.traits.changes:
        if turn.outcome is not None:  # no work has come home that could get lost
            return End(turn.outcome, turn.detail or "")
        if not await sessions.begin_push(services.store, turn.key):
            return moves.stopped(await sessions.turn(services.store, turn.key))
        return await kinds.of(turn).publish(services, turn, session)
    assert turn.base_sha is not None
    async with services.cache.quarantine(session.repo_id) as quarantine:
        tree = await turn_commit.tree_of(services, turn, quarantine)
        commit = await turn_commit.commit_of_turn(services, turn, quarantine, tree)
        whole = await turn_commit.commit_with_contents(services, turn, quarantine, tree)
        decide = _decide if turn.part(OnFork).fork is None else forks.publish
        return await decide(TurnWork(services, turn, session, quarantine, commit, whole=whole), tree)


async def _decide(work: TurnWork, tree: str) -> Move:
    turn, store = work.turn, work.services.store
    judged, forbidden = await turn_commit.judge(work, tree), await turn_commit.permission_lost(work)
    if judged.allowable and forbidden is None and turn.outcome is None:
        if (unsolved := await turn_commit.unsolved_conflicts(work, tree)) is not None:  # no yes would fix these
            return await rescue.keep_on_host(work, End(Outcome.REFUSED, unsolved))
        return await turn_commit.hold_workflows(work, judged)
    if forbidden is not None and (there := await push.arrived(work)) is not None:
        return there
    if (held := judged.held or forbidden) is not None:
        end = End(turn.outcome or Outcome.REFUSED, turn.detail or held, parts=judged.parts)
        return await rescue.keep_on_host(work, end)
    if turn.outcome is not None:
        return await rescue.rescue(work, End(turn.outcome, turn.detail or ""))
    if not await sessions.begin_push(store, turn.key):
        return moves.stopped(await sessions.turn(store, turn.key))
    if (unsolved := await turn_commit.unsolved_conflicts(work, tree)) is not None:
        return await rescue.rescue(work, End(Outcome.REFUSED, unsolved))
    return await _push(replace(work, report=judged.report))


async def _push(work: TurnWork) -> Move:
    """Upload the contents of LFS files first: GitHub refuses pointers to contents that it does not have."""
    if work.quarantine.large is not None:
        from bot.sessions import large_files

        config = repo_config.load(work.turn.config)
        branch = work.session.branch or config.branch_name(work.turn.number, work.turn.key.session)
        if (lacking := await large_files.upload(work, branch)) is not None:
            return await rescue.keep_on_host(work, End(Outcome.REFUSED, lacking))
    return await push.publish(work)
