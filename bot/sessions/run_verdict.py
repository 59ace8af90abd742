"""Judges how a run of the agent ended, from what is durable, and tells the provider's refusal from the gateway's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from bot import funds
from bot.live.state import REFUSED_STATUSES, LiveState
from bot.models import Outcome, TurnKey
from bot.store import gateway, spend
from bot.store.base import Store
from bot.words import endings
from sandbox.execution import RunState, RunStatus

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
