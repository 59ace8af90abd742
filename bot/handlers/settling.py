"""What the operator has read at the provider takes the place of what was not confirmed."""

from __future__ import annotations

import math

from bot.handlers.desk import Desk
from bot.models import SessionId
from bot.store import sessions, settlements
from bot.words import on_money


async def settle(session: SessionId, said_usd: str, desk: Desk) -> tuple[bool, str]:
    """(whether it was done, in words)."""
    usd = _dollars(said_usd)
    if usd is None:
        return False, "The dollars must be a number such as 0.03."
    await sessions.session(desk.store, session)
    open_usd, turns = await settlements.confirm(desk.store, session, usd, by="operator")
    if not open_usd:
        return False, on_money.nothing_to_settle(session)
    if not turns:
        return False, on_money.cannot_be_so_much(session, usd, open_usd)
    for key in turns:
        await desk.show_anew(key)
    return True, on_money.settled(session, usd, open_usd)


def _dollars(text: str) -> float | None:
    try:
        usd = float(text)
    except ValueError:
        return None
    return usd if math.isfinite(usd) and usd >= 0 else None
