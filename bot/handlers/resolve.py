"""`resolve`: a turn that brings the base branch into that of a pull request."""

from __future__ import annotations

from bot.commands.kinds import Resolve
from bot.events.remarks import Remark
from bot.handlers import start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted, refused
from bot.store import sessions
from bot.words import replies


async def handle(command: Resolve, remark: Remark, desk: Desk) -> Noted:
    if not remark.thread.is_pull and not await _has_pull(remark, desk):
        sentence = replies.resolve_needs_a_pull(desk.settings.command)
        await desk.reply(remark, sentence)
        return refused(sentence)
    return await start.begin(Wish("resolve", command.prompt, command.options), remark, desk)


async def _has_pull(remark: Remark, desk: Desk) -> bool:
    """An issue for which one was opened: that is meant."""
    latest = await sessions.latest(desk.store, remark.thread)
    return latest is not None and (await sessions.session(desk.store, latest.key.session)).pull_number is not None
