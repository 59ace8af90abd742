"""`stop`: ends what runs or waits on the thread; the turn's own flow does the rest and says so in its comment."""

from __future__ import annotations

from bot.commands import Command
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.models import TurnState
from bot.store import sessions
from bot.words import replies


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    latest = await sessions.latest(desk.store, remark.thread)
    if latest is None or not await turns.stop_all(latest.key.session, remark.author.login, desk):
        ending = latest is not None and latest.state is not TurnState.DONE and latest.outcome
        await desk.reply(remark, replies.done_already(ending) if ending else replies.nothing_runs())
        return acted(reason="nothing was running")
    await desk.react(remark, "+1")
    return acted(latest.key.session)


FEATURE = Feature(
    "stop",
    "stop",
    "stops running and queued work, within 2 seconds; saves the work so far and says where",
    below=True,  # it stops even with words below it
    polite=True,
    handle=handle,
)
