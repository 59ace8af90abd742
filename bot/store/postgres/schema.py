"""The schema in PostgreSQL: the same migrations as SQLite's, applied once, by one process at a time."""

from __future__ import annotations

import re
import time
from typing import Any

import psycopg

from bot.errors import StoreError
from bot.store import migrations
from bot.store.data_directory import Occupied
from bot.store.postgres import access, dialect
from bot.store.postgres.connections import EACH_NEEDS, SCHEMA, SERVICE, WRITERS
from bot.store.replicas import DatabaseServer

OLDEST = 14
MOVED = "moved"
"""Stands among the migrations once all rows have gone elsewhere."""
_APPLIED = (
    "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())"
)
_STATEMENT = re.compile(r"[^;]+")


def inspect(connection: psycopg.Connection[Any], where: str) -> bool:
    """Raise StoreError for a server or a schema that we must not touch; else tell whether migrations wait."""
    if connection.info.server_version < OLDEST * 10_000:
        raise StoreError(f"{where} is PostgreSQL {connection.info.server_version // 10_000}. Use {OLDEST} or newer.")
    return migrations.waiting(_applied(connection, where), where)


def migrate(connection: psycopg.Connection[Any], where: str, *, alone: bool) -> None:
    """Apply what waits, all in one transaction: interrupted anywhere, nothing of it is there. Occupied if a service
    runs whose statements the new schema would break."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (WRITERS,))
        if connection.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
            connection.execute(f"CREATE SCHEMA {SCHEMA}")  # with IF NOT EXISTS, PostgreSQL asks for the right anyway
        connection.execute(_APPLIED)
        applied = {row[0] for row in connection.execute("SELECT name FROM migrations")}
        waiting = [one for one in migrations.known() if one.name not in applied]
        if any(not one.only_adds for one in waiting) and not alone and is_claimed(connection):
            raise Occupied(f"{where} has an older schema, and Forgehand is running with it. Stop it first.")
        for one in waiting:
            for statement in _STATEMENT.findall(dialect.migration(one.sql)):
                if statement.strip():
                    connection.execute(statement.encode())
            connection.execute("INSERT INTO migrations (name) VALUES (%s)", (one.name,))


def is_claimed(connection: psycopg.Connection[Any]) -> bool:
    """Tell whether a service holds the database."""
    held = """
    SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE locktype = 'advisory' AND datname = current_database() AND granted
      AND (classid, objid, objsubid) = (0, %s, 1)
    """
    return connection.execute(held, (SERVICE,)).fetchone() is not None


def server(connection: psycopg.Connection[Any]) -> DatabaseServer:
    asked = """
    SELECT current_setting('server_version'), extract(epoch FROM clock_timestamp())::float8,
           current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
             - coalesce(current_setting('reserved_connections', true), '0')::int,
           (SELECT sum(numbackends)::int FROM pg_stat_database)
    """
    connection.execute("SELECT 1")  # the first question on a connection takes longer
    began = time.monotonic()
    row = connection.execute(asked).fetchone()
    assert row is not None
    version, now, most, used = row
    took, is_pooled = time.monotonic() - began, access.is_pooled(connection)
    return DatabaseServer(version.partition(" ")[0], now, took, most, used, EACH_NEEDS, is_pooled)


def exists(connection: psycopg.Connection[Any]) -> bool:
    """Tell whether our tables are there."""
    return "migrations" in _tables(connection)


def retire(connection: psycopg.Connection[Any]) -> None:
    connection.execute("INSERT INTO migrations (name) VALUES (%s) ON CONFLICT DO NOTHING", (MOVED,))


def _applied(connection: psycopg.Connection[Any], where: str) -> set[str]:
    tables = _tables(connection)
    if tables and "migrations" not in tables:
        raise StoreError(f"The schema {SCHEMA} of {where} belongs to another program. Give Forgehand its own database.")
    applied = {row[0] for row in connection.execute("SELECT name FROM migrations")} if tables else set()
    if MOVED in applied:
        raise StoreError(
            f"The store in {where} was moved to a file: unset FORGEHAND_DATABASE_URL. To fill this database again, "
            f"drop its schema first: DROP SCHEMA {SCHEMA} CASCADE"
        )
    return applied


def _tables(connection: psycopg.Connection[Any]) -> set[str]:
    found = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (SCHEMA,))
    return {row[0] for row in found}
