"""`why`: what became of the latest deliveries of the thread that were not acted upon, from the ledger."""

from __future__ import annotations

from bot.events.remarks import Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.live.figures import duration
from bot.outbound import neutralise
from bot.store import deliveries
from bot.store.deliveries import Delivery
from bot.words import replies

SHOWN = 5


async def handle(remark: Remark, desk: Desk) -> Noted:
    ours = (await desk.github.identity()).bot_login
    repo, number = remark.thread.repo.id, remark.thread.number
    found = await deliveries.unheeded(desk.store, repo, number, ours=ours, plain=replies.NO_COMMAND, limit=SHOWN)
    await desk.reply(remark, replies.why([_line(one, desk) for one in found]))
    return acted()


def _line(delivery: Delivery, desk: Desk) -> str:
    return replies.fate(delivery, duration(desk.clock() - delivery.received_at), neutralise.line)
