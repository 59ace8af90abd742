"""A store arrives whole at another database, or not at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
import pytest

from bot.errors import StoreError
from bot.settings import Secret
from bot.store import base, relocation
from bot.store.base import Store
from bot.store.replicas import Joining
from bot.store.rows import Database, Row, many, run
from bot.store.sqlite import schema
from tests.store.rows import guids, insert
from tests.world.postgres import PostgresServer

ROWS = Path(__file__).parents[1] / "data" / "migrations" / "0001_init.sql"
pytestmark = pytest.mark.postgres


@pytest.fixture
async def full(tmp_path: Path) -> Path:
    """A file with rows in every table."""
    path = tmp_path / "data" / "state.db"
    await (await Store.open(path)).close()
    db = schema.writable(path)
    db.executescript(ROWS.read_text(encoding="utf-8"))
    db.close()
    return path


def test_every_lasting_table_is_taken_along(full: Path) -> None:
    with base.place(full).snapshot() as db:
        found = {row["name"] for row in many(db, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    lasting = {name for name in found if not name.startswith(("_", "sqlite_"))} - {"replicas"}
    assert base.tables().keys() == lasting


def test_there_and_back_is_the_same(full: Path, postgres: PostgresServer) -> None:
    address, back = postgres.fresh(), full.parent / "back.db"
    there = relocation.copy(full, address)
    assert all(one.rows for one in there)
    assert relocation.copy(address, back) == there
    assert relocation.copy(back, full.parent / "third.db") == there
    assert back.stat().st_mode & 0o777 == 0o600


def test_more_rows_than_a_page_holds_arrive(full: Path, postgres: PostgresServer) -> None:
    db = schema.writable(full)
    for n in range(3 * relocation.PAGE_ROWS + 1):
        insert(f"g{n:05}")(db)
    db.close()
    copied = {one.name: one for one in relocation.copy(full, postgres.fresh())}
    assert copied["deliveries"].rows > 3 * relocation.PAGE_ROWS


async def test_a_target_that_holds_rows_is_left_alone(full: Path, postgres: PostgresServer) -> None:
    address = postgres.fresh()
    store = await Store.open(address)
    await store.write(insert("mine"))
    for target in (address, full):
        with pytest.raises(StoreError, match=r"holds rows|exists already"):
            relocation.copy(full, target)
    assert await guids(store) == ["mine"]
    await store.close()


def test_a_copy_that_breaks_off_leaves_nothing(
    full: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, target = postgres.fresh(), full.parent / "target.db"
    real = relocation._insert

    def breaks(db: Database, name: str, page: list[Row]) -> None:
        real(db, name, page)
        if name == "turns":
            raise KeyboardInterrupt

    monkeypatch.setattr(relocation, "_insert", breaks)
    for place in (address, target):
        with pytest.raises(KeyboardInterrupt):
            relocation.copy(full, place)
    monkeypatch.undo()
    assert not target.exists()
    assert not list(full.parent.glob("*.incoming*"))
    assert relocation.copy(full, address)
    assert relocation.copy(full, target)


async def test_a_row_that_changes_on_the_way_stops_the_move(full: Path, postgres: PostgresServer) -> None:
    address = postgres.fresh()
    with base.place(address).filling() as db:
        body = "BEGIN NEW.login = NEW.login || ''!''; RETURN NEW; END"
        run(db, f"CREATE FUNCTION louder() RETURNS trigger AS '{body}' LANGUAGE plpgsql")
        run(db, "CREATE TRIGGER louder BEFORE INSERT ON visits FOR EACH ROW EXECUTE FUNCTION louder()")
    with pytest.raises(StoreError, match="visits did not arrive"):
        await relocation.move(full, address, full.parent, None)
    assert full.exists()


async def test_the_old_store_is_closed_after_a_move(full: Path, postgres: PostgresServer) -> None:
    address = postgres.fresh()
    kept = full.parent / "kept" / "work.bundle"
    kept.parent.mkdir()
    kept.write_bytes(b"work")
    _, files = await relocation.move(full, address, full.parent, None)
    assert files == 1
    kept.unlink()
    with pytest.raises(StoreError, match="moved to PostgreSQL"):
        await Store.open(full)
    await relocation.move(address, full, full.parent, None)
    assert kept.read_bytes() == b"work"
    with pytest.raises(StoreError, match="moved to a file"):
        await Store.open(address)
    await (await Store.open(full)).close()


async def test_a_running_service_keeps_its_store(full: Path, postgres: PostgresServer) -> None:
    address = postgres.fresh()
    relocation.copy(full, address)
    store = await Store.open(address)
    async with store.joined(Joining("one", lambda _: None, lambda: None)):
        with pytest.raises(StoreError, match="already running"), base.place(address).unused():
            pass
    with base.place(address).unused():
        pass
    await store.close()


async def test_a_backup_of_postgres_is_a_file(full: Path, postgres: PostgresServer, tmp_path: Path) -> None:
    address = postgres.fresh()
    relocation.copy(full, address)
    store = await Store.open(address)
    await store.backend.copy(tmp_path / "backup.db")
    await store.close()
    shutil.copy(tmp_path / "backup.db", tmp_path / "data" / "again.db")
    restored = await Store.open(tmp_path / "data" / "again.db")
    assert await guids(restored)
    await restored.close()


def test_a_password_stays_out_of_errors(full: Path) -> None:
    with pytest.raises(StoreError) as refused:
        relocation.copy(full, Secret("postgresql://me:hunter2@127.0.0.1:1/nowhere"))
    assert "hunter2" not in str(refused.value)
    assert psycopg.__name__ not in str(refused.value)
