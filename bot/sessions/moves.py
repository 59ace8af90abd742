"""Knows what a step answers: another step or an end, also when it is stopped or cannot succeed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from bot import funds
from bot.kinds.parts import TurnPart
from bot.live.state import REFUSED_STATUSES, LiveState
from bot.models import Outcome, Step, TurnKey
from bot.sessions.services import Services
from bot.store import gateway, sessions, spend
from bot.store.base import Store
from bot.store.sessions import StepFindings, Turn
from bot.words import endings
from sandbox.execution import RunState, RunStatus


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


KILLED_CODES = (-9, 137, 143)
NO_CREDIT = "Credit balance is too low"
"""The agent's client says so both at our limits and when the provider has no credit left for us."""


class RunTerms(Protocol):
    """What a run is judged by: a stored turn has it, and so has a run without a store."""

    @property
    def stop_requested(self) -> str | None: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def budget_usd(self) -> float: ...


@dataclass(frozen=True)
class RunVerdict:
    """`outcome` is None when the agent finished in its own time: what was made of it decides further on."""

    outcome: Outcome | None
    detail: str | None = None
    error: str | None = None


def judge(terms: RunTerms, status: RunStatus, state: LiveState, *, exhausted: bool) -> RunVerdict:
    """Judges in the order of what caused what: a wish to stop explains a kill, never the reverse."""
    if terms.stop_requested:
        return RunVerdict(Outcome.STOPPED, endings.stopped_by(terms.stop_requested))
    if status.timed_out:
        return RunVerdict(Outcome.TIMED_OUT, endings.timed_out(terms.timeout_seconds))
    if state.ended is not None and state.ended.ok:
        return RunVerdict(None)
    if exhausted or (state.ended is not None and state.ended.reason == "budget_exhausted"):
        return RunVerdict(Outcome.OVER_BUDGET, endings.over_budget(terms.budget_usd), funds.BUDGET)
    return _unfinished(status, state)


def has_no_credit(state: LiveState) -> bool:
    return state.ended is not None and not state.ended.ok and state.ended.text.startswith(NO_CREDIT)


def _unfinished(status: RunStatus, state: LiveState) -> RunVerdict:
    refused = state.refused_status or (state.ended.api_status if state.ended else None)
    if refused in REFUSED_STATUSES:
        return RunVerdict(Outcome.FAILED, endings.provider_refused(), f"provider_{refused}")
    if has_no_credit(state):
        return RunVerdict(Outcome.FAILED, endings.provider_out_of_credit(), "out_of_credit")
    if state.ended is not None:
        return RunVerdict(
            Outcome.FAILED, endings.agent_failed(state.ended.reason, state.ended.text), state.ended.reason
        )
    if status.state is RunState.LOST or status.exit_code in KILLED_CODES:
        return RunVerdict(Outcome.KILLED, endings.agent_killed(), "killed")
    return RunVerdict(Outcome.FAILED, endings.agent_left_no_result(status.exit_code), "no_result")


PROVIDERS = ("provider_401", "provider_403")
ANY_ERROR = "api_error"
OURS = ("field", "storm")
"""Reasons of the gateway that end a run whatever else its requests met."""


async def told_apart(store: Store, key: TurnKey, verdict: RunVerdict) -> RunVerdict:
    """A request that the gateway refused has reached no provider, and has no row of spending."""
    if verdict.error not in (*PROVIDERS, ANY_ERROR):
        return verdict
    reason = await gateway.last_refusal(store, key)
    if verdict.error == ANY_ERROR and reason not in OURS:
        return verdict
    if reason not in OURS and await spend.was_refused(store, key):
        return verdict
    if reason is None and verdict.error == "provider_403":
        return verdict
    ended = reason in (None, "ended")
    words = endings.token_ended() if ended else endings.gateway_refused(str(reason))
    return RunVerdict(Outcome.FAILED, words, "token_ended" if ended else f"gateway_{reason}")
