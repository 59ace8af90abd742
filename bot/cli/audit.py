"""`forgehand audit`: who allowed, refused, set or revoked what, and when."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.cli.asked import AsJson, Config, read_store
from bot.cli.filters import ListFilters, filtered
from bot.cli.table import Column, print_table

COLUMNS = (
    Column("WHEN", lambda one: datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")),
    Column("WHO", lambda one: one.actor),
    Column("WHAT", lambda one: f"{one.action}: {one.subject}{f' ({one.detail})' if one.detail else ''}"),
)


@filtered("by", "since", "limit")
def command(filters: ListFilters, as_json: AsJson = False, config: Config = None) -> None:
    """List who allowed, refused, set or revoked what, newest first."""
    from bot.store import audit

    sought = filters.sought()
    found = read_store(config, lambda store: audit.listing(store, sought))
    print_table(
        found, COLUMNS, as_json=as_json, none="Nothing matches." if sought.narrows else "The audit log is empty."
    )
