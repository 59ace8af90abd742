"""Commands that only answer: `status` and `help`."""

from __future__ import annotations

from bot import endings, replies
from bot.events import Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.live.render import duration
from bot.models import TurnState
from bot.store import gateway, sessions


async def help_(remark: Remark, desk: Desk) -> Noted:
    await desk.reply(remark, replies.help_text(desk.settings.command))
    return acted()


async def status(remark: Remark, desk: Desk) -> Noted:
    turn = await sessions.latest(desk.store, remark.thread)
    if turn is None or turn.state is TurnState.DONE:
        await desk.reply(remark, replies.nothing_runs())
        return acted()
    cost = await gateway.turn_cost(desk.store, turn.key)
    elapsed = duration(desk.clock() - turn.created_at)
    await desk.reply(remark, replies.status(turn.state, endings.STEP_WORDS[turn.step], elapsed, cost.usd))
    return acted(turn.key.session)
