"""Files that are not fit are refused with a sentence and left alone."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from bot.errors import StoreError
from bot.store.base import Store
from tests.store.rows import insert


async def made(path: Path) -> bytes:
    store = await Store.open(path)
    await store.write(insert("a"))
    await store.close()
    return path.read_bytes()


@pytest.mark.acceptance("F07")
async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    with sqlite3.connect(path) as db:
        db.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('forgehand', '9999_future', 'x')"
        )
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"newer Forgehand \(schema 9999_future.*Install"):
        await Store.open(path)
    with pytest.raises(StoreError, match="newer Forgehand"):
        await Store.open_reader(path)
    assert path.read_bytes() == before


@pytest.mark.acceptance("F07")
@pytest.mark.parametrize("where", ["header", "pages", "short"])
async def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, where: str) -> None:
    path = tmp_path / "state.db"
    content = bytearray(await made(path))
    if where == "header":
        content[0:16] = b"not a database!!"
    elif where == "pages":
        content[4096 : len(content)] = bytes(255 - byte for byte in content[4096:])
    else:
        del content[len(content) // 2 :]
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*quick_check.*backup"):
        await Store.open(path)
    assert path.read_bytes() == content


@pytest.mark.acceptance("F07")
async def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE recipes (id INTEGER)")
    db.close()
    with pytest.raises(StoreError, match="another program"):
        await Store.open(path)


@pytest.mark.acceptance("F07")
async def test_a_vanished_database_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    path.unlink()
    with pytest.raises(StoreError, match=r"missing.*Restore"):
        await Store.open(path)
    assert not path.exists()
    path.with_name("state.db.created").unlink()
    await made(path)


@pytest.mark.acceptance("F07")
async def test_read_only_files_and_folders_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    path.chmod(0o400)
    with pytest.raises(StoreError, match="chmod u\\+w"):
        await Store.open(path)
    path.chmod(0o600)
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="chmod 700"):
        await Store.open(path)
    tmp_path.chmod(0o700)


@pytest.mark.acceptance("F07")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_files_of_another_user_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    await made(path)
    os.chown(path, 12345, 12345)
    with pytest.raises(StoreError, match="belongs to user 12345"):
        await Store.open(path)
    os.chown(path, os.geteuid(), os.getegid())
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(StoreError, match="chown"):
        await Store.open(path)


@pytest.mark.acceptance("F07")
async def test_odd_places_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="not a folder"):
        await Store.open(tmp_path / "file" / "state.db")
    (tmp_path / "state.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(StoreError, match="regular file"):
        await Store.open(tmp_path / "state.db")
    with pytest.raises(StoreError, match="serve"):
        await Store.open_reader(tmp_path / "nothing.db")


async def test_the_data_directory_is_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "state.db"
    store = await Store.open(path)
    await store.write(insert("a"))
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes.keys() >= {"state.db", "state.db-wal", "state.db-shm"}
    assert set(modes.values()) == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700
    await store.close()


async def test_an_open_folder_is_closed_if_ours_and_refused_if_shared(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o755)
    await made(ours / "state.db")
    assert ours.stat().st_mode & 0o777 == 0o700
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    (shared / "letters").write_text("mine")
    with pytest.raises(StoreError, match="holds other files"):
        await Store.open(shared / "state.db")
    assert shared.stat().st_mode & 0o777 == 0o755
