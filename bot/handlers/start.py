"""Free text and `ask`: the next turn of the thread's session."""

from __future__ import annotations

from dataclasses import dataclass

from bot import replies
from bot.command_options import Options
from bot.commands import Ask, Run, word_of
from bot.errors import TransientError
from bot.events import BoxTicked, CommentCreated, Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, ignored, refused
from bot.sessions import ceilings
from bot.sessions.ceilings import Ceiling, Ceilings
from bot.store import sessions
from bot.store.sessions import NewTurn
from bot.store.spend import Payers

SHORTEST_SECONDS = 10.0
_CLOSED = {"locked": replies.thread_locked(), "archived": replies.repository_archived()}
"""Told by `why` later: nothing can be answered there now."""


async def handle(command: Run | Ask, remark: Remark, desk: Desk) -> Noted:
    return await begin(Wish(word_of(command), command.prompt, command.options), remark, desk)


@dataclass(frozen=True)
class Wish:
    """What a turn is to do, whoever puts it into these words."""

    kind: str
    prompt: str
    options: Options
    extra_usd: float | None = None
    """`continue +3`: what this further turn may spend; the operator's limit for a turn still holds."""


async def begin(wish: Wish, remark: Remark, desk: Desk) -> Noted:
    """The next turn of the thread's session, its live comment, and the nudge that it waits."""
    if remark.closed_to_us:
        return refused(_CLOSED[remark.closed_to_us])
    settings, options = desk.settings, wish.options
    limits = settings.limits
    if (reached := await _reached(remark, desk)) and not await sessions.by_source(desk.store, remark.source):
        await desk.reply(remark, reached.sentence())
        return refused(reached.sentence())
    key = await sessions.begin_turn(
        desk.store,
        NewTurn(
            thread=remark.thread,
            kind=wish.kind,
            prompt=wish.prompt,
            requester=remark.author.login,
            requester_id=remark.author.id,
            source=remark.source,
            source_comment=remark.comment_id if isinstance(remark, CommentCreated | BoxTicked) else None,
            asked_at=remark.created_at,
            thread_sha256=remark.thread_sha256,
            model=options.model or settings.model.model,
            budget_usd=wish.extra_usd
            or min(options.budget_usd or limits.session_budget_usd, limits.session_budget_usd),
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
        desk.board.touch(key)
    except TransientError:
        desk.board.touch(key)  # the board keeps trying; the work need not wait for it
    return acted(key.session)


async def _reached(remark: Remark, desk: Desk) -> Ceiling | None:
    """The limit of the person, the repository or the installation that leaves nothing to begin with."""
    payers = Payers(remark.thread.installation, remark.thread.repo.id, remark.author.id)
    return await ceilings.reached(desk.store, Ceilings.of(desk.settings.limits), payers, desk.clock())


def _budget(wish: Wish, most: float) -> float:
    return min(wish.extra_usd or wish.options.budget_usd or most, most)


def _timeout(asked: float | None, most: float) -> float:
    return most if asked is None else max(min(asked, most), min(SHORTEST_SECONDS, most))
