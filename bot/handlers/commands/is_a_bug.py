"""`is a bug`: takes back `not a bug`."""

from __future__ import annotations

from bot.commands import CommandText
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import named_findings
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.handlers.named_findings import OnFinding
from bot.store import dismissals
from bot.words import on_findings

WORD = "is a bug"


def read(text: CommandText) -> OnFinding | None:
    name, rest = named_findings.named(text.after)
    return text.without_options(OnFinding(WORD, "", NO_OPTIONS, name)) if not rest.strip(" \t\r\n.!") else None


async def handle(command: OnFinding, remark: Remark, desk: Desk) -> Handled:
    ours, repo, name = desk.settings.command, remark.thread.repo.id, command.finding
    one = await named_findings.meant(name, remark, desk)
    if name is None and one is None:
        return await desk.refuse(remark, on_findings.which(ours, WORD))
    named = one.id if one else name or ""
    if not await dismissals.take_back(desk.store, repo, named, remark.author.login, remark.source):
        return await desk.refuse(remark, on_findings.not_dismissed(named))
    if one is not None:
        await named_findings.tell(one, on_findings.open_again(remark.author.login), remark, desk)
        await named_findings.redraw(one, desk)
    else:
        await desk.reply(remark, on_findings.open_again(remark.author.login))
    return acted(one.session_id if one else None)


FEATURE = Feature(WORD, "is a bug", "takes back `not a bug`", read=read, handle=handle)
