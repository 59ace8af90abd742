"""`why`: the ledger's reasons for the thread's latest deliveries without effect."""

from __future__ import annotations

from bot.commands import Command
from bot.events.threads import Remark
from bot.handlers.desk import Desk, Feature, Handled, acted
from bot.kinds.shape import ByToken
from bot.outbound import neutralise
from bot.store import deliveries, sessions
from bot.words import replies

SHOWN = 5


async def handle(_: Command, remark: Remark, desk: Desk) -> Handled:
    ours = (await desk.github.identity()).bot_login
    repo, number = remark.thread.repo.id, remark.thread.number
    found = await deliveries.unheeded(desk.store, repo, number, ours=ours, plain=replies.NO_COMMAND, limit=SHOWN)
    lines = [replies.fate(one, replies.moment(one.received_at), neutralise.line) for one in found]
    latest = await sessions.latest(desk.store, remark.thread)
    token = latest.part(ByToken).name if latest else ""
    started = replies.by_token(latest.n, latest.requester, token) if latest and token else ""
    await desk.answer(remark, "why", replies.why(lines, started))
    return acted()


FEATURE = Feature("why", "why", "explains why something was ignored or refused", polite=True, handle=handle)
