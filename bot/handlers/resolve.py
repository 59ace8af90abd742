"""`resolve`: a turn that brings the base branch into that of a pull request."""

from __future__ import annotations

from bot.commands.kinds import Resolve, word_of
from bot.events.remarks import Remark
from bot.handlers import pulls, start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted
from bot.words import replies


async def handle(command: Resolve, remark: Remark, desk: Desk) -> Noted:
    if await pulls.meant(remark, desk) is None:
        return await desk.refuse(remark, replies.needs_a_pull(word_of(command), desk.settings.command))
    return await start.begin(Wish("resolve", command.prompt, command.options), remark, desk)
