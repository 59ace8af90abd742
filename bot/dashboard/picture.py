"""Gathers what a dashboard shows, from the store; says which boxes it offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot.dashboard.pulls import OwnPulls
from bot.live.page import offers
from bot.live.questions import RETRY, STOP, TickBox
from bot.models import InstallationId, RepoId, TurnState
from bot.sessions.money import spending_limits
from bot.sessions.money.budget import Ledger
from bot.sessions.money.spending_limits import Ceiling, Ceilings, Period
from bot.settings import Limits
from bot.store import dashboards, spend
from bot.store.base import Store
from bot.store.dashboards import Dashboard, ShownApproval, ShownTurn
from bot.store.spend import Payer, Payers, Window

MOST = 10
"""Rows of each section."""
MOST_OFFERED = 2_000
"""Rows whose boxes count when somebody ticks one: rows move while a person reads."""


@dataclass(frozen=True)
class ThreadBox:
    """A box of the dashboard, and the thread on which its command is given."""

    box: TickBox
    number: int
    is_pull: bool


@dataclass(frozen=True)
class DashboardPicture:
    """One look at a repository; rendering it is pure."""

    dashboard: Dashboard
    running: Sequence[ShownTurn]
    queued: Sequence[ShownTurn]
    queued_in_all: int
    running_in_all: int
    waiting: Sequence[ShownApproval]
    failing: Sequence[ShownTurn]
    pulls: OwnPulls
    month_usd: float
    limits: Sequence[tuple[Ceiling, Ledger]]
    """The repository's own: what an account spends is for its owners."""
    command: str


@dataclass(frozen=True)
class Gathering:
    store: Store
    limits: Limits
    command: str
    clock: Callable[[], float]

    async def picture(self, dashboard: Dashboard, pulls: OwnPulls) -> DashboardPicture:
        store, repo, now = self.store, dashboard.repo_id, self.clock()
        running, running_in_all = await dashboards.in_state(store, repo, TurnState.RUNNING, MOST)
        queued, queued_in_all = await dashboards.in_state(store, repo, TurnState.QUEUED, MOST)
        payers = Payers(InstallationId(0), repo)  # only the repository's
        month = Window(Payer.REPO, Ceiling(Payer.REPO, Period.MONTH, 1.0).window(now).since)
        [spent] = await spend.in_windows(store, payers, [month])
        return DashboardPicture(
            dashboard=dashboard,
            running=running,
            queued=queued,
            queued_in_all=queued_in_all,
            running_in_all=running_in_all,
            waiting=await dashboards.waiting(store, repo, MOST + 1),
            failing=await dashboards.failing(store, repo, MOST + 1),
            pulls=pulls,
            month_usd=spent.counted_usd if spent else 0.0,
            limits=await spending_limits.ledgers(store, Ceilings.of(self.limits), payers, now),
            command=self.command,
        )


async def offered(store: Store, repo: RepoId) -> list[ThreadBox]:
    """List all boxes that the dashboard may offer now, judged by the store alone."""
    found: list[ThreadBox] = []
    for state in (TurnState.RUNNING, TurnState.QUEUED):
        turns, _ = await dashboards.in_state(store, repo, state, MOST_OFFERED)
        found += [box for turn in turns for box in to_stop(turn)]
    found += [box for one in await dashboards.waiting(store, repo, MOST_OFFERED) for box in to_answer(one)]
    found += [box for turn in await dashboards.failing(store, repo, MOST_OFFERED) for box in to_retry(turn)]
    for number in await dashboards.pulls(store, repo, MOST_OFFERED):
        found += to_look_at(number, failing=True)
    return found


def to_stop(turn: ShownTurn) -> list[ThreadBox]:
    return [_on(turn, STOP)]


def to_retry(turn: ShownTurn) -> list[ThreadBox]:
    return [_on(turn, RETRY)]


def to_answer(one: ShownApproval) -> list[ThreadBox]:
    return [ThreadBox(box, one.turn.number, one.turn.is_pull) for box in offers(one.approval)]


def to_look_at(number: int, *, failing: bool) -> list[ThreadBox]:
    review = TickBox("Review", "review", f"pull request {number}")
    fix = TickBox("Fix the checks", "fix ci", f"pull request {number}")
    return [ThreadBox(box, number, True) for box in (review, *[fix] * failing)]


def _on(turn: ShownTurn, box: TickBox) -> ThreadBox:
    """Name the turn, so that a late tick cannot mean another one."""
    named = replace(box, approval=f"{turn.session_id}-{turn.turn}")
    return ThreadBox(named, turn.number, turn.is_pull)
