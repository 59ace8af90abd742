"""Which waiting turn may run next: order within a thread, limits per repository and overall, fair shares."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from bot.engine.protocol import Engine
from bot.live import line
from bot.live.board import LiveBoard
from bot.live.line import Caps
from bot.loops import Loop
from bot.settings import Limits
from bot.store import choices, sessions, switches
from bot.store.base import Store
from bot.store.sessions import Turn

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0
LOOK_SOON_SECONDS = 1.0
RECONCILE_SECONDS = 60.0


def choose(queued: Sequence[Turn], running: Sequence[Turn], limits: Limits, caps: Caps = line.NO_CAPS) -> list[Turn]:
    """Those that may start now, in order; `queued` is oldest first."""
    first: list[Turn] = next(line.rounds(queued, running, limits, caps), [])
    return first[: max(0, limits.max_sessions - len(running))]


def settled(queued: Sequence[Turn], now: float, seconds: float) -> list[Turn]:
    """Without what waits for further pushes. Nobody waits who has asked, nor behind what no person asked for."""
    asked = {turn.thread_id for turn in queued if not turn.is_for_a_push}
    return [turn for turn in queued if turn.thread_id in asked or not 0 <= now - turn.created_at < seconds]


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
        """Whether something waits for time to pass."""
        running = await sessions.running(self._store)
        paused = await switches.paused_at(self._store) is not None
        queued = [] if paused else await sessions.queued(self._store)
        ready = settled(queued, self._store.now(), self._limits.settle_seconds)
        for turn in choose(ready, running, self._limits, await choices.caps(self._store)):
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
