"""`fix findings`: ordinary work on open findings of our reviews: on all of them, or on those that it names."""

from __future__ import annotations

from dataclasses import dataclass

from bot.commands import FREE_TEXT, Command, CommandText
from bot.errors import CommandError
from bot.events.threads import Remark
from bot.handlers import named_findings, turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish
from bot.kinds.shape import Aim
from bot.models import TurnState
from bot.store import findings, sessions
from bot.words import on_findings, replies

MOST_NAMED = 100


@dataclass(frozen=True)
class FixFindings(Command):
    findings: tuple[str, ...] = ()
    """Empty: all that are open."""


def read(text: CommandText) -> FixFindings | None:
    prompt, options = text.taken()
    line, _, below = prompt.partition("\n") if not text.ends_line else ("", "", prompt)
    names: list[str] = []
    while line.strip() and len(names) < MOST_NAMED:
        name, line = named_findings.named(line)
        if name is None and names:
            raise CommandError("Name only findings on this line, please, and put what else I should know below it.")
        if name is None:
            return None
        names.append(name)
    return FixFindings("fix findings", below.strip(), options, tuple(dict.fromkeys(names)))


async def handle(command: FixFindings, remark: Remark, desk: Desk) -> Handled:
    number = await desk.pull_number(remark)
    if number is None:
        return await desk.refuse(remark, replies.needs_a_pull(command.word, desk.settings.command))
    still_open = [one.id for one in await findings.open_findings(desk.store, remark.thread.repo.id, number)]
    if unknown := [one for one in command.findings if one not in still_open]:
        return await desk.refuse(remark, on_findings.not_open(unknown[0]))
    wanted = list(command.findings) or still_open
    if not wanted:
        return await desk.refuse(remark, on_findings.none_open())
    taken = await _being_fixed(remark, desk)
    free = tuple(one for one in wanted if one not in taken)
    if not free:
        return await desk.refuse(remark, on_findings.being_fixed(wanted))
    words = on_findings.to_fix(free, command.prompt)
    return await turns.begin(Wish(FREE_TEXT, words, command.options, findings=free), remark, desk)


async def _being_fixed(remark: Remark, desk: Desk) -> set[str]:
    """Return findings on which work waits or runs, unless these very words have begun it."""
    latest = await sessions.latest(desk.store, remark.thread)
    known = await sessions.turns_of(desk.store, latest.key.session) if latest else []
    under_way = [one for one in known if one.state is not TurnState.DONE and one.traits.changes]
    return {name for one in under_way if one.source != remark.source for name in one.part(Aim).findings}


FEATURE = Feature(
    "fix findings",
    "fix findings",
    "fixes the open findings of my reviews; the boxes of a review fix one or all",
    read=read,
    handle=handle,
)
