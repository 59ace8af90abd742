"""Step 7: revoke the token, keep or end the environment, say how the turn ended."""

from __future__ import annotations

import asyncio
import shutil

from bot import repo_config
from bot.models import PUSHED, Outcome, Step
from bot.sessions import declared_checks, dialogue, environments
from bot.sessions.environments import warm_start
from bot.sessions.moves import Move, To
from bot.sessions.publish import rescue
from bot.sessions.reviews import after_work
from bot.sessions.services import Services
from bot.store import approvals, ci, gateway, machines, posts, sessions
from bot.store.sessions import Turn


async def run(services: Services, turn: Turn) -> Move:
    await gateway.revoke(services.store, turn.key)
    await declared_checks.leave_clean_room(services, turn)
    stays = await environments.keep_or_end(services, turn)
    await warm_start.consider_snapshot(services, turn)
    if not stays:  # else it runs, and costs, until it is at rest
        await machines.end(services.store, turn.key)
    await rescue.keep_unpublished(services, turn)
    await rescue.forget_checkpoint(services, turn)
    await rescue.forget_collected(services, turn)
    await asyncio.to_thread(shutil.rmtree, services.turn_folder(turn.key.workflow_id), ignore_errors=True)
    await environments.ask_for_hosts(services, turn)
    await approvals.expire_questions(services.store, turn.key)
    await dialogue.pass_on_messages(services, turn)
    await dialogue.answer_in_diff(services, turn)
    await after_work.follow(services, turn)
    if turn.commit_sha is not None and turn.outcome in PUSHED:
        await ci.show_turn(services.store, turn.key, turn.commit_sha)
        await _follow_checks(services, turn, turn.commit_sha)
    await sessions.finish(services.store, turn.key, turn.outcome or Outcome.FAILED, turn.detail)
    for comment in await posts.unsettled(services.store, turn.key.session):  # also where a plan was replaced
        services.board.touch(comment.key, final=True)
    services.board.touch(turn.key, final=True)
    if stays:
        await environments.rest_kept(services, turn)  # this may take seconds, for which nobody should wait
        await machines.end(services.store, turn.key)
    return To(Step.SETTLE)


async def _follow_checks(services: Services, turn: Turn, sha: str) -> None:
    """Follow the commit's checks from now on: one may have ended before we knew the commit."""
    number = turn.pull_number or (await sessions.session(services.store, turn.key.session)).pull_number
    if number is None or not turn.traits.checks_followed:
        return
    wanted, fresh = repo_config.load(turn.config).triggers.ci_fix, not turn.traits.mends_checks
    await ci.heard(services.store, turn.repo_id, number, sha, fresh=fresh, only_asked=not wanted)
