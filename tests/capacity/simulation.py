"""A day of deliveries and turns on a virtual clock, by the product's own rules of admission and of edits.

A turn waits for its place, then for a machine; it works, has its work checked in a second machine if one is free, opens
a pull request and ends. What it asks of GitHub may be refused, and is tried again as the product does.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from bot.models import InstallationId
from bot.sessions.admission import LOOK_SECONDS, waves
from bot.sessions.declared_checks import ROOM_SECONDS
from bot.sessions.flow import MOST_TRIES_WITH_WORK
from bot.settings import Limits
from tests.capacity import figures
from tests.capacity.day import DAY, Asked, Plan, asked, busy, sizes
from tests.capacity.figures import DELIVERY, IDLE_SECOND, REQUEST, SECOND, TURN, Cost
from tests.capacity.github import Account

MINUTE = 60.0
LEAST_SECONDS = 0.05
"""A quota fills by fractions that a clock of this size cannot tell apart."""
LOOKED_AT = 100
"""Admission judges only the oldest ones here, because its time grows with the square of those that wait."""
EPOCH = 10 * DAY
"""The quota takes a time of 0 for never."""


@dataclass
class Load:
    """What a minute used, in units per second."""

    statements: float = 0.0
    writes: float = 0.0
    log_bytes: float = 0.0
    cpu_seconds: float = 0.0
    leader_seconds: float = 0.0
    """Of the leader alone: deliveries and admission."""
    gateway_bytes: float = 0.0
    creations: float = 0.0

    def add(self, cost: Cost, count: float) -> None:
        """Add so many of a thing that happened in this minute."""
        self.statements += cost.statements * count / MINUTE
        self.writes += cost.writes * count / MINUTE
        self.log_bytes += cost.log_bytes * count / MINUTE
        self.cpu_seconds += cost.cpu_seconds * count / MINUTE


@dataclass
class Waits:
    """Seconds that each turn waited."""

    place: list[float] = field(default_factory=list)
    machine: list[float] = field(default_factory=list)
    comment: list[float] = field(default_factory=list)
    """From the command to the live comment."""
    publish: list[float] = field(default_factory=list)
    """From the end of the work to the pull request."""
    final: list[float] = field(default_factory=list)
    """From the end of the turn to the final comment."""


class Simulation:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = EPOCH
        self.accounts = [Account(count, lambda: self.now) for count in sizes(plan)]
        self.waits = Waits()
        self.minutes: list[Load] = []
        self.turns = self.ended = self.failed = self.unchecked = 0
        self.most_running = self.most_machines = self.most_waiting = 0
        self.machine_seconds = 0.0
        self._limits = Limits(max_sessions=plan.turns, repo_sessions=plan.repo_turns)
        accounts = map(InstallationId, range(plan.accounts))
        self._caps = dict.fromkeys(accounts, plan.account_turns) if plan.account_turns else {}
        self._queued: list[Asked] = []
        self._running: dict[str, Asked] = {}
        self._running_of: list[dict[str, Asked]] = [{} for _ in self.accounts]
        self._machines = 0
        self._line: deque[tuple[float, Asked]] = deque()
        self._next_creation = 0.0
        self._look_at = 0.0
        self._minute = Load()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def run(self) -> Simulation:
        """Run the day, and go on until all that was asked for has ended."""
        self._next(asked(self.plan))
        self._at(MINUTE, self._tick)
        while self._events:
            self.now, _, event = heapq.heappop(self._events)
            event()
        return self

    def _at(self, seconds: float, event: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, event))

    def _next(self, demand: Iterator[Asked]) -> None:
        """Wait for what is asked for next."""
        if (turn := next(demand, None)) is not None:
            self._at(EPOCH + turn.created_at - self.now, partial(self._arrive, turn, demand))

    def _arrive(self, turn: Asked, demand: Iterator[Asked]) -> None:
        self._ask(turn)
        self._next(demand)

    def _account(self, turn: Asked) -> Account:
        return self.accounts[turn.installation_id]

    # admission

    def _ask(self, turn: Asked) -> None:
        self.turns += 1
        self._minute.add(TURN, 1)
        self._queued.append(turn)
        self._comment(turn)
        if len(self._queued) == 1:
            self._look()
        else:
            self._look_soon()
        self.most_waiting = max(self.most_waiting, len(self._queued))

    def _look_soon(self) -> None:
        """Look at the line once in a while, however much happens."""
        if self._queued and self._look_at <= self.now:
            self._look_at = self.now + LOOK_SECONDS
            self._at(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._minute.leader_seconds += figures.ADMISSION.value * len(self._queued) ** 2 / MINUTE
        room = self.plan.turns - len(self._running)
        if room > 0:
            line = self._queued[:LOOKED_AT]
            accounts = {one.installation_id for one in line}
            running = [
                one for account in accounts for one in self._running_of[account].values()
            ]  # others do not matter
            for turn in next(waves(line, running, self._limits, self._caps), [])[:room]:
                self._queued.remove(turn)
                self._start(turn)
        self._look_soon()

    def _start(self, turn: Asked) -> None:
        self._running[turn.thread_id] = self._running_of[turn.installation_id][turn.thread_id] = turn
        self._account(turn).at_work += 1
        self.most_running = max(self.most_running, len(self._running))
        self.waits.place.append(self.now - EPOCH - turn.created_at)
        self._line.append((self.now, turn))
        self._fill()

    # machines

    def _fill(self) -> None:
        """Give machines to those that have waited longest."""
        while self._line and self._machines < self.plan.machines:
            since, turn = self._line.popleft()
            wait = self._create_machine()
            self.waits.machine.append(self.now + wait - since)
            self._at(wait + figures.FURNISH.value + turn.work_seconds, partial(self._worked, turn))

    def _create_machine(self) -> float:
        """Take a place in the plan; return the seconds until the pace of the plan permits the creation."""
        self._machines += 1
        self.most_machines = max(self.most_machines, self._machines)
        self._minute.creations += 1 / MINUTE
        begin = max(self.now, self._next_creation)
        self._next_creation = begin + 1 / self.plan.creations
        return begin - self.now

    def _give_machine(self) -> None:
        self._machines -= 1
        self._fill()

    # a turn

    def _worked(self, turn: Asked) -> None:
        if not turn.checked:
            self._publish(turn)
        elif self._machines < self.plan.machines:
            wait = self._create_machine()
            self._at(wait + figures.CHECK.value, partial(self._checked, turn))
        else:
            self.unchecked += 1
            self._at(ROOM_SECONDS + figures.CHECK.value, partial(self._publish, turn))

    def _checked(self, turn: Asked) -> None:
        self._give_machine()
        self._publish(turn)

    def _publish(self, turn: Asked, since: float | None = None, tries: int = 0) -> None:
        account, since = self._account(turn), self.now if since is None else since
        wait = account.ask(int(figures.API_REQUESTS.value - figures.CONTENT.value)) if not tries else 0.0
        wait = wait or account.create()
        if wait and tries + 1 < MOST_TRIES_WITH_WORK:
            self._at(wait, partial(self._publish, turn, since, tries + 1))
            return
        self.failed += wait > 0
        self.waits.publish.append(self.now - since)
        self._end(turn)

    def _end(self, turn: Asked) -> None:
        del self._running[turn.thread_id], self._running_of[turn.installation_id][turn.thread_id]
        self._account(turn).at_work -= 1
        self._comment(turn, final=True)
        self.ended += 1
        self._give_machine()
        self._look_soon()

    # live comments: one writer for each account, and at most one entry for each turn

    def _comment(self, turn: Asked, *, final: bool = False) -> None:
        account, thread = self._account(turn), turn.thread_id
        if final and (thread in account.due or thread in account.finals):
            return
        for line in (account.due, account.finals):
            line.pop(thread, None)
        (account.finals if final else account.due)[thread] = self.now
        if len(account.due) + len(account.finals) == 1:
            self._write(turn.installation_id)

    def _write(self, installation: InstallationId) -> None:
        account = self.accounts[installation]
        while line := account.finals or account.due:
            final = line is account.finals
            thread, since = next(iter(line.items()))
            wait = account.quota.wait_seconds(self.now, first=True) or (
                account.edit_once() if final else account.create()
            )
            if wait:
                self._at(max(LEAST_SECONDS, wait), partial(self._write, installation))
                return
            del line[thread]
            (self.waits.final if final else self.waits.comment).append(self.now - since)

    # every minute

    def _tick(self) -> None:
        minute, working = self._minute, len(self._running) - len(self._line)
        minute.add(SECOND, working * MINUTE)
        requests = working * MINUTE / figures.REQUEST_EVERY.value
        minute.add(REQUEST, requests)
        minute.gateway_bytes += requests * (figures.CONTEXT_BYTES.value + figures.ANSWER_BYTES.value) / MINUTE
        minute.add(IDLE_SECOND, self.plan.replicas * MINUTE)
        at = self.now - EPOCH
        deliveries = self.plan.repositories * figures.DELIVERIES.value * busy(at) * 100 / sum(figures.BUSY) / 60
        minute.add(DELIVERY, deliveries if at <= DAY else 0)
        minute.leader_seconds += deliveries * DELIVERY.cpu_seconds / MINUTE
        self.machine_seconds += self._machines * MINUTE
        for account in self.accounts:
            account.edit(MINUTE)
        self.minutes.append(minute)
        self._minute = Load()
        if at < DAY or self._running or self._queued:
            self._at(MINUTE, self._tick)

    @property
    def deliveries(self) -> float:
        return self.plan.repositories * figures.DELIVERIES.value


def peak(minutes: list[Load], of: Callable[[Load], float]) -> float:
    """The busiest ten minutes: single minutes are noise."""
    values = [of(one) for one in minutes]
    return max(sum(values[at : at + 10]) / 10 for at in range(max(1, len(values) - 9)))
