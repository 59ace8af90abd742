"""`forgehand spend`: the cost of the model, as the gateway metered it, and of machines."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot import funds, settings
from bot.cli import console
from bot.cli.asked import AsJson, Config
from bot.errors import UserError
from bot.funds import BudgetTerms
from bot.models import SessionId
from bot.words import on_estimates, on_money

if TYPE_CHECKING:
    from bot.store.base import Store
    from bot.store.turn_figures import EstimatesHeld

SECONDS = {"h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
UNITS = {"h": "hour", "d": "day", "w": "week"}
_AGO = re.compile(r"(\d{1,5})([hdw])")


class SpendGrouping(StrEnum):
    DAY = "day"
    REPO = "repo"
    USER = "user"
    SESSION = "session"
    ESTIMATE = "estimate"


def command(
    by: Annotated[
        SpendGrouping, typer.Option(help="Print one line for each; estimate: how often estimates held, by kind.")
    ] = SpendGrouping.DAY,
    since: Annotated[str, typer.Option(metavar="DATE|30d", help="A day (UTC), or a time ago (h, d, w).")] = "30d",
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show the exact cost of all requests to the model, and of paid sandboxes."""
    rows, held = console.run(_looked_up(config, by, since))
    if by is SpendGrouping.ESTIMATE:
        rows = [vars(one) for one in held]
    if as_json:
        console.print_json(rows)
        return
    if by is SpendGrouping.ESTIMATE:
        for one in held:
            typer.echo(f"{one.kind}: {_hit_rate([one])}")
        typer.echo(_hit_rate(held) or f"No turn that ended {period(since)} had an estimate.")
        return
    for row in rows:
        tokens = int(sum(row[f"{kind}_tokens"] for kind in ("input", "output", "cache_read", "cache_write")))
        spent = f"{row['cost_usd']:>10.4f}  {row['requests']:>6} requests  {tokens:>14,} tokens"
        typer.echo(f"{spent}  {_name(row)}{_machine(row['sandbox_usd'])}{on_money.unconfirmed(row['unconfirmed_usd'])}")
    machine = sum(row["sandbox_usd"] for row in rows)
    open_ = on_money.unconfirmed(sum(row["unconfirmed_usd"] for row in rows))
    typer.echo(f"{sum(row['cost_usd'] for row in rows):>10.4f}  dollars {period(since)}{_machine(machine)}{open_}")
    if said := _hit_rate(held):
        typer.echo(said)


async def _looked_up(
    config: Path | None, by: SpendGrouping, since: str
) -> tuple[list[dict[str, Any]], list[EstimatesHeld]]:
    from bot.store import spend, turn_figures
    from bot.store.base import Store

    start, values = began(since, time.time()), settings.from_environment(config)
    terms = BudgetTerms.of(settings.read_limits(values))
    async with Store.reading(settings.read_database(values)) as store:
        held = await turn_figures.held(store, start)
        if by is SpendGrouping.ESTIMATE:
            return [], held
        rows = [shown(row) for row in await spend.summed(store, by, start)]
        if by is SpendGrouping.SESSION:
            rows = [{**row, **await _in_all(store, row["session"], terms)} for row in rows]
        return rows, held


async def _in_all(store: Store, session: SessionId, terms: BudgetTerms) -> dict[str, Any]:
    from bot.store import spend

    found = funds.of(await spend.account(store, session), terms)
    return {
        "session_cost_usd": found.spent_usd,
        "session_unconfirmed_usd": found.unconfirmed_usd,
        "session_budget_usd": found.limit_usd,
    }


def began(since: str, now: float) -> float:
    if match := _AGO.fullmatch(since):
        return now - int(match[1]) * SECONDS[match[2]]
    try:
        moment = datetime.fromisoformat(since)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        raise UserError(
            f"--since takes a day such as 2026-11-01, or a time such as 30d or 12h, not {since!r}."
        ) from None


def period(since: str) -> str:
    """Say in words the period that `began` understood."""
    match = _AGO.fullmatch(since)
    if match is None:
        return f"since {since}"
    count, unit = int(match[1]), UNITS[match[2]]
    return f"in the last {unit}" if count == 1 else f"in the last {count} {unit}s"


def shown(row: dict[str, Any]) -> dict[str, Any]:
    if "day" in row:
        return {**row, "day": datetime.fromtimestamp(row["day"] * 86_400, UTC).date().isoformat()}
    return row


def _hit_rate(held: Sequence[EstimatesHeld]) -> str:
    from bot.store import turn_figures

    return on_estimates.hit_rate(*turn_figures.total(held))


def _machine(usd: float) -> str:
    return f"  + {usd:.4f} sandboxes" if usd else ""


def _name(row: dict[str, Any]) -> str:
    if "session" in row:
        turns = f"{row['turns']} turn{'s' * (row['turns'] != 1)}"
        spent = on_money.spent_of(row["session_cost_usd"], row["session_unconfirmed_usd"], row["session_budget_usd"])
        return f"{row['session']}  {row['thread'] or '(gone)'}  {turns}  {spent} in all"
    return str(row.get("day") or row.get("repo") or row.get("user") or "(unknown)")
