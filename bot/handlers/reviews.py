"""`review`, and what asks for one without a command: a turn that reads a pull request and posts what it found."""

from __future__ import annotations

from bot.commands.kinds import Review, word_of
from bot.events.remarks import Remark
from bot.handlers import start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted
from bot.words import endings, replies


async def asked(command: Review, remark: Remark, desk: Desk) -> Noted:
    thread = remark.thread
    if not thread.is_pull:
        return await desk.refuse(remark, replies.needs_a_pull(word_of(command), desk.settings.command))
    pull = await desk.github.installation(thread.installation).pull(thread.repo, thread.number)
    if pull.state != "open":
        return await desk.refuse(remark, endings.pull_closed(pull.number))
    return await start.begin(Wish("review", command.prompt, command.options, head_sha=pull.head_sha), remark, desk)
