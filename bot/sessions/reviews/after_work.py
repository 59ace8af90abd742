"""Follows the end of a turn: reviews our push once, and has the list of findings written again."""

from __future__ import annotations

from dataclasses import replace

from bot import repo_config
from bot.kinds import review
from bot.kinds.shape import Aim, OnFork
from bot.live import open_findings
from bot.models import ON_PUSH, Outcome
from bot.sessions.money import spending_limits
from bot.sessions.services import Services
from bot.store import findings, posts, sessions
from bot.store.sessions import NewTurn, Session, Turn


async def follow(services: Services, turn: Turn) -> None:
    """Begin the review of a push that was to fix findings, and have the list of findings written again."""
    session = await sessions.session(services.store, turn.key.session)
    number = turn.number if session.is_pull else session.pull_number or turn.number
    if turn.outcome is Outcome.PUSHED:
        await _look_again(services, turn, session, number)
    if turn.outcome in (Outcome.PUSHED, Outcome.REVIEWED):
        for one in await _reviews_before(services, turn, number):
            await posts.spoilt(services.store, one.key, by_bot=False)


async def _look_again(services: Services, turn: Turn, session: Session, number: int) -> None:
    """Review once for each push, in the name of the person who wanted the fix, if there is money. No review begins
    work by itself, so this ends here."""
    wanted = turn.part(Aim).findings
    if not wanted or turn.commit_sha is None or turn.new_branch or turn.part(OnFork).fork is not None:
        return
    if not repo_config.load(turn.config).triggers.review_fixes:
        return
    known = await findings.open_findings(services.store, turn.repo_id, number)
    still_open = tuple(one.id for one in known if one.id in wanted)
    if not still_open or await spending_limits.before_the_start(services, turn):
        return
    new = NewTurn(
        thread=replace(session.thread, number=number, is_pull=True),
        kind=review.TRAITS.name,
        prompt="",
        requester=turn.requester,
        requester_id=turn.requester_id,
        source=f"{ON_PUSH}{turn.repo_id}:{number}:{turn.commit_sha}",
        model=turn.model,
        budget_usd=turn.budget_usd,
        timeout_seconds=turn.timeout_seconds,
        asked_at=turn.asked_at or turn.created_at,
        findings=still_open,
        unasked=True,
        head_sha=turn.commit_sha,
    )
    if key := await sessions.begin_turn(services.store, new):
        services.board.touch(key)


async def _reviews_before(services: Services, turn: Turn, number: int) -> list[Turn]:
    """Return the review whose comment has the list, or had it until this turn."""
    known = await sessions.turns_of(services.store, turn.key.session)
    return [one for one in open_findings.reviews_of(known, number) if one.key != turn.key][-1:]
