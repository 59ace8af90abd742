"""`resolve`: a turn that merges the base branch into a pull request's."""

from __future__ import annotations

import re

from bot.commands import Command, CommandText
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.words import replies

_CONFLICTS = re.compile(r"(?:the\s+)?(?:merge\s+)?conflicts?\b", re.IGNORECASE)


def read(text: CommandText) -> Command | None:
    prompt, options = text.taken()
    alone = text.ends or not prompt
    return Command("resolve", prompt, options) if alone or _CONFLICTS.match(prompt) else None


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    if await desk.pull_number(remark) is None:
        return await desk.refuse(remark, replies.needs_a_pull(command.word, desk.settings.command))
    return await turns.handle(command, remark, desk)


FEATURE = Feature(
    "resolve",
    "resolve",
    "merges the base branch into the pull request's branch; the agent resolves what git cannot merge",
    read=read,
    handle=handle,
)
