"""The operator's home: what waits and runs, today's money, the check-up, failed deliveries, replicas and loops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from bot.handlers.desk import Desk
from bot.models import InstallationId
from bot.sessions.money import spending_limits
from bot.store import at_work, deliveries, operations, replicas
from bot.store.sought import Sought
from bot.web.health import Parts
from bot.web.pages.findings import Examination
from bot.web.pages.frame import COMMON
from bot.web.pages.gate import Gate
from bot.web.pages.spending import exported
from bot.web.pages.visitors import Visitor

MOST_TURNS = 100
MOST_ACCOUNTS = 20
MOST_FAILED = 20


@dataclass(frozen=True)
class TodayMeter:
    """An account's money of today against the limit that applies to it."""

    id: InstallationId
    account: str
    usd: float
    limit_usd: float

    @property
    def share(self) -> float:
        return round(min(self.usd / self.limit_usd, 1.0) * 100, 1) if self.limit_usd else 0.0


class OperatorPages:
    def __init__(self, gate: Gate, desk: Desk, parts: Parts, examination: Examination) -> None:
        self._gate = gate
        self._desk = desk
        self._parts = parts
        self._examination = examination

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/operator", self._gate.page(self._show)),
            Route("/operator/now", self._gate.plain(self._now)),
            Route("/operator/spend.csv", self._gate.page(self._export)),
        ]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        await self._gate.operators.require(visitor)
        if "refresh" not in request.query_params:  # a page that reloads by itself starts no check-up
            self._examination.look()
        return self._gate.pages.render("operator.html", title="Operator", **await self._seen(visitor))

    async def _now(self, request: Request, visitor: Visitor) -> Response:
        """Answer with the part of the page that changes."""
        await self._gate.operators.require(visitor)
        html = self._gate.pages.fragment("operator_now.html", **await self._seen(visitor))
        return HTMLResponse(html, headers=COMMON)

    async def _export(self, request: Request, visitor: Visitor) -> Response:
        await self._gate.operators.require(visitor)
        return await exported(self._gate, request, None, "all")

    async def _seen(self, visitor: Visitor) -> dict[str, Any]:
        store = self._desk.store
        turns, failed, living, allowances, paused, today = await asyncio.gather(
            at_work.turns(store, MOST_TURNS),
            deliveries.listing(store, Sought(state="failed", limit=MOST_FAILED)),
            replicas.at_work(store),
            at_work.allowances(store, MOST_ACCOUNTS),
            operations.paused_at(store),
            self._today(),
        )
        return {
            "visitor": visitor,
            "turns": turns,
            "failed": failed,
            "replicas": living,
            "allowances": allowances,
            "paused": paused is not None,
            "today": today,
            "examined": self._examination.latest,
            "loops": sorted(self._parts.loops.values(), key=lambda loop: loop.name),
            "github": self._desk.settings.github.url,
            "now": store.now(),
        }

    async def _today(self) -> list[TodayMeter]:
        store, limits = self._desk.store, self._desk.settings.limits
        accounts = await at_work.today(store, MOST_ACCOUNTS)
        found = await asyncio.gather(*(spending_limits.ceilings_of(store, limits, one.id) for one in accounts))
        pairs = zip(accounts, found, strict=True)
        return [TodayMeter(one.id, one.account, one.usd, ceilings.day_usd) for one, ceilings in pairs]
