"""How the pull request that the work is for stands, asked of GitHub just before the push."""

from __future__ import annotations

from bot.errors import NotFound
from bot.github.types import Pull
from bot.kinds.resolve import Merge
from bot.sessions.publishing.work import Work
from bot.words import on_pulls


async def of(work: Work) -> Pull | None:
    """None where there is none yet, or none any more."""
    session = work.session
    if session.pull_number is None:
        return None
    reads = work.services.github.installation(session.installation_id)
    try:
        return await reads.pull(session.thread.repo, session.pull_number)
    except NotFound:
        return None


def in_the_way(work: Work, pull: Pull | None) -> str | None:
    """Why the work has no place there any more, or None."""
    if pull is None:
        return None
    if pull.state != "open":
        return on_pulls.closed_before_push(pull.number, pull.merged)
    if work.turn.part(Merge).sha is not None and pull.base_branch != work.turn.base:
        return on_pulls.merged_the_wrong_base(pull.number, work.turn.base or "", pull.base_branch)
    return None


def beside_it(work: Work, pull: Pull | None) -> str:
    """What the reader should know though the push goes on."""
    if pull is None or work.turn.base in (None, pull.base_branch):
        return ""
    return on_pulls.retargeted(pull.number, work.turn.base or "", pull.base_branch)
