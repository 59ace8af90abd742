"""Sums up a session for its page: the running turn's step, its times, its cost and what it uses. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot import funds
from bot.funds import BudgetTerms, Funds
from bot.live.state import LiveState
from bot.models import Step, TurnState
from bot.store.records import Turn
from bot.store.session_view import SessionView
from bot.web.pages import drawing, wording
from bot.web.pages.drawing import DrawnLine
from bot.words import endings, on_money
from sandbox.agents.events import Todo


@dataclass(frozen=True)
class StepRow:
    number: int
    words: str
    began_at: float | None
    seconds: float | None  # None while the step runs, and before
    now: bool = False


@dataclass(frozen=True)
class SessionOverview:
    """The state of the latest turn, with `look` for the facts of all turns."""

    look: SessionView | None = None
    headline: str = "There is nothing yet."
    live: bool = False
    turn: Turn | None = None
    steps: list[StepRow] = field(default_factory=list)
    todo: tuple[Todo, ...] = ()
    tool: str = ""  # the call that runs now
    unconfirmed: str = ""
    """In words, the money that may be added; empty if all is confirmed."""
    unconfirmed_usd: float = 0.0
    funds: Funds | None = None
    lines: list[DrawnLine] = field(default_factory=list)


def overview(look: SessionView, state: LiveState | None, terms: BudgetTerms) -> SessionOverview:
    if not look.turns:
        return SessionOverview(look)
    turn = look.turns[-1]
    stopping = " · stopping" if turn.stop_requested and turn.state is not TurnState.DONE else ""
    current = state.current if state and turn.state is TurnState.RUNNING else None
    return SessionOverview(
        look,
        headline=f"{wording.standing(turn.state, turn.outcome, turn.step)}{stopping}",
        live=turn.state is not TurnState.DONE,
        turn=turn,
        steps=steps(turn),
        todo=state.todo if state else (),
        tool=f"{current.name}: {current.title}" if current else "",
        unconfirmed_usd=open_usd if (open_usd := look.account.unconfirmed_usd) >= on_money.LEAST_SHOWN_USD else 0.0,
        unconfirmed=on_money.unconfirmed(look.account.unconfirmed_usd),
        funds=funds.of(look.account, terms),
        lines=_lines(look),
    )


def steps(turn: Turn) -> list[StepRow]:
    """List all seven steps; those skipped or still to come have no time."""
    times = {Step(name): at for name, at in turn.step_times.items()}
    if turn.started_at is not None:
        times.setdefault(Step.PREPARE, turn.started_at)  # the first step begins with the turn
    begun = sorted(((at, step) for step, at in times.items()), key=lambda one: (one[0], one[1].number))
    ends = {step: begun[place + 1][0] for place, (_, step) in enumerate(begun[:-1])}
    if begun and turn.finished_at is not None:
        ends[begun[-1][1]] = turn.finished_at
    rows = []
    for step in Step:
        at, end = times.get(step), ends.get(step)
        now = turn.state is TurnState.RUNNING and step is turn.step
        seconds = end - at if at is not None and end is not None else None
        rows.append(StepRow(step.number, endings.STEP_WORDS[step], at, seconds, now))
    return rows


def _lines(look: SessionView) -> list[DrawnLine]:
    """Draw all turns over their working time; for a running turn, up to the last known sample."""
    cpu = [(one.at, one.cpu_percent) for one in look.points]
    memory = [(one.at, one.memory_bytes / (1 << 20)) for one in look.points]
    money = drawing.summed(look.spent)
    known = max((at for series in (cpu, money) for at, _ in series[-1:]), default=0.0)
    begun = [(turn.started_at, turn.finished_at) for turn in look.turns if turn.started_at is not None]
    axis = drawing.Axis([(begin, max(begin, known) if end is None else end) for begin, end in begun])
    if money and axis.spans:
        money = [(axis.spans[0][0], 0.0), *money[1:], (axis.spans[-1][1], money[-1][1])]
    drawn = (
        drawing.line("Dollars for the model", money, "${:.4f}", axis, steps=True),
        drawing.line("CPU (100 % is one core)", cpu, "{:.0f} %", axis),
        drawing.line("Memory", memory, "{:.0f} MiB", axis),
    )
    return [one for one in drawn if one is not None]
