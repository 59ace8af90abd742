"""`stop`: end what runs or waits on the thread; the turn's own flow does the rest, and says so in its comment."""

from __future__ import annotations

from bot.events.remarks import Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.kinds import TRAITS
from bot.models import SessionId, Step, TurnState
from bot.store import environments, sessions
from bot.store.sessions import Turn
from bot.words import endings, replies


async def handle(remark: Remark, desk: Desk) -> Noted:
    latest = await sessions.latest(desk.store, remark.thread)
    if latest is None or not await stop_all(latest.key.session, remark.author.login, desk):
        ending = latest is not None and latest.state is not TurnState.DONE and latest.outcome
        await desk.reply(remark, replies.done_already(ending) if ending else replies.nothing_runs())
        return acted(reason="nothing was running")
    await desk.react(remark, "+1")
    return acted(latest.key.session)


async def stop_all(session: SessionId, login: str, desk: Desk, *, only_fixes: bool = False) -> int:
    """Whatever of the session runs, waits or is kept, or only attempts at failing checks; how many turns that were."""
    found = await sessions.turns_of(desk.store, session)
    turns = [one for one in found if _can_be_stopped(one) and (TRAITS[one.asked_as].mends_checks or not only_fixes)]
    for turn in reversed(turns):  # what waits first: it must not begin when the running one ends
        if await sessions.cancel_queued(desk.store, turn.key, endings.stopped_by(login)):
            desk.board.touch(turn.key, final=True)
        else:
            await sessions.request_stop(desk.store, turn.key, login)
            desk.poke(turn.key)
            desk.board.touch(turn.key, pressing=True)
    if not only_fixes and await environments.give_up_kept(desk.store, session):
        desk.sweep()
    return len(turns)


def _can_be_stopped(turn: Turn) -> bool:
    """Not when all is done but to clean up."""
    return turn.state is not TurnState.DONE and not (turn.step is Step.SETTLE and turn.outcome is not None)
