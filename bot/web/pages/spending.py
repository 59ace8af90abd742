"""Shows what an account has spent, to its owners: by day, person, repository, model and kind; and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.errors import UserError
from bot.loops import beside
from bot.models import InstallationId
from bot.sessions.money import spending_limits
from bot.sessions.money.budget import Ledger
from bot.sessions.money.spending_limits import Ceiling, Period
from bot.settings import Limits
from bot.store import spend, spend_lines, turn_figures
from bot.store.spend import Payers
from bot.web.pages import drawing, spend_csv
from bot.web.pages.days import Days, months
from bot.web.pages.drawing import Bar
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import Gate
from bot.web.pages.ownership import owned
from bot.web.pages.visitors import Visitor
from bot.words import on_estimates, on_money

MOST_BARS = 20
MOST_LINES = 50_000
FEW_LINES = 1_000
"""So many are written in some 5 ms."""
IN_SIGHT = 3.0
"""A day's limit is drawn if it is at most so many times the dearest day."""
PARTS = {"day": "day", "repo": "repository", "user": "person", "model": "model", "kind": "kind"}
PERIODS = {Period.DAY: "Today", Period.MONTH: "This month"}
FILTERS = {"repo": "repo", "user": "person"}
UNKNOWN = "unknown"
NAMELESS = {"model": "sandboxes", "kind": "no turn"}


@dataclass(frozen=True)
class SpentBar:
    bar: Bar
    link: str


@dataclass(frozen=True)
class SpentPart:
    """Spending by one thing; `limit_at` is the place of the day's limit on its bars, from 0 to 100."""

    name: str
    bars: Sequence[SpentBar]
    limit_at: float | None = None
    limit: str = ""
    rest: str = ""


@dataclass(frozen=True)
class SpendMeter:
    """A limit and how much of it is spent."""

    name: str
    spent: str
    limit: str
    share: float

    @classmethod
    def of(cls, ceiling: Ceiling, ledger: Ledger) -> SpendMeter:
        share = min(ledger.spent_usd / ledger.limit_usd, 1.0) * 100
        return cls(PERIODS[ceiling.period], f"${ledger.spent_usd:,.2f}", f"${ledger.limit_usd:,.2f}", round(share, 1))


class SpendPages:
    def __init__(self, gate: Gate, limits: Limits) -> None:
        self._gate = gate
        self._limits = limits

    def routes(self) -> list[BaseRoute]:
        at = "/installations/{id}/spend"
        return [Route(at, self._gate.page(self._show)), Route(f"{at}.csv", self._gate.page(self._export))]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        row, store = await owned(self._gate, request, visitor), self._gate.store
        days = Days.of(request.query_params, store.now())
        ceilings = await spending_limits.ceilings_of(store, self._limits, row.id)
        ledgers = await spending_limits.ledgers(store, ceilings, Payers(row.id), store.now())
        parts, total, unconfirmed = [], 0.0, 0.0
        for by in PARTS:
            found = await spend.summed(store, by, days.since, row.id, until=days.until)
            total, unconfirmed = sum(map(_usd, found)), sum(one["unconfirmed_usd"] for one in found)
            parts.append(_part(by, found, ceilings.day_usd))
        return self._gate.pages.render(
            "spend.html",
            title=f"What {row.account} spends",
            visitor=visitor,
            id=row.id,
            account=row.account,
            days=days,
            months=months(store.now()),
            total=total,
            unconfirmed=on_money.unconfirmed(unconfirmed),
            meters=[SpendMeter.of(*one) for one in ledgers],
            estimates=on_estimates.hit_rate(*turn_figures.total(await turn_figures.held(store, days.since, row.id))),
            parts=parts,
        )

    async def _export(self, request: Request, visitor: Visitor) -> Response:
        row = await owned(self._gate, request, visitor)
        return await exported(self._gate, request, row.id, row.account)


async def exported(gate: Gate, request: Request, installation: InstallationId | None, name: str) -> Response:
    """Answer with CSV; without an installation, for all accounts."""
    days = Days.of(request.query_params, gate.store.now())
    lines = await spend_lines.between(gate.store, days.since, days.until, installation, MOST_LINES + 1)
    if len(lines) > MOST_LINES:
        raise UserError(f"These days have more than {MOST_LINES:,} lines. Please choose fewer days.")
    file = f"forgehand-spend-{name}-{days.first}-{days.last}.csv"
    headers = {**COMMON, "Content-Disposition": f'attachment; filename="{file}"'}
    text = await beside(partial(spend_csv.text, lines), size=len(lines), most=FEW_LINES)
    return Response(text, headers=headers, media_type="text/csv")


def _usd(row: dict[str, Any]) -> float:
    return float(row["cost_usd"] + row["sandbox_usd"])


def _part(by: str, rows: list[dict[str, Any]], day_usd: float) -> SpentPart:
    if by == "day":
        pairs = [(datetime.fromtimestamp(row["day"] * 86_400, UTC).date().isoformat(), _usd(row)) for row in rows]
        top = max((usd for _, usd in pairs), default=0.0)
        in_sight = 0 < day_usd <= IN_SIGHT * top
        bars = drawing.bars(pairs, day_usd if in_sight else 0.0)
        linked = [SpentBar(bar, f"?{urlencode({'from': bar.name, 'to': bar.name})}") for bar in bars]
        place = day_usd / max(top, day_usd) * 100 if in_sight else None
        return SpentPart(PARTS[by], linked, place, f"${day_usd:,.2f}" if day_usd else "")
    pairs = [(str(row[by] or NAMELESS.get(by, UNKNOWN)), _usd(row)) for row in rows]
    bars, left = drawing.bars(pairs[:MOST_BARS]), pairs[MOST_BARS:]
    rest = f"{len(left)} more spent ${sum(usd for _, usd in left):,.2f}." if left else ""
    filters = FILTERS.get(by)  # of the list of sessions
    linked = [
        SpentBar(bar, f"/?{urlencode({filters: bar.name})}" if filters and bar.name != UNKNOWN else "") for bar in bars
    ]
    return SpentPart(PARTS[by], linked, rest=rest)
