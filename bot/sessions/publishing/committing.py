"""The one commit of a turn: made by the host, and the same bytes however often it is made."""

from __future__ import annotations

from collections.abc import Sequence

from bot import publications
from bot.git.commits import Author
from bot.git.quarantine import Quarantine
from bot.kinds.resolve import Merge
from bot.outbound import TextKind
from bot.sessions.publishing.work import Work
from bot.sessions.services import Services
from bot.store.sessions import Turn


async def commit(services: Services, turn: Turn, quarantine: Quarantine, tree: str) -> str:
    """One turn, one commit by the App; the same work gives the same commit, so a repetition pushes nothing new."""
    assert turn.base_sha is not None
    if turn.tree_sha is None:  # it is there: as it was saved
        return turn.base_sha
    # What the host joined is never pushed: the merge takes its place, with its two parents.
    parents = [turn.base_sha] if turn.part(Merge).sha is None else await quarantine.parents(turn.base_sha)
    return await made(services, turn, quarantine, tree, parents, await _message(services, turn))


async def on_top(work: Work, tree: str, parent: str) -> str:
    """The same on another commit than it was made for."""
    return await made(
        work.services, work.turn, work.quarantine, tree, [parent], await _message(work.services, work.turn)
    )


async def made(
    services: Services, turn: Turn, quarantine: Quarantine, tree: str, parents: Sequence[str], words: str
) -> str:
    """By the App, dated by its turn."""
    bot = await services.github.identity()
    message = services.outbound.text(TextKind.COMMIT, words)
    author = Author(bot.bot_login, bot.bot_email)
    return await quarantine.commit(tree, parents, message, author, int(turn.created_at))


async def _message(services: Services, turn: Turn) -> str:
    host = (await services.github.identity()).noreply_host
    merge = turn.part(Merge)
    if merge.sha is not None and turn.base is not None:
        return publications.merge_message(turn, turn.base, merge.conflicts, noreply_host=host)
    return publications.commit_message(turn, noreply_host=host)
