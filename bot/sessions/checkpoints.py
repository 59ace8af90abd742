"""Brings home, every few minutes, what the agent has done so far: losing its environment loses minutes."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from bot.errors import BotError
from bot.git.errors import BundleRefused
from bot.sessions.memory import transcripts
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

log = logging.getLogger(__name__)

EVERY_SECONDS = 180.0
LOOK_SECONDS = 2.0
BUNDLE_BYTES = 200 << 20


def path(services: Services, turn: Turn) -> Path:
    """What was brought home last, let in by the quarantine; not there while nothing was changed."""
    return services.turn_folder(turn.key.workflow_id) / "checkpoint.bundle"


async def save(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    """Beside the run, for as long as it goes on. One that fails is left out: the next comes in a few minutes."""
    tree: str | None = None
    tried_at = 0.0
    while True:
        now = await sessions.turn(services.store, turn.key)
        last = max(now.checkpoint_at or 0.0, now.work_started_at or services.clock(), tried_at)
        if services.clock() - last >= EVERY_SECONDS:
            tried_at = services.clock()
            try:
                tree = await _brought_home(services, turn, environment, tree)
                await sessions.update_turn(services.store, turn.key, checkpoint_at=services.clock())
            except EnvironmentGone:
                raise
            except (BotError, SandboxError, OSError) as error:
                log.warning("no checkpoint", extra={"turn": turn.key.workflow_id, "error": str(error)})
        await asyncio.sleep(LOOK_SECONDS)


async def _brought_home(
    services: Services, turn: Turn, environment: ExecutionEnvironment, known: str | None
) -> str | None:
    """The tree that is at home now; nothing is carried when it is the one that was known."""
    session = await sessions.session(services.store, turn.key.session)
    assert turn.base_sha is not None and session.agent_session_id is not None
    await transcripts.keep(services, session.agent_session_id, environment)
    if turn.traits.reads:
        return None
    collected = await environment.collect(turn.key.n, turn.base_sha, beside=True)
    if not collected.changed:
        path(services, turn).unlink(missing_ok=True)
    elif collected.tree not in (known, _met(services, turn)):
        arrived = path(services, turn).with_suffix(".new")
        await environment.fetch_bundle(collected, arrived, BUNDLE_BYTES)
        await _let_in(services, turn, arrived, str(collected.tree))
    return collected.tree


async def _let_in(services: Services, turn: Turn, arrived: Path, tree: str) -> None:
    """Noted before anything looks at it: what is refused, or ends this very process, is not met a second time."""
    assert turn.base_sha is not None
    note = _note(services, turn)
    note.write_text(tree, "ascii")
    try:
        async with services.cache.quarantine(turn.repo_id) as quarantine:
            await quarantine.admit(arrived, base=turn.base_sha)
    except BundleRefused:
        await asyncio.to_thread(arrived.unlink)
        raise
    await asyncio.to_thread(arrived.replace, path(services, turn))
    note.unlink()


def _note(services: Services, turn: Turn) -> Path:
    return path(services, turn).with_suffix(".met")


def _met(services: Services, turn: Turn) -> str | None:
    try:
        return _note(services, turn).read_text("ascii")
    except FileNotFoundError:
        return None
