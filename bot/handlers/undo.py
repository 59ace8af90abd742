"""`undo`: a turn of its own, in its order on the thread, that asks no model and takes the last push back."""

from __future__ import annotations

from bot.commands.options import NO_OPTIONS
from bot.events.remarks import Remark
from bot.handlers import start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted
from bot.store import sessions
from bot.words import replies

PROMPT = "undo the last push"


async def handle(remark: Remark, desk: Desk) -> Noted:
    if await sessions.latest(desk.store, remark.thread) is None:
        return await desk.refuse(remark, replies.nothing_to_undo())
    return await start.begin(Wish("undo", PROMPT, NO_OPTIONS), remark, desk)
