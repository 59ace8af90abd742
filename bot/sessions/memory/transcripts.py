"""The agent's own memory of a session: kept on the host after every turn, brought back into the next environment."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

from bot.sessions.services import Services
from sandbox.execution import ExecutionEnvironment


def _path(services: Services, agent_session: str) -> Path:
    return services.settings.data_dir / "transcripts" / f"{agent_session}.jsonl"


async def keep(services: Services, agent_session: str, environment: ExecutionEnvironment) -> None:
    """Whole lines only: the agent may be in the middle of one."""
    data = await environment.transcript(agent_session)
    if data and (whole := data[: data.rfind(b"\n") + 1]):
        await asyncio.to_thread(_write, _path(services, agent_session), whole)


async def restore(services: Services, agent_session: str, environment: ExecutionEnvironment) -> bool:
    """Whether there was something to bring back, so that the agent can be resumed."""
    path = _path(services, agent_session)
    if not path.is_file():
        return False
    data = await asyncio.to_thread(path.read_bytes)
    if not await asyncio.to_thread(_is_whole, data):  # the agent would refuse to start with it
        return False
    await environment.restore_transcript(agent_session, data)
    return True


async def set_aside(services: Services, agent_session: str) -> None:
    """It is not brought back any more; kept for who wants to know why."""
    path = _path(services, agent_session)
    if path.is_file():
        await asyncio.to_thread(path.replace, path.with_suffix(".refused"))


def _is_whole(data: bytes) -> bool:
    """Lines of JSON, the last one perhaps cut off; at least one of them."""
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
