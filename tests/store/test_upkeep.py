"""Backups can be opened, checks find damage, and pruning keeps what is still needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.models import DeliveryId, InstallationId, Outcome, Repo, RepoId, Thread
from bot.store import conversation, deliveries, operations, sessions
from bot.store.base import Store
from bot.store.deliveries import DeliveryState, NewDelivery
from bot.store.files import KeptFiles
from bot.store.rows import run
from bot.store.sessions import NewTurn
from bot.store.sqlite.backend import SqliteBackend

THREAD = Thread(Repo(RepoId(7), "octo", "calc", True, "main"), InstallationId(1), 5, False)
DAY = operations.DAY


async def test_a_backup_is_a_store(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "state.db")
    await deliveries.add(store, NewDelivery(DeliveryId("g"), "issues", "sha", body="{}"))
    (tmp_path / "backups").mkdir(mode=0o700)
    target = tmp_path / "backups" / "copy.db"
    await operations.backup(store, target)
    assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StoreError, match="File exists"):
        await operations.backup(store, target)
    await store.close()
    copy = await Store.open(target)
    assert await deliveries.known(copy, ["g"]) == {"g"}
    assert await operations.check(copy, KeptFiles(copy, tmp_path)) == []
    await copy.close()


async def test_a_check_names_what_points_to_nothing(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "state.db")
    orphan = "INSERT INTO sessions (id, thread_id, created_at) VALUES ('a', 'nowhere', 1.0)"
    assert isinstance(store.backend, SqliteBackend)
    store.backend._db.execute("PRAGMA foreign_keys = OFF")
    await store.write(lambda db: run(db, orphan))
    assert await operations.check(store, KeptFiles(store, tmp_path)) == ["sessions: row 1 points to nothing"]
    await store.close()


@pytest.mark.acceptance("A06")
async def test_pruning_keeps_what_waits_what_is_young_and_what_dedupes(tmp_path: Path) -> None:
    now = [0.0]
    store = await Store.open(tmp_path / "state.db", clock=lambda: now[0])
    for guid in ("settled", "waiting"):
        await deliveries.add(store, NewDelivery(DeliveryId(guid), "issues", "sha", body="{}"))
    await deliveries.settle(store, DeliveryId("settled"), DeliveryState.IGNORED)
    new = NewTurn(THREAD, "run", "fix", "alice", 1, "comment:1", "model", 5.0, 60.0)
    key = await sessions.begin_turn(store, new)
    assert key is not None
    await conversation.append_events(store, key, [("a", "{}")] * 3000, expected_offset=0, new_offset=1)
    await sessions.finish(store, key, Outcome.ANSWERED)
    now[0] = 7 * DAY
    assert sum((await operations.prune(store, days=1)).values()) == 0
    now[0] = 31 * DAY
    pruned = await operations.prune(store, days=30)
    assert pruned == {
        "deliveries": 1,
        "events": 3000,
        "samples": 0,
        "bulletins": 0,
        "fetched_packages": 0,
        "tool_calls": 0,
        "gateway_tokens": 0,
        "requests": 0,
    }
    assert await deliveries.known(store, ["settled", "waiting"]) == {"waiting"}
    assert await sessions.begin_turn(store, new) is None
    await store.close()
