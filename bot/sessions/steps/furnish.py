"""Step 2: find or create the environment, bring the repository in without a credential, run its setup commands."""

from __future__ import annotations

import logging
import time
import uuid
from pathlib import Path

from bot import endings, repo_config
from bot.errors import UserError
from bot.git.pack import Had
from bot.models import Step
from bot.sessions import environments, recalling, transcripts, warmth
from bot.sessions.moves import Move, To
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from bot.store.snapshots import Snapshot
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

log = logging.getLogger(__name__)

SETUP_SECONDS = 900.0


async def run(services: Services, turn: Turn) -> Move:
    assert turn.base_sha is not None
    began = time.monotonic()
    session = await sessions.session(services.store, turn.key.session)
    snapshot = await warmth.found(services, turn, session.thread)
    environment = await environments.find_or_create(services, turn, snapshot)
    agent_session = session.agent_session_id or str(uuid.uuid5(uuid.NAMESPACE_URL, f"forgehand:{turn.key.session}"))
    await sessions.update_session(
        services.store, turn.key.session, environment_id=environment.primitives.id, agent_session_id=agent_session
    )
    warm = snapshot is not None and await _grow(services, turn, environment, snapshot)
    if not warm:
        await _bring_in(services, turn, environment)
    resumed = await transcripts.restore(services, agent_session, environment)
    done = warm and snapshot is not None and snapshot.commit_sha == turn.base_sha  # the same commands have run in it
    if turn.kind != "review" and not done:  # what is to be judged is not run with what setup may hold
        await _set_up(turn, environment)
    forgotten = {} if resumed else await recalling.instead(services, turn)
    return To(Step.WORK, {"resumed": int(resumed), "furnish_seconds": time.monotonic() - began, **forgotten})


async def _grow(services: Services, turn: Turn, environment: ExecutionEnvironment, snapshot: Snapshot) -> bool:
    """Bring in what has come since the snapshot; False where it has to be all.

    In a session's first turn only: the environment of a later one may be one in which an agent has been."""
    assert turn.base_sha is not None and turn.base is not None
    repo = (await sessions.session(services.store, turn.key.session)).repo_id
    if turn.n != 1 or not await services.cache.has(repo, snapshot.commit_sha):
        return False
    had = Had(snapshot.commit_sha, snapshot.shallow)
    pack = await services.cache.pack(repo, turn.base_sha, _pack_file(services, turn), had=had)
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


async def _bring_in(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    thread = (await sessions.session(services.store, turn.key.session)).thread
    assert turn.base_sha is not None and turn.base is not None
    pack = await services.cache.pack(thread.repo.id, turn.base_sha, _pack_file(services, turn))
    await environment.prepare(pack.path, pack.sha, pack.shallow, turn.base, turn=turn.key.n)
    pack.path.unlink(missing_ok=True)


def _pack_file(services: Services, turn: Turn) -> Path:
    folder = services.turn_folder(turn.key.workflow_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / "in.pack"


async def _set_up(turn: Turn, environment: ExecutionEnvironment) -> None:
    config = repo_config.load(turn.config)
    for result in await environment.setup(config.setup, SETUP_SECONDS) if config.setup else []:
        if result.exit_code != 0:
            raise UserError(endings.setup_failed(result.command, result.exit_code, result.tail))
