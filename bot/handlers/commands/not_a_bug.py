"""`not a bug`: dismisses a finding of a review for the whole repository, with a reason."""

from __future__ import annotations

from bot.commands import CommandText
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import named_findings
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.handlers.named_findings import OnFinding
from bot.outbound import neutralise
from bot.sessions.reviews import discussions
from bot.store import dismissals
from bot.store.dismissals import MOST_WHY
from bot.words import on_findings

WORD = "not a bug"


def read(text: CommandText) -> OnFinding | None:
    name, why = named_findings.named(text.after)
    return text.without_options(OnFinding(WORD, why.strip(), NO_OPTIONS, name))


async def handle(command: OnFinding, remark: Remark, desk: Desk) -> Handled:
    ours, login = desk.settings.command, remark.author.login
    one = await named_findings.meant(command.finding, remark, desk)
    if one is None:
        name = command.finding
        return await desk.refuse(remark, on_findings.not_open(name) if name else on_findings.which(ours, WORD))
    if not await dismissals.dismiss(desk.store, one, login, command.prompt, remark.source):
        known = await dismissals.of_finding(desk.store, one.repo_id, one.id)
        if known is not None and known.source != remark.source:  # else the same words again, after a crash
            return await desk.refuse(remark, on_findings.dismissed_already(known.login))
    if one.comment_id is not None:
        await discussions.resolve(desk.github, desk.outbound, named_findings.of_pull(one, remark), [one.comment_id])
    why = neutralise.inert(command.prompt[:MOST_WHY])
    await named_findings.tell(one, on_findings.dismissed(login, why, ours, one.id), remark, desk)
    await named_findings.redraw(one, desk)
    return acted(one.session_id)


FEATURE = Feature(
    WORD,
    "not a bug: …",
    "dismisses a finding of a review and remembers that for the repository; reply below the finding, and say why",
    colon=True,
    read=read,
    handle=handle,
)
