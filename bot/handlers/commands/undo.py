"""`undo`: a turn without a model that takes the last push back, in order with the thread's other turns."""

from __future__ import annotations

from bot.commands import Command
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish
from bot.store import sessions
from bot.words import replies

PROMPT = "undo the last push"


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    if await sessions.latest(desk.store, remark.thread) is None:
        return await desk.refuse(remark, replies.nothing_to_undo())
    return await turns.begin(Wish("undo", PROMPT, NO_OPTIONS), remark, desk)


FEATURE = Feature("undo", "undo", "reverts the last push with a new commit on its branch", handle=handle)
