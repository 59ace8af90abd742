"""`undo`: a turn without a model that takes the last push back, in order with the thread's other turns."""

from __future__ import annotations

from bot.commands import Command
from bot.commands.options import NO_OPTIONS
from bot.events.threads import Remark
from bot.handlers import turns
from bot.handlers.desk import Desk, Feature, Handled
from bot.handlers.turns import Wish
from bot.models import PUSHED, TurnState
from bot.sessions.kinds.undo import last_push
from bot.store import sessions
from bot.words import endings, replies

PROMPT = "undo the last push"


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    latest = await sessions.latest(desk.store, remark.thread)
    found = await sessions.turns_of(desk.store, latest.key.session) if latest else []
    may_push = any(one.state is not TurnState.DONE for one in found)  # then the undo waits for it
    if not may_push and last_push(found, before=len(found) + 1) is None:
        has_pushed = any(one.outcome in PUSHED for one in found)
        words = endings.nothing_to_take_back() if has_pushed else replies.nothing_to_undo()
        return await desk.refuse(remark, words)
    return await turns.begin(Wish("undo", PROMPT, NO_OPTIONS), remark, desk)


FEATURE = Feature("undo", "undo", "reverts the last push with a new commit on its branch", handle=handle)
