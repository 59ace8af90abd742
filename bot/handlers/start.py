"""Free text and `ask`: the next turn of the thread's session."""

from __future__ import annotations

from bot.commands import Ask, Run, word_of
from bot.errors import TransientError
from bot.events import CommentCreated, Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, ignored
from bot.store import sessions
from bot.store.sessions import NewTurn

SHORTEST_SECONDS = 10.0


async def handle(command: Run | Ask, remark: Remark, desk: Desk) -> Noted:
    settings, options = desk.settings, command.options
    limits = settings.limits
    key = await sessions.begin_turn(
        desk.store,
        NewTurn(
            thread=remark.thread,
            kind=word_of(command),
            prompt=command.prompt,
            requester=remark.author.login,
            requester_id=remark.author.id,
            source=remark.source,
            source_comment=remark.comment_id if isinstance(remark, CommentCreated) else None,
            model=options.model or settings.model.model,
            budget_usd=min(options.budget_usd or limits.session_budget_usd, limits.session_budget_usd),
            timeout_seconds=_timeout(options.timeout_seconds, limits.timeout_minutes * 60),
            base=options.base,
            max_turns=options.turns,
            delivery=remark.origin.delivery,
        ),
    )
    if key is None:
        known = await sessions.by_source(desk.store, remark.source)
        return ignored(f"the same text was acted upon before (session {known.session if known else 'unknown'})")
    desk.admit()
    try:
        await desk.board.post(key)
    except TransientError:
        desk.board.touch(key)  # the board keeps trying; the work need not wait for it
    return acted(key.session)


def _timeout(asked: float | None, most: float) -> float:
    return most if asked is None else max(min(asked, most), min(SHORTEST_SECONDS, most))
