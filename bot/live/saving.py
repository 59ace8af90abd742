"""A turn that was stopped while its work takes long to be saved: it is shown as stopped before all is done for it."""

from __future__ import annotations

from bot.models import Outcome, Step, TurnState
from bot.store.sessions import Turn
from bot.words import endings

PATIENCE_SECONDS = 1.0
"""Most work is saved by then, and the comment can say at once where."""
LONGER_PATIENCE_SECONDS = 6.0
"""Where the agent itself had to be ended first: then nothing has been brought home yet."""
_SAVED_IN = (Step.COLLECT, Step.VERIFY, Step.PUBLISH, Step.SETTLE)


def is_said(turn: Turn, now: float) -> bool:
    """Whether its end is shown though it goes on. True once, it stays true until it is done."""
    if turn.state is TurnState.DONE or turn.outcome is not Outcome.STOPPED or turn.stop_at is None:
        return False
    return turn.step in _SAVED_IN and now >= from_when(turn)


def from_when(turn: Turn) -> float:
    assert turn.stop_at is not None
    had_ended = turn.step_times.get(Step.COLLECT, turn.stop_at + 1) <= turn.stop_at
    return turn.stop_at + (PATIENCE_SECONDS if had_ended else LONGER_PATIENCE_SECONDS)


def words(turn: Turn) -> str:
    return endings.being_saved(rescue_ref(turn))


def rescue_ref(turn: Turn) -> str:
    """Where work goes that was cut short: a ref that is no branch."""
    return f"refs/forgehand/rescue/{turn.key.session}-{turn.key.n}"
