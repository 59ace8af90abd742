"""`findings`: lists open findings of the pull request, and what the repository has dismissed."""

from __future__ import annotations

from bot.commands import Command
from bot.events.threads import Remark
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.store import dismissals, findings
from bot.words import on_findings


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    repo, number = remark.thread.repo.id, await desk.pull_number(remark)
    found = None if number is None else await findings.open_findings(desk.store, repo, number)
    if found is not None:
        found.sort(key=lambda one: one.severity.rank)
    known = await dismissals.of_repo(desk.store, repo)
    await desk.answer(remark, "findings", on_findings.listing(found, known, desk.settings.command))
    return acted()


FEATURE = Feature(
    "findings",
    "findings",
    "lists the open findings of my reviews, and those that people here dismissed",
    polite=True,
    handle=handle,
)
