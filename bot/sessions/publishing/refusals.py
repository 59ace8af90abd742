"""What becomes of work that the remote refuses: its words are shown, the work is saved, and nothing is tried again."""

from __future__ import annotations

from bot.errors import GitHubRefused
from bot.git.errors import PushRefused, Refusal
from bot.models import Outcome
from bot.outbound import TextKind
from bot.sessions.moves import End, Move
from bot.sessions.publishing import holding, saving
from bot.sessions.publishing.work import TurnWork
from bot.sessions.remote import follow_move
from bot.words import endings, on_pushes

ABOUT_THE_BRANCH = (Refusal.PROTECTED, Refusal.RULES, Refusal.NAME, Refusal.NON_FAST_FORWARD)
"""The commit itself is not what is refused: a ref of ours, which is no branch, may hold it."""


async def settled(work: TurnWork, error: PushRefused) -> Move:
    words = work.services.outbound.text(TextKind.COMMENT, error.words)
    if error.kind is Refusal.WORKFLOW:
        return await holding.permission(work, words)
    end = End(Outcome.REFUSED, on_pushes.refused(words, error.kind))
    if error.kind in ABOUT_THE_BRANCH:
        return await saving.rescue(work, end)
    return await saving.keep(work, end)


async def unreachable(work: TurnWork, error: GitHubRefused) -> Move:
    """No token for it, or no way in. What somebody has let go takes a permission that the App may not have."""
    words = await told(work, error)
    if work.let_go and error.status in (403, 422):
        return await holding.permission(work, work.services.outbound.text(TextKind.COMMENT, error.message))
    return await saving.keep(work, End(Outcome.REFUSED, words))


async def told(work: TurnWork, error: GitHubRefused) -> str:
    """In GitHub's words; a repository that has moved is followed for what comes next."""
    await follow_move(work.services, work.turn, error)
    return endings.push_refused(work.services.outbound.text(TextKind.COMMENT, error.message))
