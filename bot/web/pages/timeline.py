"""A session's timeline: in each stretch of its working time the calls, failures, checks, dollars and words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from bot.proposal import verification
from bot.store.records import Turn
from bot.web.pages.conversation import ConversationEntry
from bot.words import on_money

COLUMNS = 120
STEP = 5
"""The width of a column; all are WIDTH."""
WIDTH = COLUMNS * STEP
FLOOR = 40
"""Bars stand on it. Below it are the checks."""
TALLEST = 36


@dataclass(frozen=True)
class Clock:
    """Working time: the spans of the turns, one behind the other."""

    spans: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    """By turn: (begin, seconds, seconds of the turns before it)."""
    seconds: float = 0.0

    @classmethod
    def of(cls, turns: Sequence[Turn], known: float) -> Clock:
        spans: dict[int, tuple[float, float, float]] = {}
        before = 0.0
        for turn in turns:
            if turn.started_at is None:
                continue
            end = turn.finished_at if turn.finished_at is not None else max(known, turn.started_at)
            spans[turn.n] = turn.started_at, end - turn.started_at, before
            before += end - turn.started_at
        return cls(spans, before)

    def gone(self, at: float, turn: int) -> float:
        begin, seconds, before = self.spans.get(turn, (at, 0.0, 0.0))
        return before + min(max(at - begin, 0.0), seconds)

    def moment(self, gone: float) -> float:
        """Return the time of day after so many seconds of work."""
        at = 0.0
        for begin, seconds, before in self.spans.values():
            if gone >= before:
                at = begin + min(gone - before, seconds)
        return at

    def column(self, at: float, turn: int) -> int:
        share = self.gone(at, turn) / self.seconds if self.seconds > 0 else 0.0
        return min(int(share * COLUMNS), COLUMNS - 1)

    def column_of(self, at: float) -> int:
        """Find the turn too; a moment between two turns is at their seam."""
        turn = max((n for n, (begin, _, _) in self.spans.items() if begin <= at), default=0)
        return self.column(at, turn)


@dataclass(frozen=True)
class Timeline:
    """Paths for an SVG of WIDTH pixels, and the same in words."""

    legend: dict[str, str]
    """By what it shows: in words."""
    paths: dict[str, str]
    """By what it shows: called, failed, good, bad, heard, seam, spent."""
    seconds: float
    ids: Sequence[str]
    """For each column, the entry at which it begins; empty if there is none."""
    moments: Sequence[float]
    """For each column, when it begins."""


class _Columns:
    """Counts what happened in each stretch."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.called, self.failed, self.good, self.bad, self.heard = (Counter[int]() for _ in range(5))
        self.firsts = [""] * COLUMNS

    def add(self, entry: ConversationEntry) -> None:
        column = self.clock.column(entry.at, entry.turn)
        self.firsts[column] = self.firsts[column] or entry.id
        self.called[column] += entry.kind == "tool"
        self.failed[column] += entry.failed
        self.heard[column] += entry.kind == "heard"
        if entry.judges and entry.ok is not None:
            (self.good if entry.ok else self.bad)[column] += 1

    def legend(self, usd: float) -> dict[str, str]:
        failed, checks, bad = self.failed.total(), self.good.total() + self.bad.total(), self.bad.total()
        words = {
            "called": _counted(self.called.total(), "call"),
            "failed": f"{failed:,} failed" if failed else "",
            "good": _counted(checks, "check"),
            "bad": _counted(bad, "check that failed", "checks that failed"),
            "spent": on_money.dollars(usd) if usd else "",
            "heard": f"people spoke {_counted(self.heard.total(), 'time')}",
        }
        return {name: shown for name, shown in words.items() if shown}


def timeline(
    entries: Sequence[ConversationEntry], turns: Sequence[Turn], spent: Sequence[tuple[float, float]]
) -> Timeline:
    known = max([entry.at for entry in entries[-1:]] + [at for at, _ in spent[-1:]], default=0.0)
    clock = Clock.of(turns, known)
    columns = _Columns(clock)
    for entry in entries:
        columns.add(entry)
    for at, passed in _verified(turns):
        (columns.good if passed else columns.bad)[clock.column_of(at)] += 1
    for turn, (begin, _, _) in clock.spans.items():
        columns.heard[clock.column(begin, turn)] += 1  # each turn begins with somebody's words
    seams = [clock.column(begin, n) for n, (begin, _, before) in clock.spans.items() if before]
    paths = {
        "seam": _ticks(seams, 0, FLOOR),
        "heard": _ticks(columns.heard, 0, FLOOR),
        "called": _bars(columns.called, columns.called),
        "failed": _bars(columns.failed, columns.called),
        "spent": _spent(clock, spent),
        "good": _ticks(columns.good, FLOOR + 3, 6),
        "bad": _shares(columns.bad, columns.good),
    }
    return Timeline(
        legend=columns.legend(sum(usd for _, usd in spent)),
        paths={name: path for name, path in paths.items() if path},
        seconds=clock.seconds,
        ids=_begins(columns.firsts),
        moments=[clock.moment(clock.seconds * column / COLUMNS) for column in range(COLUMNS)],
    )


def _verified(turns: Sequence[Turn]) -> list[tuple[float, bool]]:
    """List the declared checks of all turns: when they ran, and whether they passed."""
    found: list[tuple[float, bool]] = []
    for turn in turns:
        at = turn.step_times.get("verify", turn.finished_at or 0.0)
        found += [(at, check.passed) for check in verification.load(turn.verified or ())]
    return found


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}" if number else ""


def _middle(column: int) -> float:
    return column * STEP + STEP / 2


def _bars(heights: Counter[int], of: Counter[int]) -> str:
    most = max([*of.values(), *heights.values()], default=0)
    shown = ((column, max(height / most * TALLEST, 3)) for column, height in sorted(heights.items()) if height)
    return "".join(f"M{_middle(column):g} {FLOOR}v-{height:.0f}" for column, height in shown)


def _ticks(columns: Counter[int] | Sequence[int], top: int, height: int) -> str:
    counted = Counter(columns)
    return "".join(f"M{_middle(column):g} {top}v{height}" for column in sorted(counted) if counted[column])


def _shares(some: Counter[int], others: Counter[int]) -> str:
    """Draw over the ticks of the others, as high as these are many."""
    highs = {column: max(6 * count / (count + others[column]), 2) for column, count in sorted(some.items()) if count}
    return "".join(f"M{_middle(column):g} {FLOOR + 9}v-{high:.0f}" for column, high in highs.items())


def _spent(clock: Clock, spent: Sequence[tuple[float, float]]) -> str:
    """Draw the sum as a stair."""
    totals = list(accumulate(usd for _, usd in spent))
    if not totals or totals[-1] <= 0:
        return ""
    highest: dict[int, float] = {}
    for (at, _), total in zip(spent, totals, strict=True):
        highest[clock.column_of(at)] = total
    stairs = (f"H{_middle(column):g}V{FLOOR - total / totals[-1] * TALLEST:.1f}" for column, total in highest.items())
    return f"M0 {FLOOR}{''.join(stairs)}H{WIDTH}"


def _begins(firsts: list[str]) -> list[str]:
    """Let an empty column begin at the next entry, and those behind the last one at that."""
    known = ""
    for column in reversed(range(COLUMNS)):
        known = firsts[column] = firsts[column] or known
    for column in range(COLUMNS):
        known = firsts[column] = firsts[column] or known
    return firsts
