"""`forgehand replicas`: the services that share a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.cli import console
from bot.cli.asked import AsJson, Config, read_store
from bot.cli.table import Column, print_table

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.replicas import ReplicaAtWork

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
    found, is_remote = read_store(config, _look)
    print_table(found, COLUMNS, as_json=as_json, none=NONE if is_remote else ALONE)


async def _look(store: Store) -> tuple[list[ReplicaAtWork], bool]:
    from bot.store import replicas

    return await replicas.at_work(store), store.is_remote
