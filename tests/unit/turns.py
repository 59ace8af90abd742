"""A turn as the store gives it, for pure tests to vary."""

from __future__ import annotations

from bot.models import InstallationId, RepoId, SessionId, Step, TurnState
from bot.store.records import Turn

_GIVEN = {
    "session_id": SessionId("abcd1234"),
    "n": 1,
    "thread_id": "1#7",
    "repo_id": RepoId(1),
    "installation_id": InstallationId(1),
    "state": TurnState.RUNNING,
    "step": Step.WORK,
    "kind": "run",
    "asked_as": "run",
    "prompt": "fix this",
    "requester": "alice",
    "requester_id": 5,
    "number": 7,
    "source": "comment:1:2",
    "model": "claude-sonnet-5-5",
    "budget_usd": 0.0,
    "timeout_seconds": 3600.0,
    "resumed": False,
    "stream_offset": 0,
    "stream_skipped": 0,
    "attempts": 1,
    "created_at": 1000.0,
    "step_times": {},
    "payload": {},
}
TURN = Turn(**{**dict.fromkeys(Turn.__dataclass_fields__), **_GIVEN})  # type: ignore[arg-type]
