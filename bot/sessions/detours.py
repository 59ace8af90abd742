"""Where a turn goes when a step cannot go on: by way of whatever still saves the work, never past it."""

from __future__ import annotations

from bot.models import Outcome, Step
from bot.sessions.moves import End, Move, To
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings

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
