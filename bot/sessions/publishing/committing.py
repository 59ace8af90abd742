"""The one commit of a turn: made by the host, and the same bytes however often it is made."""

from __future__ import annotations

from bot import publications
from bot.git.commits import Author
from bot.git.quarantine import Quarantine
from bot.outbound import TextKind
from bot.sessions.services import Services
from bot.store.sessions import Turn


async def commit(services: Services, turn: Turn, quarantine: Quarantine, tree: str) -> str:
    """One turn, one commit by the App; the same work gives the same commit, so a repetition pushes nothing new."""
    bot = await services.github.identity()
    message = services.outbound.text(TextKind.COMMIT, publications.commit_message(turn))
    author = Author(bot.bot_login, bot.bot_email)
    assert turn.base_sha is not None
    return await quarantine.commit(tree, [turn.base_sha], message, author, int(turn.created_at))
