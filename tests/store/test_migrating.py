"""A migration is there as a whole or not at all."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from bot.store.sqlite import schema


def folder_with(tmp_path: Path, **files: str) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir(exist_ok=True)
    for name, sql in files.items():
        (folder / f"{name.lstrip('m')}.sql").write_text(sql)
    return folder


@pytest.mark.acceptance("F08")
def test_a_migration_interrupted_half_way_leaves_nothing_and_completes_when_run_again(tmp_path: Path) -> None:
    from sqlite_utils import Database as Library

    db = Library(sqlite3.connect(tmp_path / "x.db", isolation_level=None))
    folder = folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER); CREATE TABLE b (id INTEGER); SELECT nonsense;")
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(db, folder)
    assert db.table_names() == []
    folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER);", m0002_b="ALTER TABLE a ADD COLUMN more TEXT;")
    schema.migrate(db, folder)
    schema.migrate(db, folder)
    assert [column.name for column in db.table("a").columns] == ["id", "more"]
    db.close()


MIGRATING = """
import os, signal, sqlite3, sys
from pathlib import Path
from bot.store.sqlite import schema

path, folder = Path(sys.argv[1]), Path(sys.argv[2])
path.touch()
db = schema.writable(path)
db.conn.create_function("die", 0, lambda: os.kill(os.getpid(), signal.SIGKILL))
schema.migrate(db, folder)
"""


@pytest.mark.acceptance("F08")
def test_a_kill_within_a_migration_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    folder = folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER); INSERT INTO a VALUES (die());")
    ended = subprocess.run([sys.executable, "-c", MIGRATING, str(path), str(folder)], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL
    db = schema.writable(path)
    assert db.table_names() == []
    folder_with(tmp_path, m0001_a="CREATE TABLE a (id INTEGER);")
    schema.migrate(db, folder)
    assert "a" in db.table_names()
    db.close()
