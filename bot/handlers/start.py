"""Free text, `ask` and `plan`: words for the agent that is at work, or the next turn of the thread's session."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from bot.commands.kinds import Ask, Plan, Run, word_of
from bot.commands.options import NO_OPTIONS, Options
from bot.errors import TransientError
from bot.events.remarks import Remark
from bot.handlers import money
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, ignored, refused
from bot.kinds import TRAITS
from bot.kinds.parts import Places
from bot.models import Spot, TurnKey, TurnState
from bot.store import messages, sessions
from bot.store.sessions import NewTurn, Turn
from bot.words import on_access

log = logging.getLogger(__name__)

SHORTEST_SECONDS = 10.0
_CLOSED = {"locked": on_access.thread_locked(), "archived": on_access.repository_archived()}
"""Told by `why` later: nothing can be answered there now."""


@dataclass(frozen=True)
class Wish:
    """What a turn is to do, whoever puts it into these words."""

    kind: str
    prompt: str
    options: Options
    extra_usd: float | None = None
    """`continue +3`: what is added to what the session may spend."""
    approval: str | None = None
    """What it is begun with a yes to."""
    head_sha: str | None = None
    """The commit at which a check run shows it."""
    discussions: tuple[Spot, ...] = ()
    """Of the diff, that are to be answered; where it is asked anew, those of the turn before."""


def anew(turn: Turn, wish: Wish) -> Wish:
    """With what the turn was asked for where it stood: the wish carries it further, or repeats it."""
    said = of_same_model(turn, wish.options)
    options = replace(said, new_branch=said.new_branch or turn.new_branch)
    return replace(wish, options=options, discussions=turn.part(Places).discussions)


def set_for(turn: Turn) -> Options:
    """What its person said."""
    return turn.options or NO_OPTIONS


def of_same_model(turn: Turn, options: Options) -> Options:
    """What goes on, goes on with the model that somebody chose for it. All else was said of that turn alone."""
    return replace(options, model=options.model or set_for(turn).model)


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
    if not TRAITS[wish.kind].is_free and (noted := await money.lacking(remark, desk, wish.extra_usd or 0.0)):
        return noted
    before = await _offering(remark, desk)
    key = await sessions.begin_turn(desk.store, new_turn(wish, remark, desk))
    if key is None:
        known = await sessions.by_source(desk.store, remark.source)
        if known is None:
            return ignored("it was taken back before it could begin")
        await money.tell_of_cut(wish.extra_usd, remark, desk)
        return ignored(f"the same text was acted upon before (session {known.session})")
    desk.admit()
    try:
        await desk.board.post(key)
    except TransientError as error:  # the board keeps trying; the work need not wait for it
        log.info("a live comment waits", extra={"turn": key.workflow_id, "error": str(error)})
    desk.board.touch(key)
    await money.tell_of_cut(wish.extra_usd, remark, desk)
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
        budget_usd=options.budget_usd or 0.0,
        more=money.asked(wish.extra_usd, remark, desk) if wish.extra_usd else None,
        timeout_seconds=_timeout(options.timeout_seconds, limits.timeout_minutes * 60),
        base=options.base,
        approval=wish.approval,
        spot=remark.place,
        discussions=wish.discussions,
        head_sha=wish.head_sha,
        new_branch=options.new_branch,
        options=options,
        delivery=remark.origin.delivery,
    )


def _timeout(asked: float | None, most: float) -> float:
    return most if asked is None else max(min(asked, most), min(SHORTEST_SECONDS, most))
