"""Knows what a step answers: another step or an end, also when it is stopped or cannot succeed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bot.kinds.parts import TurnPart
from bot.models import Outcome, Step
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import StepFindings, Turn
from bot.words import endings


@dataclass(frozen=True)
class To:
    """On to a step, with the columns of the turn that this step found out."""

    step: Step
    columns: dict[str, Any] = field(default_factory=dict)
    ending: tuple[Outcome, str | None] | None = None
    """How the turn will have ended, when that is clear while there is still something to bring home."""
    note: str | None = None
    """A word of ours among the agent's lines."""
    parts: tuple[TurnPart, ...] = ()
    """What it found out that only some turns have."""

    @property
    def found(self) -> StepFindings:
        return StepFindings(self.ending, parts=self.parts, note=self.note)


@dataclass(frozen=True)
class End:
    """Nothing further to bring home: settle with this outcome."""

    outcome: Outcome
    detail: str
    columns: dict[str, Any] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)
    """What the session knows from now on; in the same transaction, so that a repetition never half-knows it."""
    parts: tuple[TurnPart, ...] = ()

    @property
    def found(self) -> StepFindings:
        return StepFindings((self.outcome, self.detail), self.session, self.parts)


Move = To | End


def said_with(move: Move, clean: Callable[[str], str]) -> Move:
    """The same with its words cleaned: those of an error may hold anything, and they are stored."""
    if isinstance(move, End):
        return replace(move, detail=clean(move.detail))
    if move.ending is None or move.ending[1] is None:
        return move
    return replace(move, ending=(move.ending[0], clean(move.ending[1])))


_SAVED_BY = {Step.WORK: Step.COLLECT, Step.COLLECT: Step.COLLECT, Step.VERIFY: Step.PUBLISH, Step.PUBLISH: Step.PUBLISH}
"""Which step comes next for a turn that was ended in one; before `work` there is nothing to save."""


def is_to_stop(turn: Turn) -> bool:
    """Somebody asked, and it is not too late: nothing was said of its end, and no push has begun. One whose answer was
    lost may have arrived, which is found out by going on with it."""
    return bool(turn.stop_requested) and turn.outcome is None and turn.push_began is None


def stopped(turn: Turn) -> Move:
    assert turn.stop_requested is not None
    words = endings.stopped_by(turn.stop_requested)
    if turn.step not in _SAVED_BY:
        return End(Outcome.STOPPED, words)
    return To(_SAVED_BY[turn.step], ending=(Outcome.STOPPED, words))


async def failed(services: Services, turn: Turn, outcome: Outcome, words: str) -> Move:
    """A step that will not succeed: on to the next that saves something. What was pushed already is told as pushed."""
    if turn.step in (Step.WORK, Step.VERIFY):
        return To(_SAVED_BY[turn.step], ending=(outcome, words))
    now = await sessions.turn(services.store, turn.key)
    if turn.step is Step.PUBLISH and now.commit_sha is not None and now.outcome is None:
        branch = (await sessions.session(services.store, turn.key.session)).branch
        return End(Outcome.PUSHED, endings.pull_not_opened(branch or "", words))
    return End(outcome, words)
