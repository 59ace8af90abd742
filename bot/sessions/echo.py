"""A turn that was asked for at a line of a diff: how it ended is said there too, where the one who asked looks."""

from __future__ import annotations

from dataclasses import replace

from bot import replies
from bot.errors import GitHubRefused
from bot.models import Outcome
from bot.outbound import neutralise
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn

MOST = 1_500


async def in_diff(services: Services, turn: Turn) -> None:
    """Once, found again by its marker; a discussion that was deleted or locked is left alone."""
    if turn.spot is None:
        return
    thread = (await sessions.session(services.store, turn.key.session)).thread
    marker = f"<!-- forgehand:done={turn.key.session}-{turn.key.n} -->"
    said = turn.detail or neutralise.inert((turn.agent_result or "")[:MOST])
    body = f"{marker}\n{replies.ended_in_diff(turn.outcome or Outcome.FAILED, turn.commit_sha)}\n\n{said}".rstrip()
    try:
        await services.outbound.reply(replace(thread, number=turn.number), turn.spot.comment_id, body, marker)
    except GitHubRefused:
        return
