"""`forgehand audit`: who allowed, refused, set or revoked what, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import console
from bot.cli.asked import AsJson, Config, read_store

if TYPE_CHECKING:
    from bot.store.audit import AuditEntry

Limit = Annotated[int, typer.Option(metavar="N", min=1, max=100_000, help="How many at most.")]


def command(limit: Limit = 100, as_json: AsJson = False, config: Config = None) -> None:
    """List who allowed, refused, set or revoked what, newest first."""
    from bot.store import audit

    found = read_store(config, lambda store: audit.listing(store, limit))
    console.print_rows(found, _line, as_json=as_json, none="The audit log is empty.")


def _line(one: AuditEntry) -> str:
    """Make one line of plain text: names and details come from people."""
    from bot.text.blocks import plain

    at = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    detail = f" ({one.detail})" if one.detail else ""
    said = " ".join(f"{one.action}: {one.subject}{detail}".split())
    return plain(f"{at}  {one.actor}  {said}")
