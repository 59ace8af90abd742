"""What an environment used of CPU, memory and disk while a turn worked in it: one row a sample."""

from __future__ import annotations

from dataclasses import dataclass

from bot.models import TurnKey
from bot.store.base import Store
from bot.store.rows import one, run

_LATEST = """
SELECT at, cpu_percent, memory_bytes, disk_bytes,
    (SELECT MAX(memory_bytes) FROM samples WHERE session_id = :session AND turn = :n) AS peak_memory_bytes
FROM samples WHERE session_id = :session AND turn = :n ORDER BY at DESC LIMIT 1
"""
_ADD = """
INSERT INTO samples (session_id, turn, at, cpu_percent, memory_bytes, disk_bytes)
VALUES (:session, :n, :at, :cpu, :memory, :disk) ON CONFLICT (session_id, turn, at) DO NOTHING
"""


@dataclass(frozen=True)
class Sample:
    """The last one of a turn, with the most memory of all of them."""

    at: float
    cpu_percent: float
    """Of one CPU: two busy ones are 200."""
    memory_bytes: int
    disk_bytes: int
    peak_memory_bytes: int


async def latest_sample(store: Store, key: TurnKey) -> Sample | None:
    row = await store.read(lambda db: one(db, _LATEST, session=key.session, n=key.n))
    return None if row is None else Sample(**row)


async def add_sample(store: Store, key: TurnKey, cpu_percent: float, memory_bytes: int, disk_bytes: int) -> None:
    values = {"at": store.now(), "cpu": cpu_percent, "memory": memory_bytes, "disk": disk_bytes}
    await store.write(lambda db: run(db, _ADD, session=key.session, n=key.n, **values))
