"""The stored allowance of each installation for edits, so that a restart does not start a new burst."""

from __future__ import annotations

from bot.models import InstallationId
from bot.store.base import Database, Store
from bot.store.rows import one, run

READ = "SELECT tokens, refilled_at, paused_until FROM writer_buckets WHERE installation_id = :id"
WRITE = """
INSERT INTO writer_buckets (installation_id, tokens, refilled_at, paused_until)
VALUES (:id, :tokens, :refilled_at, :paused_until)
ON CONFLICT (installation_id) DO UPDATE
SET tokens = excluded.tokens, refilled_at = excluded.refilled_at, paused_until = excluded.paused_until
"""


async def read(store: Store, installation: InstallationId) -> tuple[float, float, float] | None:
    """(tokens, refilled_at, paused_until), or None for one that has not written yet."""
    row = await store.read(lambda db: one(db, READ, id=installation))
    return (row["tokens"], row["refilled_at"], row["paused_until"]) if row else None


async def save(store: Store, installation: InstallationId, state: tuple[float, float, float]) -> None:
    tokens, refilled_at, paused_until = state

    def work(db: Database) -> None:
        run(db, WRITE, id=installation, tokens=tokens, refilled_at=refilled_at, paused_until=paused_until)

    await store.write(work)
