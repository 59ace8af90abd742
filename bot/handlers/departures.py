"""What somebody may see has changed: their visit of the pages ends, or is asked about anew, at once."""

from __future__ import annotations

from bot.events.accounts import AccessChanged
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted
from bot.store import audit, visits


async def handle(event: AccessChanged, desk: Desk) -> Noted:
    """Where only a repository is lost the visit goes on: the rest may still be seen."""
    if event.leaves and await visits.end_all_of(desk.store, event.person.id):
        why = f"{event.origin.name} {event.origin.action}"
        await audit.add(desk.store, event.origin.sender.login, "visit ended", event.person.login, why)
    desk.doubt(event.person.id)
    return acted()
