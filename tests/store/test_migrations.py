"""Every migration goes over rows that the schema before it has written, and loses none of them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.store import migrations
from bot.store.rows import many
from bot.store.sqlite import schema
from bot.store.sqlite.schema import Connection

DATA = Path(__file__).parents[1] / "data" / "migrations"


@dataclass(frozen=True)
class Steps:
    """Migrations, and the rows that each schema of theirs has written."""

    folder: Path
    rows: Path

    @property
    def names(self) -> list[str]:
        return [one.name for one in migrations.known(self.folder)]


OURS = Steps(migrations.FOLDER, DATA)
GROWING = Steps(DATA / "growing", DATA / "growing" / "rows")
EACH = [pytest.param(steps, last) for steps in (OURS, GROWING) for last in range(1, len(steps.names))]


def grown(path: Path, steps: Steps, names: list[str], *, filled: list[str]) -> Connection:
    """A database brought up one migration after the other, with the rows of each of `filled` put in on the way."""
    path.parent.mkdir(exist_ok=True)
    path.touch()
    db = schema.writable(path)
    folder = path.parent / "migrations"
    folder.mkdir()
    for name in names:
        shutil.copy(steps.folder / f"{name}.sql", folder)
        schema.migrate(db, folder)
        if name in filled:
            db.executescript((steps.rows / f"{name}.sql").read_text(encoding="utf-8"))
    return db


def counted(db: Connection) -> dict[str, int]:
    tables = [name for name in db.table_names() if not name.startswith("_")]
    return {name: many(db, f"SELECT COUNT(*) AS n FROM {name}")[0]["n"] for name in tables}


@pytest.mark.parametrize("steps", [OURS, GROWING])
def test_every_migration_but_the_latest_has_rows_to_go_over(steps: Steps) -> None:
    assert {file.stem for file in steps.rows.glob("*.sql")} >= set(steps.names[:-1])


def test_our_first_schema_takes_rows_of_every_table(tmp_path: Path) -> None:
    db = grown(tmp_path / "state.db", OURS, OURS.names[:1], filled=OURS.names[:1])
    held = counted(db)
    assert all(held.values()), f"a table without rows proves nothing: {held}"
    assert many(db, "PRAGMA foreign_key_check") == []
    db.close()


@pytest.mark.acceptance("F08")
@pytest.mark.parametrize(("steps", "last"), EACH)
def test_rows_of_each_schema_survive_all_later_migrations(tmp_path: Path, steps: Steps, last: int) -> None:
    filled = steps.names[:last]
    before = grown(tmp_path / "before" / "state.db", steps, filled, filled=filled)
    after = grown(tmp_path / "after" / "state.db", steps, steps.names, filled=filled)
    held = counted(before)
    assert all(held.values()), f"a table without rows proves nothing: {held}"
    assert {name: counted(after)[name] for name in held} == held
    assert many(after, "PRAGMA foreign_key_check") == []
    before.close()
    after.close()


def test_what_was_spent_before_is_known_by_repository_and_person_afterwards(tmp_path: Path) -> None:
    db = grown(tmp_path / "state.db", GROWING, GROWING.names[:2], filled=GROWING.names[:1])
    spent = {row["id"]: (row["repo_id"], row["user_id"], row["cost_usd"]) for row in many(db, "SELECT * FROM spend")}
    assert spent == {"s-1": (7, 11, 0.125), "s-2": (7, 12, 0), "s-3": (0, 0, 0.0625)}
    [token] = many(db, "SELECT repo_id, user_id FROM gateway_tokens")
    assert (token["repo_id"], token["user_id"]) == (7, 12)
    db.close()


def test_what_was_spent_before_counts_towards_the_days_and_months_of_each_payer(tmp_path: Path) -> None:
    db = grown(tmp_path / "state.db", GROWING, GROWING.names, filled=GROWING.names[:2])
    for payer in ("installation_id", "repo_id", "user_id"):
        rows = many(
            db, f"SELECT {payer} AS number, SUM(cost_usd) AS usd FROM spend WHERE {payer} <> 0 GROUP BY {payer}"
        )
        days = many(db, "SELECT number, SUM(cost_usd) AS usd FROM spend_days WHERE payer = :p GROUP BY number", p=payer)
        kept = {row["number"]: row["usd"] for row in days if row["usd"]}
        assert kept == {row["number"]: row["usd"] for row in rows if row["usd"]} != {}
    db.close()
