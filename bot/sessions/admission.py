"""Starts waiting turns: order within a thread, limits per repository and overall, fair shares."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from bot.engine.protocol import Engine
from bot.live.board import LiveBoard
from bot.live.page import QueuePlace
from bot.loops import Loop
from bot.models import TurnState
from bot.sessions import turn_order
from bot.sessions.turn_order import Caps
from bot.settings import Limits
from bot.store import accounts, lists, operations, sessions
from bot.store.base import Store
from bot.store.sessions import Turn

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0
LOOK_SOON_SECONDS = 1.0
RECONCILE_SECONDS = 60.0
KNOWN_TURNS = 20


def choose(
    queued: Sequence[Turn], running: Sequence[Turn], limits: Limits, caps: Caps = turn_order.NO_CAPS
) -> list[Turn]:
    first: list[Turn] = next(turn_order.rounds(queued, running, limits, caps), [])
    return first[: max(0, limits.max_sessions - len(running))]


def settled(queued: Sequence[Turn], now: float, seconds: float) -> list[Turn]:
    """Leaves out what waits for further pushes. Nobody waits who has asked, nor behind what no person asked for."""
    asked = {turn.thread_id for turn in queued if not turn.is_for_a_push}
    return [turn for turn in queued if turn.thread_id in asked or not 0 <= now - turn.created_at < seconds]


class QueuePlaces:
    """The places of waiting turns, by the rules that start them."""

    def __init__(self, store: Store, limits: Limits, clock: Callable[[], float]) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    async def of(self, turn: Turn) -> QueuePlace | None:
        """None for a turn that does not wait."""
        if turn.state is not TurnState.QUEUED:
            return None
        waiting = await lists.open_turns(self._store)
        lately, caps = await lists.latest_seconds(self._store, KNOWN_TURNS), await accounts.session_caps(self._store)
        return turn_order.place(turn.key, waiting, lately, self._limits, self._clock(), caps=caps)


class Admission:
    """The loop around `choose`, and the reconciler: what the store says runs is run by the engine."""

    def __init__(self, store: Store, engine: Engine, board: LiveBoard, limits: Limits) -> None:
        self._store = store
        self._engine = engine
        self._board = board
        self._limits = limits
        self._next_reconcile = 0.0
        self.loop = Loop("admission", self._look, LOOK_SECONDS)

    async def _look(self) -> float:
        clock = asyncio.get_running_loop().time
        if clock() >= self._next_reconcile:
            await self.reconcile()
            self._next_reconcile = clock() + RECONCILE_SECONDS
        return LOOK_SOON_SECONDS if await self.round() else LOOK_SECONDS

    async def round(self) -> bool:
        """Returns whether something waits for time to pass."""
        running = await sessions.running(self._store)
        paused = await operations.paused_at(self._store) is not None
        queued = [] if paused else await sessions.queued(self._store)
        ready = settled(queued, self._store.now(), self._limits.settle_seconds)
        for turn in choose(ready, running, self._limits, await accounts.session_caps(self._store)):
            await sessions.start(self._store, turn.key)
            await self._engine.submit(turn.key, turn.thread_id)
        for turn in running:
            self._board.touch(turn.key)  # the elapsed time is news
        for turn in await sessions.queued(self._store):
            self._board.touch(turn.key)  # so is the place in the queue
        return len(ready) < len(queued)

    async def reconcile(self) -> None:
        turns = [(turn.key, turn.thread_id) for turn in await sessions.running(self._store)]
        if adopted := await self._engine.adopt(turns):
            log.info("turns were taken up again", extra={"count": adopted})
