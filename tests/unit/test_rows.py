"""Texts are made storable on their way in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlite_utils import Database

from bot.store.rows import clean, day_of, many, one, run, settings, statement


@pytest.fixture
def db() -> Iterator[Database]:
    database = Database(memory=True)
    run(database, "CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT UNIQUE)")
    yield database
    database.close()


def test_values_come_back_by_name(db: Database) -> None:
    assert run(db, "INSERT INTO words (id, word) VALUES (:id, :word)", id=1, word="one") == 1
    assert run(db, "INSERT INTO words (id, word) VALUES (:id, :word)", id=2, word="two") == 1
    assert one(db, "SELECT * FROM words WHERE id = :id", id=1) == {"id": 1, "word": "one"}
    assert one(db, "SELECT * FROM words WHERE id = :id", id=9) is None
    assert [row["word"] for row in many(db, "SELECT word FROM words ORDER BY id")] == ["one", "two"]
    assert run(db, "UPDATE words SET word = word || '!'") == 2


def test_a_broken_constraint_is_the_callers_to_know(db: Database) -> None:
    run(db, "INSERT INTO words (word) VALUES (:word)", word="one")
    with pytest.raises(sqlite3.IntegrityError):
        run(db, "INSERT INTO words (word) VALUES (:word)", word="one")


@pytest.mark.acceptance("D03")
def test_nul_and_lone_surrogates_do_not_reach_the_database(db: Database) -> None:
    run(db, "INSERT INTO words (id, word) VALUES (1, :word)", word="a\x00b\ud800c")
    assert one(db, "SELECT word FROM words") == {"word": "ab?c"}


@given(st.text(st.characters(codec=None)))
def test_clean_text_is_encodable_and_else_unchanged(text: str) -> None:
    assert b"\x00" not in clean(text).encode()
    if "\x00" not in text and text.isascii():
        assert clean(text) is text


def test_an_unknown_column_never_gets_into_a_statement() -> None:
    assert settings(["a", "b"], {"a", "b", "c"}) == "a = :a, b = :b"
    with pytest.raises(ValueError, match="DROP"):
        settings(["a = 1; DROP TABLE b; --"], {"a"})


@pytest.mark.parametrize(("at", "day"), [(0.0, 0), (86_399.9, 0), (86_400.0, 1), (-0.5, -1)])
def test_a_day_is_rounded_down(db: Database, at: float, day: int) -> None:
    assert one(db, statement("SELECT {day} AS day", day=day_of(":at")), at=at) == {"day": day}


def test_a_flag_reaches_the_database_as_a_whole_number() -> None:
    given: dict[str, Any] = {}

    class Listening:
        def execute(self, sql: str, parameters: dict[str, Any] | None = None, /) -> sqlite3.Cursor:
            given.update(parameters or {})
            return sqlite3.Connection(":memory:").cursor()

    run(Listening(), "UPDATE words SET final = :final", final=True)
    assert type(given["final"]) is int and given["final"] == 1
