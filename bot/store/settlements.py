"""What somebody confirms of the money that is not confirmed yet."""

from __future__ import annotations

from bot.models import SessionId, TurnKey
from bot.store import audit, spend
from bot.store.base import Database, Store
from bot.store.rows import many, run

_OPEN = """
SELECT * FROM spend WHERE session_id = :session AND unconfirmed_usd > 0 AND state <> 'reserved' ORDER BY at, id
"""
_CONFIRM = "UPDATE spend SET cost_usd = cost_usd + :usd, unconfirmed_usd = 0 WHERE id = :id"


async def confirm(store: Store, session: SessionId, usd: float, *, by: str) -> tuple[float, list[TurnKey]]:
    """(what was open, the turns whose costs are others now: none where it cannot have cost so much)."""
    at = store.now()

    def work(db: Database) -> tuple[float, list[TurnKey]]:
        rows = many(db, _OPEN, session=session)
        most = sum(row["unconfirmed_usd"] for row in rows)
        if not rows or usd > most * (1 + 1e-9):
            return most, []
        for row in rows:
            share = usd * row["unconfirmed_usd"] / most
            run(db, _CONFIRM, usd=share, id=row["id"])
            spend.add_to_day(db, row, share, -row["unconfirmed_usd"])
        audit.put(db, at, by, "spending settled", session, f"${usd:.4f} of up to ${most:.4f} not confirmed")
        return most, [TurnKey(session, n) for n in sorted({row["turn"] for row in rows})]

    return await store.write(work)
