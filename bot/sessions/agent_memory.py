"""Keeps the agent's memory of a session on the host, brings it back, and goes on without it if that fails."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import uuid
from pathlib import Path

import msgspec

from bot.agent import prompt
from bot.kinds.shape import AgentReading
from bot.live.state import LiveState
from bot.models import Step
from bot.sessions.moves import Move, To
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.words import endings
from sandbox.execution import ExecutionEnvironment, RunState, RunStatus

log = logging.getLogger(__name__)

MEMORY_REFUSED = "memory_refused"
_NOT_KNOWN = "No conversation found"


def transcript_name(agent_session: str) -> str:
    return f"transcripts/{agent_session}.jsonl"


async def keep_transcript(services: Services, agent_session: str, environment: ExecutionEnvironment) -> None:
    """Keep whole lines only: the agent may be in the middle of one."""
    data = await environment.transcript(agent_session)
    if data and (whole := data[: data.rfind(b"\n") + 1]):
        name = transcript_name(agent_session)
        await asyncio.to_thread(_write, services.files.path(name), whole)
        await services.files.save(name)


async def restore_transcript(services: Services, agent_session: str, environment: ExecutionEnvironment) -> bool:
    """Return whether there was a memory to bring back, so that the agent can be resumed."""
    path = await services.files.fetch(transcript_name(agent_session))
    if path is None:
        return False
    data = await asyncio.to_thread(path.read_bytes)
    if not await asyncio.to_thread(_is_whole, data):  # the agent would refuse to start with it
        return False
    await environment.restore_transcript(agent_session, data)
    return True


def _is_whole(data: bytes) -> bool:
    """Tell whether these are lines of JSON, at least one of them, the last one perhaps cut off."""
    lines = data.split(b"\n")[:-1] or [data]
    try:
        return all(isinstance(json.loads(line), dict) for line in lines if line.strip()) and bool(data.strip())
    except (ValueError, RecursionError):
        return False


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_suffix(".partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def is_memory_refused(turn: Turn, status: RunStatus, state: LiveState) -> bool:
    """Tell whether a resumed run ended by itself before it said a word."""
    if not turn.resumed or turn.agent_error == MEMORY_REFUSED or turn.stop_requested or turn.outcome is not None:
        return False
    if status.state is not RunState.EXITED or not status.exit_code or status.timed_out or status.stopped:
        return False
    told = state.ended is not None and any(one.startswith(_NOT_KNOWN) for one in state.ended.errors)
    return told or not state.model


async def begin_without_memory(services: Services, turn: Turn) -> Move:
    """Begin a new session of the agent: a known one cannot begin again. The operator keeps the refused memory."""
    session = await sessions.session(services.store, turn.key.session)
    assert session.agent_session_id is not None
    log.warning("the agent does not take its memory back", extra={"turn": turn.key.workflow_id})
    name = transcript_name(session.agent_session_id)
    if (path := await services.files.fetch(name)) is not None:
        await asyncio.to_thread(path.replace, path.with_suffix(".refused"))
        await services.files.forget(name)
    fresh = str(uuid.uuid5(uuid.NAMESPACE_URL, f"forgehand:{turn.key.session}:{turn.key.n}"))
    await sessions.update_session(services.store, turn.key.session, agent_session_id=fresh)
    columns = {"resumptions": turn.resumptions + 1, "stream_offset": 0, "agent_error": MEMORY_REFUSED}
    return To(Step.FURNISH, columns, note=endings.memory_refused())


async def summary_instead(services: Services, turn: Turn) -> tuple[AgentReading, ...]:
    """Add a summary of the earlier conversation to the turn's prompt, and a note for its readers."""
    turns = await sessions.turns_of(services.store, turn.key.session)
    earlier = [one for one in turns if one.n < turn.n and one.agent_result]
    read = turn.part(AgentReading)
    if not earlier or read.context is None:
        return ()
    context = prompt.with_summary(read.context, [(one.prompt, one.agent_result or "") for one in earlier])
    return (msgspec.structs.replace(read, context=context, notes=(*read.notes, endings.forgot(len(earlier)))),)
