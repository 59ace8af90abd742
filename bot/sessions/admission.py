"""Orders waiting turns fairly, tells people their place, and begins turns as far as limits allow.

Admission starts the first wave of that order, so the place in a comment is the real one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from heapq import heapify, heappop, heappush
from itertools import chain
from statistics import median
from typing import Protocol, TypeVar

from bot.engine.protocol import Engine
from bot.live.board import LiveBoard
from bot.live.page import QueuePlace
from bot.loops import Loop
from bot.models import InstallationId, RepoId, TurnKey, TurnState
from bot.settings import Limits
from bot.store import accounts, operations, sessions
from bot.store.base import Store
from bot.store.sessions import Turn

log = logging.getLogger(__name__)

LEAST_KNOWN = 3
"""An estimate needs so many ended turns."""
LOOK_SECONDS = 15.0
LOOK_SOON_SECONDS = 1.0
RECONCILE_SECONDS = 60.0
KNOWN_TURNS = 20


class Waiting(Protocol):
    @property
    def thread_id(self) -> str: ...
    @property
    def repo_id(self) -> RepoId: ...
    @property
    def installation_id(self) -> InstallationId: ...
    @property
    def created_at(self) -> float: ...


class TurnInLine(Waiting, Protocol):
    @property
    def key(self) -> TurnKey: ...
    @property
    def state(self) -> TurnState: ...
    @property
    def started_at(self) -> float | None: ...


W = TypeVar("W", bound=Waiting)
Caps = Mapping[InstallationId, int]
"""The most turns at once of each account that has set a limit."""
NO_CAPS: Caps = {}


def waves(queued: Sequence[W], running: Sequence[Waiting], limits: Limits, caps: Caps = NO_CAPS) -> Iterator[list[W]]:
    """Yield first the turns that need only a free place, fairest first; then those that wait for a related turn.

    `queued` is oldest first. A later turn of a thread never overtakes an earlier one.
    """
    busy = Counter(turn.installation_id for turn in running)
    shares = busy.copy()
    threads = {turn.thread_id for turn in running}
    repos = Counter(turn.repo_id for turn in running)
    waiting, most = list(queued), max(1, limits.repo_sessions)

    def has_room(turn: W) -> bool:
        cap = caps.get(turn.installation_id)
        return repos[turn.repo_id] < most and (cap is None or busy[turn.installation_id] < max(1, cap))

    while waiting:
        taken: list[W] = []
        for turn in _fairest(_heads(waiting, threads), shares):
            if has_room(turn):  # it only gets less within a wave
                taken.append(turn)
                repos[turn.repo_id] += 1
                shares[turn.installation_id] += 1
                busy[turn.installation_id] += 1
        yield taken
        gone = {id(turn) for turn in taken}
        waiting = [turn for turn in waiting if id(turn) not in gone]
        threads, repos, busy = set(), Counter(), Counter()


def _heads(waiting: Sequence[W], busy: Set[str]) -> list[W]:
    """List the oldest turn of each thread without a running one."""
    first: dict[str, W] = {}
    for turn in waiting:
        first.setdefault(turn.thread_id, turn)
    return [turn for thread, turn in first.items() if thread not in busy]


def _fairest(heads: Sequence[W], shares: Mapping[InstallationId, int]) -> Iterator[W]:
    """Yield the oldest turn of the installation that has the least at each moment: `shares` grows meanwhile."""
    of_each: dict[InstallationId, list[tuple[float, int, W]]] = {}
    for at, turn in enumerate(heads):
        of_each.setdefault(turn.installation_id, []).append((turn.created_at, at, turn))
    for own in of_each.values():
        own.sort(key=lambda one: one[:2], reverse=True)  # the oldest is the last
    line = [(shares[one], *own[-1][:2], one) for one, own in of_each.items()]
    heapify(line)
    while line:
        *_, installation = heappop(line)
        own = of_each[installation]
        yield own.pop()[2]
        if own:
            heappush(line, (shares[installation], *own[-1][:2], installation))


def place(
    key: TurnKey,
    open_turns: Sequence[TurnInLine],
    lately: Sequence[float],
    limits: Limits,
    now: float,
    *,
    caps: Caps = NO_CAPS,
) -> QueuePlace | None:
    """Find the place of a turn in the line; None unless it waits."""
    running = [one for one in open_turns if one.state is TurnState.RUNNING]
    queued = [one for one in open_turns if one.state is TurnState.QUEUED]
    line = list(chain.from_iterable(waves(queued, running, limits, caps)))
    found = next((at for at, one in enumerate(line) if one.key == key), None)
    if found is None:
        return None
    mine = line[found]
    before = [one for one in running if one.thread_id == mine.thread_id]
    estimate = _estimate(found, before, running, lately, limits, now) if len(lately) >= LEAST_KNOWN else None
    return QueuePlace(found + 1, len(running), bool(before), estimate, len(lately))


def _estimate(
    ahead: int,
    before: Sequence[TurnInLine],
    running: Sequence[TurnInLine],
    lately: Sequence[float],
    limits: Limits,
    now: float,
) -> float:
    """Estimate by the median of ended turns: the rest of those that must end first, and a share of those ahead."""
    usual = median(lately)

    def rest(turn: TurnInLine) -> float:
        return max(0.0, usual - (now - (turn.started_at or now)))

    if before:
        return max(rest(one) for one in before)
    free = limits.max_sessions - len(running)
    if free > ahead or not running:
        return 0.0
    return sorted(rest(one) for one in running)[0] + usual * (ahead - max(0, free)) / limits.max_sessions


def choose(queued: Sequence[Turn], running: Sequence[Turn], limits: Limits, caps: Caps = NO_CAPS) -> list[Turn]:
    first: list[Turn] = next(waves(queued, running, limits, caps), [])
    return first[: max(0, limits.max_sessions - len(running))]


def without_fresh_pushes(queued: Sequence[Turn], now: float, seconds: float) -> list[Turn]:
    """Leave out turns that wait for further pushes. Turns that a person asked for never wait, nor do those behind."""
    asked = {turn.thread_id for turn in queued if not turn.is_for_a_push}
    return [turn for turn in queued if turn.thread_id in asked or not 0 <= now - turn.created_at < seconds]


class QueuePlaces:
    """The places of waiting turns, by the rules that start them."""

    def __init__(self, store: Store, limits: Limits, clock: Callable[[], float]) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock

    async def of(self, turn: Turn) -> QueuePlace | None:
        if turn.state is not TurnState.QUEUED:
            return None
        waiting = await sessions.open_turns(self._store)
        lately, caps = await sessions.latest_seconds(self._store, KNOWN_TURNS), await accounts.session_caps(self._store)
        return place(turn.key, waiting, lately, self._limits, self._clock(), caps=caps)


class Admission:
    """The loop around `choose`. It also lets the engine run every turn that the store calls running."""

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
        return LOOK_SOON_SECONDS if await self._start_turns() else LOOK_SECONDS

    async def _start_turns(self) -> bool:
        """Start turns, and return whether one waits only for time to pass."""
        running = await sessions.running(self._store)
        paused = await operations.paused_at(self._store) is not None
        queued = [] if paused else await sessions.queued(self._store)
        ready = without_fresh_pushes(queued, self._store.now(), self._limits.settle_seconds)
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
        if resubmitted := await self._engine.resubmit(turns):
            log.info("turns were taken up again", extra={"count": resubmitted})
