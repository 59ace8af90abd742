"""`retry` and `continue`: another turn of the session, with the words of the last one or with new ones."""

from __future__ import annotations

from bot import replies
from bot.commands import Continue, Retry
from bot.events import Remark
from bot.handlers import start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted, refused
from bot.models import TurnState
from bot.store import sessions

GO_ON = "Go on where you stopped."


async def retry(command: Retry, remark: Remark, desk: Desk) -> Noted:
    last = await sessions.latest(desk.store, remark.thread)
    if last is None or last.source == remark.source:
        return await _say(replies.nothing_to_repeat(), remark, desk)
    if last.state is not TurnState.DONE:
        return await _say(replies.still_under_way(desk.settings.command), remark, desk)
    wish = Wish(last.kind, last.prompt, command.options, approval=last.approval)
    return await start.begin(start.anew(last, wish), remark, desk)


async def go_on(command: Continue, remark: Remark, desk: Desk) -> Noted:
    known = await sessions.latest(desk.store, remark.thread) is not None
    prompt = command.prompt or (GO_ON if known else "")
    return await start.begin(Wish("run", prompt, command.options, command.extra_usd), remark, desk)


async def _say(sentence: str, remark: Remark, desk: Desk) -> Noted:
    await desk.reply(remark, sentence)
    return refused(sentence)
