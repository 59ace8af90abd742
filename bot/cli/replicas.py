"""`forgehand replicas`: the services that share a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from bot.cli import console
from bot.cli.asked import AsJson, Config, database, read_store
from bot.cli.table import Column, print_table

NONE = "No replica runs."
COLUMNS = (
    Column("ID", lambda row: row.id),
    Column("HOST", lambda row: row.host),
    Column("VERSION", lambda row: row.version),
    Column("SINCE", lambda row: console.when(row.started_at)),
    Column("TURNS", lambda row: str(row.turns), right=True),
    Column("LAST BEAT", lambda row: f"{row.beat_seconds_ago:.0f} s ago", right=True),
    Column("ROLE", lambda row: "leads" if row.leads else ""),
)
ALONE = "The store is a file, which one service uses alone: there are no replicas."


def command(as_json: AsJson = False, config: Config = None) -> None:
    """List the replicas that share the database: which one leads, what each runs, and its last sign of life."""
    from bot.store import replicas

    none = ALONE if isinstance(database(config), Path) else NONE
    print_table(read_store(config, replicas.at_work), COLUMNS, as_json=as_json, none=none)
