"""How far GitHub's own log of deliveries was read, for each App that this store has served."""

from __future__ import annotations

from dataclasses import dataclass

from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import one, run


@dataclass(frozen=True)
class DeliveryLogMark(Record):
    """Times are GitHub's. What is not newer than the floor was delivered before we ever looked."""

    app_id: int
    floor_at: float
    floor_id: int
    read_at: float

    def is_history(self, delivered_at: float, delivery_id: int) -> bool:
        return (delivered_at, delivery_id) <= (self.floor_at, self.floor_id)


async def log_mark(store: Store, app_id: int) -> DeliveryLogMark | None:
    sql = "SELECT * FROM delivery_marks WHERE app_id = :app_id"
    row = await store.read(lambda db: one(db, sql, app_id=app_id))
    return DeliveryLogMark.of(row) if row else None


async def begin_log(store: Store, app_id: int, floor_at: float, floor_id: int) -> None:
    """At the first look ever; a second one changes nothing."""
    sql = """
    INSERT INTO delivery_marks (app_id, floor_at, floor_id, read_at) VALUES (:app_id, :at, :floor_id, :at)
    ON CONFLICT (app_id) DO NOTHING
    """
    await store.write(lambda db: run(db, sql, app_id=app_id, at=floor_at, floor_id=floor_id))


async def move_log_mark(store: Store, app_id: int, read_at: float) -> None:
    """Forward only."""
    sql = "UPDATE delivery_marks SET read_at = :at WHERE app_id = :app_id AND read_at < :at"
    await store.write(lambda db: run(db, sql, app_id=app_id, at=read_at))
