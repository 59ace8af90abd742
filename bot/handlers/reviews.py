"""`review`, and what asks for one without a command: a turn that reads a pull request and posts what it found."""

from __future__ import annotations

from dataclasses import replace

from bot.commands.kinds import Review, word_of
from bot.events.remarks import Remark, standing
from bot.handlers import pulls, start
from bot.handlers.desk import Desk
from bot.handlers.start import Wish
from bot.handlers.verdicts import Noted
from bot.words import endings, replies


async def asked(command: Review, remark: Remark, desk: Desk) -> Noted:
    number = await pulls.meant(remark, desk)
    if number is None:
        return await desk.refuse(remark, replies.needs_a_pull(word_of(command), desk.settings.command))
    thread = replace(remark.thread, number=number, is_pull=True)
    pull = await desk.github.installation(thread.installation).pull(thread.repo, number)
    if pull.state != "open":
        return await desk.refuse(remark, endings.pull_closed(pull.number))
    if number != remark.thread.number:  # what the agent reads is the pull request's own text
        remark = replace(remark, thread=thread, thread_sha256=standing(pull.title, pull.body))
    return await start.begin(Wish("review", command.prompt, command.options, head_sha=pull.head_sha), remark, desk)
