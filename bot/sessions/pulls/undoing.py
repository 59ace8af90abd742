"""Taking the session's last push back: which one it is, and what the branch looks like without it."""

from __future__ import annotations

from collections.abc import Sequence

from bot import repo_config
from bot.git.errors import RefMissing
from bot.github.types import TokenPurpose
from bot.models import WHOLE_SECOND, Outcome, Step
from bot.sessions import configuring
from bot.sessions.moves import End, Move, To
from bot.sessions.remote import remote_access
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Session, Turn
from bot.words import endings, on_pulls

PUSHED = (Outcome.PULL_REQUEST, Outcome.PUSHED)


async def prepare(services: Services, turn: Turn) -> Move:
    """Straight to the push: there is nothing for an environment to do."""
    session = await sessions.session(services.store, turn.key.session)
    undone = last_push(await sessions.turns_of(services.store, session.id), before=turn.n)
    if undone is None or session.branch is None:
        return End(Outcome.REFUSED, endings.nothing_to_take_back())
    if undone.branch is not None:
        return End(Outcome.REFUSED, on_pulls.stands_beside(undone.n, undone.branch, undone.pull_number))
    if _is_newer(undone, turn):
        assert undone.commit_sha is not None
        return End(Outcome.REFUSED, endings.pushed_since(undone.n, undone.commit_sha, services.settings.command))
    if (merged := await _merged(services, session)) is not None:
        return End(Outcome.REFUSED, endings.merged_already(merged))
    assert undone.commit_sha is not None
    access = await remote_access(services, session.thread, TokenPurpose.READ_REPOSITORY)
    try:
        tip = await services.cache.fetch(session.repo_id, access, f"refs/heads/{session.branch}")
    except RefMissing:
        return End(Outcome.REFUSED, endings.branch_gone(session.branch))
    try:
        await services.cache.fetch(session.repo_id, access, undone.commit_sha)
    except RefMissing:
        return End(Outcome.REFUSED, endings.no_longer_on(session.branch, undone.n))
    config = repo_config.dump(await configuring.read(services, session))
    columns = {"base": session.branch, "base_sha": tip, "tip_sha": tip, "undoes": undone.n, "config": config}
    return To(Step.PUBLISH, columns)


def last_push(turns: Sequence[Turn], *, before: int) -> Turn | None:
    """The latest that no later turn has taken back; one that took something back is itself not taken back."""
    earlier = [one for one in turns if one.n < before]
    gone = {one.undoes for one in earlier if one.outcome in PUSHED}
    pushes = [
        one for one in earlier if one.outcome in PUSHED and one.undoes is None and one.commit_sha and not one.fork
    ]
    return next((one for one in reversed(pushes) if one.n not in gone), None)


def _is_newer(undone: Turn, turn: Turn) -> bool:
    """Whoever asked has not seen it: their words came late, or waited while it was made."""
    began = undone.push_began or undone.created_at
    return turn.asked_at is not None and began >= turn.asked_at + WHOLE_SECOND


async def _merged(services: Services, session: Session) -> int | None:
    if session.pull_number is None:
        return None
    pull = await services.github.installation(session.installation_id).pull(session.thread.repo, session.pull_number)
    return pull.number if pull.merged else None
