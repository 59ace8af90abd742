"""`retry`: another turn with the words of the last one."""

from __future__ import annotations

from bot.commands import Command, options
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish
from bot.kinds.shape import WorkEstimate
from bot.models import Outcome, TurnState
from bot.store import sessions
from bot.words import endings, replies


async def handle(command: Command, remark: Remark, desk: Desk) -> Handled:
    last = await sessions.latest(desk.store, remark.thread)
    if last is None or last.source == remark.source:
        return await desk.refuse(remark, replies.nothing_to_repeat(desk.settings.command))
    if last.state is not TurnState.DONE:
        return await desk.refuse(remark, replies.still_under_way(desk.settings.command))
    if not last.traits.repeatable and last.outcome is Outcome.PUSHED:
        return await desk.refuse(remark, replies.undone_already(desk.settings.command))
    if last.outcome is Outcome.FAILED and last.agent_error == endings.IN_THE_COMMAND and command.options == NO_OPTIONS:
        return await desk.refuse(remark, replies.would_fail_again(desk.settings.command))
    said = options.over(command.options, turns.options_of(last))
    agreed = last.part(WorkEstimate).agreed if command.options == NO_OPTIONS else ""
    wish = Wish(last.asked_as, last.prompt, said, approval=last.approval, agreed=agreed or None)
    return await turns.begin(turns.as_before(last, wish), remark, desk)


FEATURE = Feature("retry", "retry", "runs the last turn again", options=True, handle=handle)
