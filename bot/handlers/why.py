"""`why`: what became of the latest deliveries of the thread that were not acted upon, from the ledger."""

from __future__ import annotations

from bot.events.remarks import Remark
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.live.figures import duration
from bot.outbound import neutralise
from bot.store import deliveries
from bot.store.deliveries import Delivery, DeliveryState
from bot.words import replies

LOOKED_AT = 30
SHOWN = 5
UNTOLD = (DeliveryState.IGNORED, DeliveryState.REFUSED, DeliveryState.FAILED)


async def handle(remark: Remark, desk: Desk) -> Noted:
    ours = (await desk.github.identity()).bot_login
    found = await deliveries.of_thread(desk.store, remark.thread.repo.id, remark.thread.number, LOOKED_AT)
    told = [one for one in found if one.state in UNTOLD and one.sender != ours and one.guid != remark.origin.delivery]
    await desk.reply(remark, replies.why([_line(one, desk) for one in told[:SHOWN]]))
    return acted()


def _line(delivery: Delivery, desk: Desk) -> str:
    return replies.fate(delivery, duration(desk.clock() - delivery.received_at), neutralise.inert)
