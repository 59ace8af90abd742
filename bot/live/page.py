"""Gathers what the live comment shows of a turn, from the store alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot.live import render
from bot.live.folds import Folds
from bot.live.state import LiveState
from bot.models import Thread, TurnKey, TurnState
from bot.store import gateway, machines, samples, sessions, switches
from bot.store.base import Store
from bot.store.gateway import Cost
from bot.store.samples import Sample
from bot.store.sessions import Session, Turn


@dataclass(frozen=True)
class View:
    """One look at a turn; rendering it is pure."""

    turn: Turn
    session: Session
    thread: Thread
    state: LiveState
    cost: Cost
    place: int
    """In the queue, from 1; 0 when it is not waiting."""
    files: list[dict[str, Any]]
    verified: list[dict[str, Any]]
    command: str
    now: float
    paused: bool = False
    """The operator lets nothing new begin."""
    sample: Sample | None = None
    """What the environment used last."""
    sandbox_usd: float = 0.0
    """What the environment's machine costs, beside the model."""


class Page:
    """The same stored state always gives the same text, but for the elapsed time of a turn that runs."""

    def __init__(
        self,
        store: Store,
        folds: Folds,
        *,
        command: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._folds = folds
        self._command = command
        self._clock = clock

    def marker(self, key: TurnKey) -> str:
        """What finds our comment again, whatever state it shows."""
        return f"<!-- forgehand:session={key.session} turn={key.n}"

    async def view(self, key: TurnKey) -> View:
        turn = await sessions.turn(self._store, key)
        return View(
            turn=turn,
            session=await sessions.session(self._store, key.session),
            thread=(await sessions.session(self._store, key.session)).thread,
            state=await self._folds.of(key),
            cost=await gateway.turn_cost(self._store, key),
            place=await sessions.place_in_queue(self._store, key) or 0,
            paused=await switches.paused_at(self._store) is not None,
            files=list(turn.files_changed or ()),
            verified=list(turn.verified or ()),
            command=self._command,
            now=self._clock(),
            sample=await samples.latest(self._store, key),
            sandbox_usd=(await machines.turn_cost(self._store, key)).usd,
        )

    async def render(self, key: TurnKey) -> tuple[str, bool]:
        """The comment, and whether this is its final form."""
        view = await self.view(key)
        return render.comment(view), view.turn.state is TurnState.DONE
