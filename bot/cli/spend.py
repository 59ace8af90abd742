"""`forgehand spend`: the cost of the model, as the gateway metered it, and of machines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import funds, settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.cli.filters import ListFilters, filtered
from bot.cli.period import began, period, shown
from bot.cli.table import Column, print_table
from bot.funds import BudgetTerms
from bot.models import SessionId
from bot.words import on_estimates, on_money

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.turn_figures import EstimatesHeld

DEFAULT_SINCE = "30d"
TOKENS = ("input", "output", "cache_read", "cache_write")


class SpendGrouping(StrEnum):
    DAY = "day"
    REPO = "repo"
    USER = "user"
    SESSION = "session"
    MODEL = "model"
    KIND = "kind"
    ACCOUNT = "account"
    ESTIMATE = "estimate"


WHAT = "day, repo, user, session, model, kind or account; estimate: how often estimates held"
NO_ESTIMATES = "No turn of that time had an estimate."


@dataclass(frozen=True)
class _Asked:
    by: SpendGrouping
    since: str
    until: str
    repo: str


@filtered("repo", "since", "limit")
def command(
    filters: ListFilters,
    by: Annotated[SpendGrouping, typer.Option(metavar="WHAT", help=f"One line for each {WHAT}.")] = SpendGrouping.DAY,
    until: Annotated[str, typer.Option(metavar="DATE|7d", help="The end, likewise; now otherwise.")] = "",
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show the exact cost of all requests to the model, and of paid sandboxes; of the last 30 days by default."""
    asked = _Asked(by, filters.since or DEFAULT_SINCE, until, filters.repo)
    if by is SpendGrouping.ESTIMATE:
        _show_estimates(console.run(_held(config, asked)), as_json=as_json)
        return
    rows = console.run(_summed(config, asked))
    listed = rows[-filters.limit :] if by is SpendGrouping.DAY else rows[: filters.limit]
    print_table(listed, _columns(by), as_json=as_json, end=_total(rows, len(listed), asked))


def _show_estimates(held: Sequence[EstimatesHeld], *, as_json: bool) -> None:
    columns = [
        Column("KIND", lambda row: row["kind"]),
        Column("TURNS", lambda row: str(row["turns"]), right=True),
        Column("PRICE HELD", lambda row: f"{row['held_usd'] / row['turns']:.0%}", right=True),
        Column("TIME HELD", lambda row: f"{row['held_seconds'] / row['turns']:.0%}", right=True),
    ]
    print_table([vars(one) for one in held], columns, as_json=as_json, end=_hit_rate(held) or NO_ESTIMATES)


def _hit_rate(held: Sequence[EstimatesHeld]) -> str:
    from bot.store import turn_figures

    return on_estimates.hit_rate(*turn_figures.total(held))


async def _held(config: Path | None, asked: _Asked) -> list[EstimatesHeld]:
    from bot.store import turn_figures
    from bot.store.base import Store

    values = settings.from_environment(config)
    async with Store.reading(settings.read_database(values)) as store:
        return await turn_figures.held(store, began(asked.since, time.time()))


def _columns(by: SpendGrouping) -> list[Column]:
    named = [Column("SESSION", lambda row: row["session"]), Column("THREAD", lambda row: row["thread"] or "(gone)")]
    in_all = [
        Column(
            "SESSION IN ALL",
            lambda row: on_money.spent_of(
                row["session_cost_usd"], row["session_unconfirmed_usd"], row["session_budget_usd"]
            ),
        )
    ]
    if by is not SpendGrouping.SESSION:
        in_all = []
        named = [
            Column(
                by.upper(), lambda row: str(row[by] or ("(sandboxes)" if by is SpendGrouping.MODEL else "(unknown)"))
            )
        ]
    return [
        *named,
        Column("USD", lambda row: f"{row['cost_usd']:.4f}", right=True),
        Column("SANDBOXES", lambda row: f"{row['sandbox_usd']:.4f}" if row["sandbox_usd"] else "", right=True),
        Column("REQUESTS", lambda row: f"{row['requests']:,}", right=True),
        Column("TOKENS", lambda row: f"{int(sum(row[f'{kind}_tokens'] for kind in TOKENS)):,}", right=True),
        Column("TURNS", lambda row: str(row.get("turns", "")), right=True),
        Column("NOT CONFIRMED", lambda row: on_money.unconfirmed(row["unconfirmed_usd"]).removeprefix(", and ")),
        *in_all,
    ]


def _total(rows: list[dict[str, Any]], listed: int, asked: _Asked) -> str:
    machine = sum(row["sandbox_usd"] for row in rows)
    more = f" + {machine:.4f} sandboxes" if machine else ""
    open_ = on_money.unconfirmed(sum(row["unconfirmed_usd"] for row in rows))
    until = f" until {asked.until}" if asked.until else ""
    left = f" ({len(rows) - listed} lines are left out: --limit)" if len(rows) > listed else ""
    return f"{sum(row['cost_usd'] for row in rows):.4f} dollars{more}{open_} {period(asked.since)}{until}{left}"


async def _summed(config: Path | None, asked: _Asked) -> list[dict[str, Any]]:
    from bot.store import spend
    from bot.store.base import Store

    now, values = time.time(), settings.from_environment(config)
    end = began(asked.until, now, "--until") if asked.until else None
    terms = BudgetTerms.of(settings.read_limits(values))
    async with Store.reading(settings.read_database(values)) as store:
        found = await spend.summed(store, asked.by, began(asked.since, now), until=end, repo=asked.repo)
        rows = [shown(row) for row in found]
        if asked.by is not SpendGrouping.SESSION:
            return rows
        return [{**row, **await _in_all(store, row["session"], terms)} for row in rows]


async def _in_all(store: Store, session: SessionId, terms: BudgetTerms) -> dict[str, Any]:
    from bot.store import spend

    found = funds.of(await spend.account(store, session), terms)
    return {
        "session_cost_usd": found.spent_usd,
        "session_unconfirmed_usd": found.unconfirmed_usd,
        "session_budget_usd": found.limit_usd,
    }
