"""A thread was locked, moved or deleted, or its pull request closed: what runs there ends, and its work is kept."""

from __future__ import annotations

from bot.events.threads import ThreadChanged
from bot.handlers import stop
from bot.handlers.desk import Desk
from bot.handlers.verdicts import Noted, acted, ignored
from bot.models import TurnState
from bot.store import comments, deliveries, sessions
from bot.store.sessions import Turn
from bot.words import endings

_WHY = {
    "locked": endings.LOCKED,
    "transferred": endings.TRANSFERRED,
    "deleted": endings.DELETED,
    "closed": endings.CLOSED,
}
_GONE = ("transferred", "deleted")


async def handle(event: ThreadChanged, desk: Desk) -> Noted:
    latest = await sessions.latest(desk.store, event.thread)
    if latest is None or latest.state is TurnState.DONE or not await _concerns(event, latest, desk):
        return ignored(f"nothing ran that the thread being {event.change} would end")
    for turn in await sessions.turns_of(desk.store, latest.key.session):
        await _replaced(event, turn, desk)
    await stop.stop_all(latest.key.session, _WHY[event.change], desk)
    return acted(latest.key.session)


async def _replaced(event: ThreadChanged, turn: Turn, desk: Desk) -> None:
    """Its live comment went with the thread, or is gone."""
    if event.moved_to is not None and turn.state is not TurnState.DONE:
        await comments.moved(desk.store, turn.key, event.moved_to)
        desk.board.moved(turn.key)
    elif event.change in _GONE:
        await comments.without_place(desk.store, turn.key)


async def _concerns(event: ThreadChanged, turn: Turn, desk: Desk) -> bool:
    """A pull request that was closed before the turn was asked for is not its own: it will make a new one."""
    if event.change != "closed":
        return turn.number == event.thread.number
    session = await sessions.session(desk.store, turn.key.session)
    if event.thread.number not in (turn.number, session.pull_number):
        return False
    asked_at = turn.asked_at or turn.created_at
    if event.at != asked_at:
        return event.at > asked_at
    # GitHub tells whole seconds, and threads are worked side by side: what was here before the turn came before it.
    delivery = await deliveries.get(desk.store, event.origin.delivery)
    return delivery is None or delivery.received_at >= turn.created_at
