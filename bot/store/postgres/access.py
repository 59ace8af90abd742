"""Says what stands between us and a database that answers: a user without rights, or a connection pooler."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from bot.errors import StoreError
from bot.settings.database import ENGINE_SCHEMA
from bot.store.postgres.connections import SCHEMA

POOLER = (
    "FORGEHAND_DATABASE_URL leads to a connection pooler such as PgBouncer. Forgehand's locks and notices need "
    "connections of their own: name PostgreSQL's port instead."
)
_REFUSES_OPTIONS = "unsupported startup parameter"
"""PgBouncer's words, for which there is no SQLSTATE."""
_LACKING = """
SELECT name FROM unnest(%s::text[]) AS name
WHERE NOT coalesce(has_schema_privilege(to_regnamespace(name)::oid, 'CREATE'),
                   has_database_privilege(current_database(), 'CREATE'))
"""


def is_poolers(error: psycopg.Error) -> bool:
    return _REFUSES_OPTIONS in str(error)


def require_direct(connection: psycopg.Connection[Any]) -> None:
    """StoreError if a pooler has swallowed what we said when we connected."""
    if connection.execute("SELECT current_setting('search_path')").fetchone() != (SCHEMA,):
        raise StoreError(POOLER)


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Tell whether another than the server has answered our connection: it named another process."""
    return connection.execute("SELECT pg_backend_pid()").fetchone() != (connection.info.backend_pid,)


def require_schemas(connection: psycopg.Connection[Any], where: str) -> None:
    """StoreError if a schema is missing, or not ours to fill, and the user may not create it."""
    lacking = [row[0] for row in connection.execute(_LACKING, ([SCHEMA, ENGINE_SCHEMA],))]
    if not lacking:
        return
    user = Identifier(connection.info.user)
    grants = [SQL("CREATE SCHEMA {} AUTHORIZATION {};").format(Identifier(one), user) for one in lacking]
    advice = " ".join(one.as_string(connection) for one in grants)
    raise StoreError(
        f"{where}: the user {connection.info.user} may not create tables in {' and '.join(lacking)}. "
        f"Let the database's owner run: {advice}"
    )
