"""The stored allowance of each installation for edits, so that a restart does not start a new burst."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from bot.models import InstallationId
from bot.store.base import Store
from bot.store.records import Record
from bot.store.rows import one, run

_READ_QUOTA = "SELECT * FROM writer_buckets WHERE installation_id = :id"
_WRITE_QUOTA = """
INSERT INTO writer_buckets (installation_id, tokens, refilled_at, paused_until, pace, pace_since, pace_edits,
                            refused_at, quick)
VALUES (:id, :tokens, :refilled_at, :paused_until, :pace, :pace_since, :pace_edits, :refused_at, :quick)
ON CONFLICT (installation_id) DO UPDATE
SET tokens = excluded.tokens, refilled_at = excluded.refilled_at, paused_until = excluded.paused_until,
    pace = excluded.pace, pace_since = excluded.pace_since, pace_edits = excluded.pace_edits,
    refused_at = excluded.refused_at, quick = excluded.quick
"""


@dataclass(frozen=True)
class EditQuota(Record):
    """The columns; `live.allowance` knows what they mean."""

    tokens: float
    refilled_at: float
    paused_until: float
    pace: str
    pace_since: float
    pace_edits: int
    refused_at: float
    quick: float


async def edit_quota(store: Store, installation: InstallationId) -> EditQuota | None:
    """None for an installation that has not written yet."""
    row = await store.read(lambda db: one(db, _READ_QUOTA, id=installation))
    return EditQuota.of(row) if row else None


async def save_edit_quota(store: Store, installation: InstallationId, bucket: EditQuota) -> None:
    await store.write(lambda db: run(db, _WRITE_QUOTA, id=installation, **asdict(bucket)))
