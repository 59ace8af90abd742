"""The account in a cloud that replicas share: its name for our machines, and the places that its plan has for them."""

from __future__ import annotations

import secrets
from collections.abc import Set as AbstractSet

from bot.store.base import Store
from bot.store.rows import Database, many, one, run, statement

_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
"""The database's clock: those of replicas may differ."""
_DROP_DEAD = """
DELETE FROM cloud_places WHERE state <> 'held' AND holder <> :holder AND holder NOT IN (SELECT id FROM replicas)
"""
_STAND_IN_LINE = """
INSERT INTO cloud_places (key, state, ahead, number, holder)
VALUES (:key, 'waiting', :ahead, (SELECT COALESCE(MAX(number), 0) + 1 FROM cloud_places), :holder)
ON CONFLICT (key) DO UPDATE SET holder = excluded.holder
"""
_FIRST = "SELECT key FROM cloud_places WHERE state = 'waiting' ORDER BY ahead DESC, number LIMIT 1"
_TAKEN = "SELECT COUNT(*) AS n FROM cloud_places WHERE state <> 'waiting'"
# Who has a place waits for at most all others that have one. A longer wait comes from a clock that was wrong.
_PACE = statement(
    """
    UPDATE cloud SET next_at = :spacing
        + CASE WHEN next_at > {now} AND next_at < {now} + :longest THEN next_at ELSE {now} END
    RETURNING next_at - :spacing - {now} AS wait
    """,
    now=_NOW,
)
_HOLD = """
INSERT INTO cloud_places (key, state, ahead, number, holder) VALUES (:key, 'held', 0, 0, :holder)
ON CONFLICT (key) DO UPDATE SET state = 'held'
"""


async def instance(store: Store, proposed: str) -> str:
    """Return the name that tells our machines from those of other services in the account: what the first replica
    has proposed."""
    new = "INSERT INTO cloud (id, instance, next_at) VALUES (1, :proposed, 0) ON CONFLICT (id) DO NOTHING"
    if (found := await known_instance(store)) is None:
        await store.run(new, proposed=proposed)
        found = await known_instance(store)
    assert found is not None
    return found


async def known_instance(store: Store) -> str | None:
    row = await store.one("SELECT instance FROM cloud")
    return None if row is None else str(row["instance"])


class CloudPlaces:
    """Implements `sandbox.primitives.PlanPlaces` for all replicas."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._holder = store.replica or secrets.token_hex(6)

    async def ask(self, key: str, most: int, spacing: float, *, ahead: bool) -> float | None:
        def work(db: Database) -> float | None:
            run(db, _DROP_DEAD, holder=self._holder)
            known = one(db, "SELECT state FROM cloud_places WHERE key = :key", key=key)
            if known is not None and known["state"] != "waiting":
                return 0.0
            run(db, _STAND_IN_LINE, key=key, ahead=int(ahead), holder=self._holder)
            first, taken = one(db, _FIRST), one(db, _TAKEN)
            if first is None or first["key"] != key or (taken is not None and taken["n"] >= most):
                return None
            run(db, "UPDATE cloud_places SET state = 'promised' WHERE key = :key", key=key)
            paced = one(db, _PACE, spacing=spacing, longest=(most + 1) * spacing)
            return max(0.0, float(paced["wait"])) if paced is not None else 0.0

        return await self._store.write(work)

    async def hold(self, key: str) -> None:
        await self._store.run(_HOLD, key=key, holder=self._holder)

    async def give(self, key: str) -> None:
        await self._store.run("DELETE FROM cloud_places WHERE key = :key", key=key)

    async def held(self) -> frozenset[str]:
        rows = await self._store.many("SELECT key FROM cloud_places WHERE state = 'held'")
        return frozenset(row["key"] for row in rows)

    async def correct(self, before: AbstractSet[str], running: AbstractSet[str]) -> None:
        def work(db: Database) -> None:
            there = {row["key"] for row in many(db, "SELECT key FROM cloud_places")}
            for gone in (before - running) & there:
                run(db, "DELETE FROM cloud_places WHERE key = :key AND state = 'held'", key=gone)
            for found in running - there:
                run(db, _HOLD, key=found, holder=self._holder)

        await self._store.write(work)
