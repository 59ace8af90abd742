"""Gathers what the live comment shows of a turn, from the store alone."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot import funds, repo_config
from bot.funds import BudgetTerms, Funds, FundsState
from bot.kinds.shape import OnFork
from bot.live import open_findings, questions, render, sections
from bot.live.open_findings import Reviewed
from bot.live.questions import TickBox
from bot.live.state import Folds, LiveState
from bot.models import Outcome, Thread, TurnKey, TurnState
from bot.settings import Limits
from bot.store import approvals, findings, machines, operations, packages, sessions, spend
from bot.store.approvals import Approval, ApprovalKind, ApprovalState
from bot.store.base import Store
from bot.store.machines import Sample
from bot.store.packages import FetchedSum
from bot.store.sessions import Session, Turn
from bot.store.spend import ModelCost
from bot.words import endings, on_forks


@dataclass(frozen=True)
class QueuePlace:
    number: int
    """From 1."""
    running: int
    behind_own_thread: bool = False
    """The turn before it on the same thread has to end first."""
    estimate: float | None = None
    """Seconds; None if too few turns are known to estimate."""
    known: int = 0


FindQueuePlace = Callable[[Turn], Awaitable[QueuePlace | None]]
"""Find the place of a turn that waits; None for any other turn."""


@dataclass(frozen=True)
class TurnView:
    """One look at a turn; rendering it is pure."""

    turn: Turn
    session: Session
    thread: Thread
    state: LiveState
    cost: ModelCost
    funds: Funds
    """The session's, now or at the end of the turn."""
    place: QueuePlace | None
    files: list[dict[str, Any]]
    verified: list[dict[str, Any]]
    command: str
    now: float
    means: FundsState = FundsState.LEFT
    paused: bool = False
    """The operator lets nothing new begin."""
    asks: Sequence[Approval] = ()
    """Open questions."""
    asked: Sequence[Approval] = ()
    """All that people were asked, answered or not."""
    model_costs: Sequence[tuple[str, float]] = ()
    """The confirmed money of each model, filled in if a fallback took part."""
    still: bool = False
    """Rendered only to learn whether a change is worth an edit."""
    sample: Sample | None = None
    sandbox_usd: float = 0.0
    boxes: tuple[TickBox, ...] = ()
    subagents: tuple[int, int] = (0, 0)
    """How many a turn may start, and how many at once; filled in if one was refused."""
    crowded: bool = False
    """So many sessions are at work that this comment is updated at the start and the end only."""
    public_url: str = ""
    """The address of our pages; empty if nobody else can reach them."""
    github_url: str = ""
    reviewed: Reviewed | None = None
    """The findings that stand in the comment of the newest review."""
    fetched: FetchedSum | None = None
    """What its package clients have got from the account's registries."""
    findings: int = 0
    """Open findings of our reviews of the pull request that was pushed to."""

    @property
    def ended(self) -> bool:
        return self.turn.state is TurnState.DONE or sections.is_stop_said(self.turn, self.now)

    @property
    def page_url(self) -> str:
        return f"{self.public_url}/sessions/{self.turn.key.session}" if self.public_url else ""

    @property
    def commit_url(self) -> str:
        """Return the address of the turn's commit at GitHub; empty if it is not there."""
        known = self.github_url and self.turn.commit_sha
        return f"{self.github_url}/{self.thread.repo.full_name}/commit/{self.turn.commit_sha}" if known else ""


@dataclass(frozen=True)
class Rendered:
    body: str
    still: str
    """A digest that neither the passing of time changes nor what the machine uses."""
    state: TurnState

    @property
    def final(self) -> bool:
        return self.state is TurnState.DONE


@dataclass(frozen=True)
class PageSettings:
    command: str
    limits: Limits = field(default_factory=Limits)
    public_url: str = ""
    github_url: str = ""


class Page:
    """Turns a stored state into a text: always the same, except for the elapsed time of a running turn."""

    def __init__(
        self,
        store: Store,
        folds: Folds,
        settings: PageSettings,
        *,
        find_place: FindQueuePlace,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self.folds = folds
        self._settings = settings
        self._find_place = find_place
        self._clock = clock

    @property
    def command(self) -> str:
        return self._settings.command

    def marker(self, key: TurnKey) -> str:
        """Return the beginning by which our comment is found, whatever state it shows."""
        return f"<!-- forgehand:session={key.session} turn={key.n}"

    async def view(self, key: TurnKey) -> TurnView:
        turn = await sessions.turn(self._store, key)
        session = await sessions.session(self._store, key.session)
        asked, means = await approvals.of_turn(self._store, key), await self._means(turn)
        state, limits = await self.folds.of(key), self._settings.limits
        account = await spend.account(self._store, key.session, turn=turn.n, at=turn.finished_at)
        return TurnView(
            turn=turn,
            session=session,
            thread=session.thread,
            state=state,
            cost=await spend.turn_cost(self._store, key),
            funds=funds.of(account, BudgetTerms.of(limits)),
            means=means,
            place=await self._find_place(turn),
            paused=await operations.paused_at(self._store) is not None,
            files=list(turn.files_changed or ()),
            verified=list(turn.verified or ()),
            command=self.command,
            now=self._clock(),
            asks=[one for one in _open(asked) if one.kind is not ApprovalKind.FORK],  # no agent waits for that
            asked=asked,
            model_costs=await spend.by_model(self._store, key) if state.switch else (),
            sample=await machines.latest_sample(self._store, key),
            sandbox_usd=(await machines.turn_cost(self._store, key)).usd,
            boxes=tuple(await self._boxes(turn, session, asked, means)),
            subagents=_most_subagents(turn, limits) if state.spawns_refused else (0, 0),
            public_url=self._settings.public_url,
            github_url=self._settings.github_url,
            fetched=await packages.sum_of(self._store, key),
            findings=await self._open_findings(turn, session),
            reviewed=await open_findings.of_turn(self._store, turn),
        )

    async def render(self, key: TurnKey, *, crowded: bool = False) -> Rendered:
        view = await self.view(key)
        return await asyncio.to_thread(_rendered, replace(view, crowded=crowded, state=view.state.copy()))

    async def boxes(self, turn: Turn, session: Session) -> list[TickBox]:
        """List what may be ticked now: nothing once a later turn has followed."""
        asked = await approvals.of_turn(self._store, turn.key)
        return await self._boxes(turn, session, asked, await self._means(turn))

    async def _boxes(self, turn: Turn, session: Session, asked: Sequence[Approval], means: FundsState) -> list[TickBox]:
        offered = [box for one in _open(asked) for box in offers(one)]
        if turn.state is not TurnState.DONE:
            return offered + [questions.STOP] * (turn.stop_requested is None)
        if turn.stop_requested == endings.TRANSFERRED:  # what is ticked elsewhere would be asked of another thread
            return []
        return await self._at_the_end(turn, session, asked, means) + open_findings.boxes(
            await open_findings.of_turn(self._store, turn)
        )

    async def _at_the_end(
        self, turn: Turn, session: Session, asked: Sequence[Approval], means: FundsState
    ) -> list[TickBox]:
        latest = await sessions.latest(self._store, session.thread)
        if latest is None or latest.key != turn.key:
            return []
        offered = [box for one in _open(asked) for box in offers(one)]
        offered += [box for one in questions.answerable(asked) for box in questions.to_answer_late(one.id)]
        at_the_end = questions.at_the_end(turn.outcome or Outcome.FAILED, means)
        return offered + [
            box for box in at_the_end if box is not questions.RETRY or not questions.is_retry_useless(turn)
        ]

    async def _open_findings(self, turn: Turn, session: Session) -> int:
        if turn.outcome is not Outcome.PUSHED or turn.part(OnFork).fork is not None or session.pull_number is None:
            return 0
        return len(await findings.open_findings(self._store, session.repo_id, session.pull_number))

    async def _means(self, turn: Turn) -> FundsState:
        if turn.agent_error == funds.CEILING:
            return FundsState.CEILING
        return funds.of(await spend.account(self._store, turn.key.session), BudgetTerms.of(self._settings.limits)).means


def _rendered(view: TurnView) -> Rendered:
    still = render.comment(replace(view, now=view.state.pulse_at or view.turn.created_at, sample=None, still=True))
    return Rendered(render.comment(view), hashlib.sha256(still.encode()).hexdigest(), view.turn.state)


def offers(one: Approval) -> list[TickBox]:
    """List the boxes that answer it."""
    if one.kind is ApprovalKind.PUSH:
        return [] if one.matter.get("lacks") else questions.to_let_go(one.id)
    if one.kind is ApprovalKind.PRICE:
        return questions.to_agree(one.id)
    if one.sha is not None:
        return questions.to_adopt(one.id, one.sha[: on_forks.SHORT])
    return questions.to_answer(one.id, plan=one.kind is ApprovalKind.PLAN)


def _open(asked: Sequence[Approval]) -> list[Approval]:
    return [one for one in asked if one.state is ApprovalState.OPEN]


def _most_subagents(turn: Turn, limits: Limits) -> tuple[int, int]:
    return repo_config.load(turn.config).subagents.within(limits.subagents, limits.subagents_at_once)
