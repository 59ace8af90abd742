"""Free text, `ask` and `plan`: words for the agent that is at work, or the next turn of the thread's session."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from bot import replies
from bot.command_options import NO_OPTIONS, Options
from bot.commands import Ask, Plan, Run, word_of
from bot.errors import TransientError
from bot.events import Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, ignored, refused
from bot.models import TurnKey, TurnState
from bot.sessions import ceilings
from bot.sessions.ceilings import Ceiling
from bot.store import messages, sessions
from bot.store.sessions import NewTurn
from bot.store.spend import Payers

log = logging.getLogger(__name__)

SHORTEST_SECONDS = 10.0
FREE = ("undo",)
"""Kinds of turns that ask no model and so need no money."""
_CLOSED = {"locked": replies.thread_locked(), "archived": replies.repository_archived()}
"""Told by `why` later: nothing can be answered there now."""


@dataclass(frozen=True)
class Wish:
    """What a turn is to do, whoever puts it into these words."""

    kind: str
    prompt: str
    options: Options
    extra_usd: float | None = None
    """`continue +3`: what this further turn may spend; the operator's limit for a turn still holds."""
    approval: str | None = None
    """What it is begun with a yes to."""
    head_sha: str | None = None
    """The commit at which a check run shows it."""


async def handle(command: Run | Ask | Plan, remark: Remark, desk: Desk) -> Noted:
    wish = Wish(word_of(command), command.prompt, command.options)
    plain = isinstance(command, Run) and command.options == NO_OPTIONS
    if plain and command.prompt and not remark.closed_to_us:
        noted = await steer(wish, remark, desk)
        if noted is not None:
            return noted
    return await begin(wish, remark, desk)


async def steer(wish: Wish, remark: Remark, desk: Desk) -> Noted | None:
    """To the agent that is at work, or will be; None where none is. Words with options of their own are a turn."""
    key = await messages.keep(desk.store, new_turn(wish, remark, desk))
    if key is None:
        return None
    desk.poke(key)
    await desk.react(remark, "eyes")
    return acted(key.session, f"passed on to turn {key.n}, which was under way")


async def begin(wish: Wish, remark: Remark, desk: Desk) -> Noted:
    """The next turn of the thread's session, its live comment, and the nudge that it waits."""
    if remark.closed_to_us:
        return refused(_CLOSED[remark.closed_to_us])
    if wish.kind not in FREE and (noted := await out_of_money(remark, desk)):
        return noted
    before = await _offering(remark, desk)
    key = await sessions.begin_turn(desk.store, new_turn(wish, remark, desk))
    if key is None:
        known = await sessions.by_source(desk.store, remark.source)
        return ignored(f"the same text was acted upon before (session {known.session if known else 'unknown'})")
    desk.admit()
    try:
        await desk.board.post(key)
    except TransientError as error:  # the board keeps trying; the work need not wait for it
        log.info("a live comment waits", extra={"turn": key.workflow_id, "error": str(error)})
    desk.board.touch(key)
    if before is not None:
        await desk.show_anew(before)
    return acted(key.session)


async def _offering(remark: Remark, desk: Desk) -> TurnKey | None:
    """The turn whose comment has boxes that count no longer once another follows it."""
    last = await sessions.latest(desk.store, remark.thread)
    ended = last is not None and last.state is TurnState.DONE
    return last.key if last is not None and ended and await desk.board.boxes(last.key) else None


def closed(why: str) -> str:
    return _CLOSED[why]


async def out_of_money(remark: Remark, desk: Desk) -> Noted | None:
    """Said to the person, unless their turn was begun before the limit was reached."""
    reached = await _reached(remark, desk)
    if reached is None or await sessions.by_source(desk.store, remark.source):
        return None
    await desk.reply(remark, reached.sentence())
    return refused(reached.sentence())


def new_turn(wish: Wish, remark: Remark, desk: Desk) -> NewTurn:
    settings, options = desk.settings, wish.options
    limits = settings.limits
    return NewTurn(
        thread=remark.thread,
        kind=wish.kind,
        prompt=wish.prompt,
        requester=remark.author.login,
        requester_id=remark.author.id,
        source=remark.source,
        source_comment=remark.react_to,
        asked_at=remark.created_at,
        thread_sha256=remark.thread_sha256,
        model=options.model or settings.model.model,
        budget_usd=min(wish.extra_usd or options.budget_usd or limits.session_budget_usd, limits.session_budget_usd),
        timeout_seconds=_timeout(options.timeout_seconds, limits.timeout_minutes * 60),
        base=options.base,
        max_turns=options.turns,
        approval=wish.approval,
        spot=remark.place,
        head_sha=wish.head_sha,
        delivery=remark.origin.delivery,
    )


async def _reached(remark: Remark, desk: Desk) -> Ceiling | None:
    """The limit of the person, the repository or the installation that leaves nothing to begin with."""
    payers = Payers(remark.thread.installation, remark.thread.repo.id, remark.author.id)
    limits = await ceilings.of_account(desk.store, desk.settings.limits, remark.thread.installation)
    return await ceilings.reached(desk.store, limits, payers, desk.clock())


def _timeout(asked: float | None, most: float) -> float:
    return most if asked is None else max(min(asked, most), min(SHORTEST_SECONDS, most))
