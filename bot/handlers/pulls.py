"""Which pull request is meant by words on a thread."""

from __future__ import annotations

from bot.events.remarks import Remark
from bot.handlers.desk import Desk
from bot.store import sessions


async def meant(remark: Remark, desk: Desk) -> int | None:
    """The pull request itself, or the one that the issue's session has opened."""
    if remark.thread.is_pull:
        return remark.thread.number
    latest = await sessions.latest(desk.store, remark.thread)
    return (await sessions.session(desk.store, latest.key.session)).pull_number if latest else None
