"""Every migration goes over rows that the schema before it has written, and loses none of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bot.store.rows import Database, many
from bot.store.sqlite import connections, schema

ROWS = Path(__file__).parents[1] / "data" / "migrations"
NAMES = [file.stem for file in schema.files(schema.FOLDER)]


def grown(path: Path, names: list[str], *, filled: list[str]) -> Database:
    """A database brought up one migration after the other, with the rows of each of `filled` put in on the way."""
    path.touch()
    db = connections.writable(path)
    folder = path.parent / "migrations"
    folder.mkdir()
    for name in names:
        shutil.copy(schema.FOLDER / f"{name}.sql", folder)
        schema.migrate(db, folder)
        if name in filled:
            db.executescript((ROWS / f"{name}.sql").read_text(encoding="utf-8"))
    return db


def counted(db: Database) -> dict[str, int]:
    tables = [name for name in db.table_names() if not name.startswith("_")]
    return {name: many(db, f"SELECT COUNT(*) AS n FROM {name}")[0]["n"] for name in tables}


def test_every_migration_but_the_latest_has_rows_to_go_over() -> None:
    assert {file.stem for file in ROWS.glob("*.sql")} >= set(NAMES[:-1])


@pytest.mark.acceptance("F08")
@pytest.mark.parametrize("last", range(1, len(NAMES)))
def test_rows_of_each_schema_survive_all_later_migrations(tmp_path: Path, last: int) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    filled = NAMES[:last]
    before = grown(tmp_path / "before" / "state.db", filled, filled=filled)
    after = grown(tmp_path / "after" / "state.db", NAMES, filled=filled)
    held = counted(before)
    assert all(held.values()), f"a table without rows proves nothing: {held}"
    assert {name: counted(after)[name] for name in held} == held
    assert many(after, "PRAGMA foreign_key_check") == []
    before.close()
    after.close()


def test_what_was_spent_before_is_known_by_repository_and_person_afterwards(tmp_path: Path) -> None:
    db = grown(tmp_path / "state.db", NAMES[:2], filled=NAMES[:1])
    spent = {row["id"]: (row["repo_id"], row["user_id"], row["cost_usd"]) for row in many(db, "SELECT * FROM spend")}
    assert spent == {"s-1": (7, 11, 0.125), "s-2": (7, 12, 0), "s-3": (0, 0, 0.0625)}
    [token] = many(db, "SELECT repo_id, user_id FROM gateway_tokens")
    assert (token["repo_id"], token["user_id"]) == (7, 12)
    db.close()


def test_what_was_spent_before_counts_towards_the_days_and_months_of_each_payer(tmp_path: Path) -> None:
    db = grown(tmp_path / "state.db", NAMES, filled=[name for name in NAMES if name < "0013"])
    for payer in ("installation_id", "repo_id", "user_id"):
        rows = many(
            db, f"SELECT {payer} AS number, SUM(cost_usd) AS usd FROM spend WHERE {payer} <> 0 GROUP BY {payer}"
        )
        days = many(db, "SELECT number, SUM(cost_usd) AS usd FROM spend_days WHERE payer = :p GROUP BY number", p=payer)
        kept = {row["number"]: row["usd"] for row in days if row["usd"]}
        assert kept == {row["number"]: row["usd"] for row in rows if row["usd"]} != {}
    db.close()
