"""What a step answers: go on to another step, or end with an outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from bot.kinds.parts import TurnPart
from bot.models import Outcome, Step
from bot.store.sessions import Found


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
    def found(self) -> Found:
        return Found(self.ending, parts=self.parts, note=self.note)


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
    def found(self) -> Found:
        return Found((self.outcome, self.detail), self.session, self.parts)


Move = To | End


def said_with(move: Move, clean: Callable[[str], str]) -> Move:
    """The same with its words cleaned: those of an error may hold anything, and they are stored."""
    if isinstance(move, End):
        return replace(move, detail=clean(move.detail))
    if move.ending is None or move.ending[1] is None:
        return move
    return replace(move, ending=(move.ending[0], clean(move.ending[1])))
