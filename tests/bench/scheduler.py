"""`python -m tests.bench.scheduler`: hours of live comments on a virtual clock, by the real list and allowance.

Each session works without a break (news 2 s after what was last shown, turns of 30 to 90 minutes), all in one
installation, against the simulated GitHub's own limits: 80 and 500 new things a minute and an hour, edits counted
among them or not. A write takes a quarter of a second.
"""

from __future__ import annotations

import heapq
import random
import statistics
from dataclasses import dataclass, field

from bot.live.edit_quota import RULES, DueList, EditPace, EditQuota, Weight
from bot.models import SessionId, TurnKey
from bot.simulation.github.auth import Credential, Refusal
from bot.simulation.github.limits import Limits

HOUR = 3600.0
WRITE_SECONDS = 0.25
NEWS_SECONDS = 2.0
ROUND_SECONDS = 15.0
"""How often admission touches whatever runs."""
SAMPLE_SECONDS = 5.0
STAGGER_SECONDS = 1800.0
TURN_SECONDS = (1800.0, 5400.0)
EPOCH = 1_000_000.0
LEAST_SECONDS = 0.001  # a clock of that size has no finer steps
WHO = Credential()


@dataclass
class Shown:
    """One turn's comment: since when what it shows is no longer all, and what has become of it."""

    stale_since: float | None
    exists: bool = False
    begun: bool = False
    ended_at: float | None = None


@dataclass
class World:
    """One installation's hours."""

    sessions: int
    seconds: float
    edits_count: bool
    allowance: EditQuota
    seed: int = 1
    now: float = EPOCH
    refusals: int = 0
    writes: int = 0
    stale: list[float] = field(default_factory=list)
    finals: list[float] = field(default_factory=list)
    creations: list[float] = field(default_factory=list)
    paces: list[tuple[float, EditPace]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.github = Limits(lambda: self.now, edits_count=self.edits_count)
        self.due = DueList(lambda: self.now)
        self.shown: dict[TurnKey, Shown] = {}
        self.events: list[tuple[float, int, str, TurnKey]] = []
        self.count = 0

    def at(self, when: float, what: str, key: TurnKey) -> None:
        self.count += 1
        heapq.heappush(self.events, (when, self.count, what, key))

    def run(self) -> World:
        end = EPOCH + self.seconds
        for number in range(self.sessions):
            first = EPOCH + (self.random.uniform(0, STAGGER_SECONDS) if self.sessions > 1 else 0)
            self.at(first, "start", TurnKey(SessionId(f"{number:08}"), 1))
        self.at(EPOCH, "round", TurnKey(SessionId("none"), 0))
        self.at(EPOCH, "sample", TurnKey(SessionId("none"), 0))
        while self.now < end:
            pause = self.write_next() if self.due else float("inf")
            if pause > 0:
                self.now = min(self.now + max(pause, LEAST_SECONDS), self.events[0][0])
                self.happen()
        return self

    def happen(self) -> None:
        while self.events and self.events[0][0] <= self.now:
            _, _, what, key = heapq.heappop(self.events)
            getattr(self, what)(key)

    def start(self, key: TurnKey) -> None:
        self.shown[key] = Shown(self.now)
        self.due.add(key, Weight.PRESSING)
        self.at(self.now + self.random.uniform(*TURN_SECONDS), "finish", key)

    def news(self, key: TurnKey) -> None:
        turn = self.shown.get(key)
        if turn and turn.ended_at is None:
            turn.stale_since = turn.stale_since or self.now
            self.due.add(key)

    def finish(self, key: TurnKey) -> None:
        self.shown[key].ended_at = self.now
        self.due.add(key, Weight.FINAL)
        self.at(self.now + 1.0, "start", TurnKey(key.session, key.n + 1))

    def round(self, key: TurnKey) -> None:
        for running, turn in self.shown.items():
            if turn.ended_at is None:
                self.due.add(running)
        self.at(self.now + ROUND_SECONDS, "round", key)

    def sample(self, key: TurnKey) -> None:
        for turn in self.shown.values():
            if turn.ended_at is None:
                self.stale.append(self.now - turn.stale_since if turn.stale_since else 0.0)
        self.at(self.now + SAMPLE_SECONDS, "sample", key)

    def write_next(self) -> float:
        """As the board does; seconds to wait, or 0 when something was written or left out."""
        key, pause = self.due.next(self.now, self.allowance)
        if pause > 0:
            return pause
        crowded = self.due.sessions() > self.allowance.rule.most_sessions
        entry, turn = self.due.take(key), self.shown[key]
        if crowded and not entry.first and turn.begun:
            return 0.0
        try:
            (self.github.edit if turn.exists else self.github.create)(WHO)
        except Refusal as refusal:
            self.refusals += 1
            self.allowance = self.allowance.refused(self.now, float(refusal.headers["Retry-After"]))
            self.due.put_back(key, entry)
            return 0.0
        self.allowance = self.allowance.spent(self.now)
        self.due.began()
        if not self.paces or self.paces[-1][1] is not self.allowance.pace:
            self.paces.append((self.now - EPOCH, self.allowance.pace))
        self.written(key, turn, final=entry.final)
        return 0.0

    def written(self, key: TurnKey, turn: Shown, *, final: bool) -> None:
        self.writes += 1
        began = self.now
        self.now += WRITE_SECONDS
        if not turn.exists and turn.stale_since is not None:
            self.creations.append(self.now - turn.stale_since)
        turn.begun = turn.exists = True
        turn.stale_since = None
        if final and turn.ended_at is not None:
            self.finals.append(self.now - turn.ended_at)
            self.due.forget(key)
            del self.shown[key]
        elif turn.ended_at is None:
            self.at(began + self.random.expovariate(1 / NEWS_SECONDS), "news", key)
        self.happen()


def bound(sessions: int, per_second: float) -> tuple[float, float]:
    """The least that p50 and p95 of the age can be, where every edit is at the best moment: one keeps its comment fresh
    for so long after the first news that it does not show, and all of them have to add up to that share of all time."""
    return tuple(max(0.0, part * sessions / per_second - NEWS_SECONDS) for part in (0.5, 0.95))  # type: ignore[return-value]


def strict(now: float = EPOCH) -> EditQuota:
    """Of an installation that has been refused not long ago: nothing is tried."""
    return EditQuota(RULES[EditPace.STRICT].depth, now, pace_since=now, refused_at=now - 2 * HOUR)


def share(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def main() -> None:
    print("sessions  GitHub counts edits  pace      stale p50  p95      final p95   max   first p95  edits/h  refusals")
    for count in (1, 10, 50, 200):
        for edits_count, allowance in ((True, strict()), (False, EditQuota.full(EPOCH, EditPace.LENIENT))):
            world = World(count, 3 * HOUR, edits_count, allowance).run()
            crowd = count > allowance.rule.most_sessions
            fresh = "start and end only" if crowd else f"{_median(world):7.1f} s {share(world.stale, 0.95):6.1f} s"
            print(
                f"{count:8}  {'yes' if edits_count else 'no':19}  {allowance.pace:8}  {fresh:18} "
                f"{share(world.finals, 0.95):6.2f} s {max(world.finals, default=0):6.1f} s "
                f"{share(world.creations, 0.95):6.2f} s {world.writes / 3:8.0f} {world.refusals:9}"
            )
    print("\nLearning, from an installation's first day (10 sessions at work for 12 hours):")
    for edits_count in (True, False):
        world = World(10, 12 * HOUR, edits_count, EditQuota.full(EPOCH)).run()
        steps = ", ".join(f"{pace} at {at / HOUR:.1f} h" for at, pace in world.paces)
        worst = f"final p95 {share(world.finals, 0.95):.2f} s, max {max(world.finals):.1f} s"
        print(f"  edits {'count' if edits_count else 'do not count'}: {steps}; {world.refusals} refusals; {worst}")


def _median(world: World) -> float:
    return statistics.median(world.stale)


if __name__ == "__main__":
    main()
