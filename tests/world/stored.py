"""Queries that only tests need."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.models import SessionId
from bot.store import machines, spend
from bot.store.base import Store
from bot.store.deliveries import StoredDelivery
from bot.store.machines import MachineCost
from bot.store.rows import insert, many
from bot.store.spend import ModelCost

on_file = pytest.mark.parametrize("address", ["sqlite"], indirect=True)
"""Marks a test of SQLite alone."""


def file_of(store: Store) -> Path:
    assert isinstance(store.where, Path)
    return store.where


async def newest_deliveries(store: Store, limit: int = 100) -> list[StoredDelivery]:
    """Return the newest deliveries, without their bodies."""
    sql = "SELECT * FROM deliveries ORDER BY received_at DESC, guid LIMIT :limit"
    rows = await store.read(lambda db: many(db, sql, limit=limit))
    return [StoredDelivery.of({**row, "body": None}) for row in rows]


async def session_spend(store: Store, session: SessionId) -> ModelCost:
    return await store.read(lambda db: spend._sum(db, "session_id = :session", session=session))


async def session_machines(store: Store, session: SessionId) -> MachineCost:
    return await machines._cost(store, "session_id = :session", session=session)


async def put_figures(
    store: Store,
    figures: Sequence[tuple[float, float]],
    *,
    repo: int,
    installation: int,
    kind: str = "run",
    private: bool = True,
) -> None:
    """Store the dollars and seconds of turns that have ended, oldest first."""
    now, session = store.now(), f"{repo}-{installation}-{kind}"
    rows = [
        {
            "session_id": session,
            "turn": n,
            "repo_id": repo,
            "installation_id": installation,
            "private": int(private),
            "kind": kind,
            "usd": usd,
            "seconds": seconds,
            "at": now - len(figures) + n,
        }
        for n, (usd, seconds) in enumerate(figures)
    ]
    await store.write(lambda db: insert(db, "turn_figures", rows))
