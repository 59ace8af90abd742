"""How a run of the agent ended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.live.state import LiveState
from bot.models import Outcome
from bot.sessions.moves import judge
from sandbox.agents.events import AgentEnded, AgentEvent, Retrying
from sandbox.execution import RunState, RunStatus
from tests.unit.turns import TURN

DONE = AgentEnded(True, "completed", "Done.")
API_ERROR = AgentEnded(False, "api_error", "API Error", api_status=400)


def status(exit_code: int | None = 0, state: RunState = RunState.EXITED, timed_out: bool = False) -> RunStatus:
    given: dict[str, Any] = {**dict.fromkeys(RunStatus.__dataclass_fields__), "state": state}
    return RunStatus(**{**given, "exit_code": exit_code, "timed_out": timed_out})


def folded(*events: AgentEvent) -> LiveState:
    state = LiveState()
    for event in events:
        state.apply(event, 0.0)
    return state


@pytest.mark.parametrize(
    ("stop", "run", "events", "exhausted", "outcome"),
    [
        (None, status(), [DONE], False, None),
        (None, status(), [DONE], True, None),
        ("alice", status(143), [], False, Outcome.STOPPED),
        ("alice", status(), [DONE], False, Outcome.STOPPED),
        (None, status(143, timed_out=True), [], False, Outcome.TIMED_OUT),
        (None, status(1), [API_ERROR], True, Outcome.OVER_BUDGET),
        (None, status(1), [AgentEnded(False, "budget_exhausted", "")], False, Outcome.OVER_BUDGET),
        (None, status(1), [API_ERROR], False, Outcome.FAILED),
        (None, status(143), [Retrying(1, 401, "auth", 1)], False, Outcome.FAILED),
        (None, status(137), [], False, Outcome.KILLED),
        (None, status(None, RunState.LOST), [], False, Outcome.KILLED),
        (None, status(0), [], False, Outcome.FAILED),
        (None, status(1), [AgentEnded(False, "max_turns", "")], False, Outcome.FAILED),
    ],
)
def test_what_caused_what(
    stop: str | None, run: RunStatus, events: list[AgentEvent], exhausted: bool, outcome: Outcome | None
) -> None:
    verdict = judge(replace(TURN, stop_requested=stop), run, folded(*events), exhausted=exhausted)
    assert verdict.outcome is outcome
    assert (verdict.detail is None) == (outcome is None)
