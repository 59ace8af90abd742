"""Whether a turn has anywhere to report and to push to: asked of GitHub before the work, not found out at the push."""

from __future__ import annotations

import asyncio

from bot.errors import UserError
from bot.sessions.services import Services
from bot.store.sessions import Session, Turn
from bot.words import on_access


async def check(services: Services, turn: Turn, session: Session) -> None:
    """UserError for a conversation that is locked or a repository that is archived."""
    reads, repo = services.github.installation(session.installation_id), session.thread.repo
    issue, now = await asyncio.gather(reads.issue(repo, turn.number), reads.repo(repo.full_name))
    if now.archived or now.disabled:
        raise UserError(on_access.repository_archived())
    if issue.locked:
        raise UserError(on_access.thread_locked())
