"""`stop`: end what runs or waits on the thread; the turn's own flow does the rest, and says so in its comment."""

from __future__ import annotations

from bot import replies
from bot.events import Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.models import TurnKey, TurnState
from bot.store import sessions


async def handle(remark: Remark, desk: Desk) -> Noted:
    turn = await sessions.latest(desk.store, remark.thread)
    if turn is None or turn.state is TurnState.DONE:
        await desk.reply(remark, replies.nothing_runs())
        return acted(reason="nothing was running")
    await ask(turn.key, remark.author.login, desk)
    await desk.outbound.react(remark.thread, remark.comment_id, "+1")
    return acted(turn.key.session)


async def ask(key: TurnKey, login: str, desk: Desk) -> None:
    """Also for the command line."""
    await sessions.request_stop(desk.store, key, login)
    desk.poke(key)
    desk.admit()
    desk.board.touch(key)
