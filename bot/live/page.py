"""Gathers what the live comment shows of a turn, from the store alone."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot import funds, repo_config
from bot.funds import Funds, Means, Terms
from bot.kinds.parts import OnFork
from bot.live import asked as asked_of
from bot.live import boxes, line, render, saving
from bot.live.boxes import Box
from bot.live.folds import Folds
from bot.live.line import Place
from bot.live.state import LiveState
from bot.models import Outcome, Thread, TurnKey, TurnState
from bot.settings import Limits
from bot.store import approvals, budgets, choices, findings, machines, samples, sessions, spend, switches
from bot.store import line as standing
from bot.store.approvals import Approval, Kind, Standing
from bot.store.base import Store
from bot.store.samples import Sample
from bot.store.sessions import Session, Turn
from bot.store.spend import Cost
from bot.words import endings, on_forks

KNOWN_TURNS = 20
"""Ended turns that an estimate goes by."""
NO_LIMITS = Limits()


@dataclass(frozen=True)
class View:
    """One look at a turn; rendering it is pure."""

    turn: Turn
    session: Session
    thread: Thread
    state: LiveState
    cost: Cost
    funds: Funds
    """The session's: now, or as it stood when the turn had ended."""
    place: Place | None
    """None when it is not waiting."""
    files: list[dict[str, Any]]
    verified: list[dict[str, Any]]
    command: str
    now: float
    means: Means = Means.LEFT
    """Whether there is money to go on with, now."""
    paused: bool = False
    """The operator lets nothing new begin."""
    asks: Sequence[Approval] = ()
    """What the agent waits for."""
    asked: Sequence[Approval] = ()
    """All that people were asked, and how it stands."""
    sample: Sample | None = None
    """What the environment used last."""
    sandbox_usd: float = 0.0
    """What the environment's machine costs, beside the model."""
    boxes: tuple[Box, ...] = ()
    subagents: tuple[int, int] = (0, 0)
    """How many a turn may start, and how many at once; known where one was refused."""
    crowded: bool = False
    """So many sessions are at work that this comment is written at the start and at the end only."""
    public_url: str = ""
    """Where our pages are; empty where nobody else can reach them."""
    findings: int = 0
    """Of our reviews of the pull request that was pushed to, which are open still."""

    @property
    def ended(self) -> bool:
        """As far as people are concerned."""
        return self.turn.state is TurnState.DONE or saving.is_said(self.turn, self.now)

    @property
    def page_url(self) -> str:
        return f"{self.public_url}/sessions/{self.turn.key.session}" if self.public_url else ""


@dataclass(frozen=True)
class Rendered:
    """The comment as it is to be, and what the one who writes it must know."""

    body: str
    still: str
    """A digest of it that does not change by the mere passing of time, nor by what the machine uses."""
    state: TurnState

    @property
    def final(self) -> bool:
        return self.state is TurnState.DONE


class Page:
    """The same stored state always gives the same text, but for the elapsed time of a turn that runs."""

    def __init__(
        self,
        store: Store,
        folds: Folds,
        *,
        command: str,
        limits: Limits = NO_LIMITS,
        public_url: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._folds = folds
        self.command = command
        self._limits = limits
        self._public_url = public_url
        self._clock = clock

    def marker(self, key: TurnKey) -> str:
        """What finds our comment again, whatever state it shows."""
        return f"<!-- forgehand:session={key.session} turn={key.n}"

    async def view(self, key: TurnKey) -> View:
        turn = await sessions.turn(self._store, key)
        session = await sessions.session(self._store, key.session)
        asked = await approvals.of_turn(self._store, key)
        means = await self._means(turn)
        state = await self._folds.of(key)
        return View(
            turn=turn,
            session=session,
            thread=session.thread,
            state=state,
            cost=await spend.turn_cost(self._store, key),
            funds=await self._funds(turn),
            means=means,
            place=await self._place(turn),
            paused=await switches.paused_at(self._store) is not None,
            files=list(turn.files_changed or ()),
            verified=list(turn.verified or ()),
            command=self.command,
            now=self._clock(),
            asks=[one for one in _open(asked) if one.kind is not Kind.FORK],  # no agent waits for that
            asked=asked,
            sample=await samples.latest(self._store, key),
            sandbox_usd=(await machines.turn_cost(self._store, key)).usd,
            boxes=tuple(await self._boxes(turn, session, asked, means)),
            subagents=self._subagents(turn) if state.spawns_refused else (0, 0),
            public_url=self._public_url,
            findings=await self._findings(turn, session),
        )

    async def render(self, key: TurnKey, *, crowded: bool = False) -> Rendered:
        view = await self.view(key)
        apart = replace(view, crowded=crowded, state=view.state.copy())
        return await asyncio.to_thread(_rendered, apart)

    async def boxes(self, turn: Turn, session: Session) -> list[Box]:
        """What may be ticked now; where a later turn has followed, nothing."""
        asked = await approvals.of_turn(self._store, turn.key)
        return await self._boxes(turn, session, asked, await self._means(turn))

    async def _boxes(self, turn: Turn, session: Session, asked: Sequence[Approval], means: Means) -> list[Box]:
        offered = [box for one in _open(asked) for box in _to_answer(one)]
        if turn.state is not TurnState.DONE:
            return offered + [boxes.STOP] * (turn.stop_requested is None)
        if turn.stop_requested == endings.TRANSFERRED:  # what is ticked elsewhere would be asked of another thread
            return []
        latest = await sessions.latest(self._store, session.thread)
        if latest is None or latest.key != turn.key:
            return []
        offered += [box for one in asked_of.answerable(asked) for box in boxes.to_answer_late(one.id)]
        return offered + boxes.at_the_end(turn.outcome or Outcome.FAILED, means)

    def _subagents(self, turn: Turn) -> tuple[int, int]:
        chosen = repo_config.load(turn.config).subagents
        return chosen.within(self._limits.subagents, self._limits.subagents_at_once)

    async def _findings(self, turn: Turn, session: Session) -> int:
        if turn.outcome is not Outcome.PUSHED or turn.part(OnFork).fork is not None or session.pull_number is None:
            return 0
        return len(await findings.still_open(self._store, session.repo_id, session.pull_number))

    async def _funds(self, turn: Turn) -> Funds:
        account = await budgets.account(self._store, turn.key.session, turn=turn.n, at=turn.finished_at)
        return funds.of(account, Terms.of(self._limits))

    async def _means(self, turn: Turn) -> Means:
        if turn.agent_error == funds.CEILING:
            return Means.CEILING
        return funds.of(await budgets.account(self._store, turn.key.session), Terms.of(self._limits)).means

    async def _place(self, turn: Turn) -> Place | None:
        if turn.state is not TurnState.QUEUED:
            return None
        waiting = await standing.standing(self._store)
        lately = await standing.lately(self._store, KNOWN_TURNS)
        caps = await choices.caps(self._store)
        return line.place(turn.key, waiting, lately, self._limits, self._clock(), caps=caps)


def _rendered(view: View) -> Rendered:
    still = render.comment(replace(view, now=view.state.pulse_at or view.turn.created_at, sample=None))
    return Rendered(render.comment(view), hashlib.sha256(still.encode()).hexdigest(), view.turn.state)


def _to_answer(one: Approval) -> list[Box]:
    if one.kind is Kind.PUSH:
        return boxes.to_let_go(one.id)
    if one.sha is not None:
        return boxes.to_adopt(one.id, one.sha[: on_forks.SHORT])
    return boxes.to_answer(one.id, plan=one.kind is Kind.PLAN)


def _open(asked: Sequence[Approval]) -> list[Approval]:
    """What waits for a yes or no."""
    return [one for one in asked if one.state is Standing.OPEN]
