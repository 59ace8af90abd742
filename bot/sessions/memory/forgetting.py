"""A memory that the agent's own program does not take back: left aside, once, and the turn begun anew without it."""

from __future__ import annotations

import logging
import uuid

from bot.live.state import LiveState
from bot.models import Step
from bot.sessions.memory import transcripts
from bot.sessions.moves import Move, To
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.execution import RunState, RunStatus

log = logging.getLogger(__name__)

REFUSED = "memory_refused"
_NOT_KNOWN = "No conversation found"


def is_refused(turn: Turn, status: RunStatus, state: LiveState) -> bool:
    """It was to be resumed, and has ended by itself before it said a word."""
    if not turn.resumed or turn.agent_error == REFUSED or turn.stop_requested or turn.outcome is not None:
        return False
    if status.state is not RunState.EXITED or not status.exit_code or status.timed_out or status.stopped:
        return False
    told = state.ended is not None and any(one.startswith(_NOT_KNOWN) for one in state.ended.errors)
    return told or not state.model


async def begin_anew(services: Services, turn: Turn) -> Move:
    """In a session of the agent's that has no past: one that is known already cannot be begun again."""
    session = await sessions.session(services.store, turn.key.session)
    assert session.agent_session_id is not None
    log.warning("the agent does not take its memory back", extra={"turn": turn.key.workflow_id})
    await transcripts.set_aside(services, session.agent_session_id)
    fresh = str(uuid.uuid5(uuid.NAMESPACE_URL, f"forgehand:{turn.key.session}:{turn.key.n}"))
    await sessions.update_session(services.store, turn.key.session, agent_session_id=fresh)
    columns = {"resumptions": turn.resumptions + 1, "stream_offset": 0, "agent_error": REFUSED}
    return To(Step.FURNISH, columns, note=endings.memory_refused())
