"""The operator's switch: whether anything new is begun; it outlives a restart."""

from __future__ import annotations

from bot.store import audit
from bot.store.base import Store
from bot.store.rows import Database, one, run


async def paused_at(store: Store) -> float | None:
    """Since when nothing new is begun; None while all goes on."""
    row = await store.read(lambda db: one(db, "SELECT set_at FROM switches WHERE name = 'paused'"))
    return float(row["set_at"]) if row else None


async def pause(store: Store, by: str) -> bool:
    """False when it was so already."""
    at = store.now()

    def work(db: Database) -> bool:
        sql = "INSERT INTO switches (name, set_by, set_at) VALUES ('paused', :by, :at) ON CONFLICT (name) DO NOTHING"
        if not run(db, sql, by=by, at=at):
            return False
        audit.put(db, at, by, "pause", "service")
        return True

    return await store.write(work)


async def resume(store: Store, by: str) -> bool:
    """False when nothing was paused."""
    at = store.now()

    def work(db: Database) -> bool:
        if not run(db, "DELETE FROM switches WHERE name = 'paused'"):
            return False
        audit.put(db, at, by, "resume", "service")
        return True

    return await store.write(work)
