"""Step 2: find or create the environment, bring the repository in without a credential, run its setup commands."""

from __future__ import annotations

import uuid

from bot import endings, repo_config
from bot.errors import UserError
from bot.models import Step
from bot.sessions import environments, recalling, transcripts
from bot.sessions.moves import Move, To
from bot.sessions.services import Services
from bot.store import sessions
from bot.store.sessions import Turn
from sandbox.execution import ExecutionEnvironment

SETUP_SECONDS = 900.0


async def run(services: Services, turn: Turn) -> Move:
    assert turn.base_sha is not None
    session = await sessions.session(services.store, turn.key.session)
    environment = await environments.find_or_create(services, turn)
    agent_session = session.agent_session_id or str(uuid.uuid5(uuid.NAMESPACE_URL, f"forgehand:{turn.key.session}"))
    await sessions.update_session(
        services.store, turn.key.session, environment_id=environment.primitives.id, agent_session_id=agent_session
    )
    await _bring_in(services, turn, environment)
    resumed = await transcripts.restore(services, agent_session, environment)
    await _set_up(turn, environment)
    forgotten = {} if resumed else await recalling.instead(services, turn)
    return To(Step.WORK, {"resumed": int(resumed), **forgotten})


async def _bring_in(services: Services, turn: Turn, environment: ExecutionEnvironment) -> None:
    thread = (await sessions.session(services.store, turn.key.session)).thread
    assert turn.base_sha is not None and turn.base is not None
    folder = services.turn_folder(turn.key.workflow_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    pack = await services.cache.pack(thread.repo.id, turn.base_sha, folder / "in.pack")
    await environment.prepare(pack.path, pack.sha, pack.shallow, turn.base, turn=turn.key.n)
    pack.path.unlink(missing_ok=True)


async def _set_up(turn: Turn, environment: ExecutionEnvironment) -> None:
    config = repo_config.load(turn.config)
    for result in await environment.setup(config.setup, SETUP_SECONDS) if config.setup else []:
        if result.exit_code != 0:
            raise UserError(endings.setup_failed(result.command, result.exit_code, result.tail))
