"""A checkout in an environment that began from a snapshot: only what has come since is brought in."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from bot.git.pack import Had, RepositoryPack
from bot.sessions.services import Services
from bot.store.sessions import Turn
from bot.store.snapshots import Snapshot
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

log = logging.getLogger(__name__)

Packed = Callable[[Had | None], Awaitable[RepositoryPack]]
"""Writes the pack of the wanted commit, as differences to what the other side has."""


async def grown(
    services: Services, turn: Turn, environment: ExecutionEnvironment, snapshot: Snapshot, packed: Packed
) -> bool:
    """False where it has to be all. Never in an environment that was kept: an agent has been there."""
    if not await services.cache.has(turn.repo_id, snapshot.commit_sha):
        return False
    assert turn.base is not None
    pack = await packed(Had(snapshot.commit_sha, snapshot.shallow))
    try:
        await environment.prepare(pack.path, pack.sha, pack.shallow, turn.base, turn=turn.key.n, on=snapshot.commit_sha)
    except (EnvironmentBusy, EnvironmentGone):
        raise
    except SandboxError as error:
        log.warning("a snapshot could not be built upon", extra={"turn": turn.key.workflow_id, "error": str(error)})
        return False
    finally:
        pack.path.unlink(missing_ok=True)
    return True
