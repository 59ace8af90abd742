"""Step 2: find or create the environment, bring the repository in without a credential, run its setup commands."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass

from bot import endings, repo_config
from bot.errors import TransientError, UserError
from bot.models import Step
from bot.sessions import checkpoints, environments, losses, transcripts
from bot.sessions.moves import Move, To
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store import sessions
from bot.store.environments import EnvironmentRow
from bot.store.sessions import Turn
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

SETUP_SECONDS = 900.0
SPARE_SECONDS = 600.0


@dataclass(frozen=True)
class _Place:
    """What is being furnished."""

    services: Services
    turn: Turn
    environment: ExecutionEnvironment
    row: EnvironmentRow


async def run(services: Services, turn: Turn) -> Move:
    try:
        return await _furnished(services, turn)
    except EnvironmentGone as error:
        await _give_up(services, turn)
        raise TransientError(str(error), retry_after=0.0) from error
    except (SandboxError, UserError) as error:
        row = await rows.used_by(services.store, turn.key)
        if row is None or not environments.is_reused(row):
            raise
        await _give_up(services, turn)
        raise TransientError(f"the kept environment does not serve: {error}", retry_after=0.0) from error


async def _furnished(services: Services, turn: Turn) -> Move:
    session = await sessions.session(services.store, turn.key.session)
    environment, row = await environments.find_or_create(services, turn)
    agent_session = session.agent_session_id or str(uuid.uuid5(uuid.NAMESPACE_URL, f"forgehand:{turn.key.session}"))
    await sessions.update_session(
        services.store, turn.key.session, environment_id=environment.primitives.id, agent_session_id=agent_session
    )
    place = _Place(services, turn, environment, row)
    known = await _bring_in(place)
    resumed = await transcripts.restore(services, agent_session, environment)
    await _set_up(place, known=known)
    return To(Step.WORK, {"resumed": int(resumed), "timeout_seconds": await _time_there(place)})


async def _time_there(place: _Place) -> float:
    """The turn's time, as far as the environment lives that long: enough of it is left to bring the work home."""
    turn, left = place.turn, await place.environment.primitives.left()
    if left is None:
        return turn.timeout_seconds
    used = losses.seconds_used(turn) if turn.resumptions else 0.0
    return max(min(turn.timeout_seconds, used + left - min(SPARE_SECONDS, left / 2)), min(turn.timeout_seconds, 60.0))


async def _give_up(services: Services, turn: Turn) -> None:
    """For another one: the next try makes it."""
    async with services.environment_locks.of(turn.key.session):
        if (row := await rows.used_by(services.store, turn.key)) is not None:
            await environments.give_up(services, row.id)


async def _bring_in(place: _Place) -> bool:
    """Whether the environment was furnished before, by this turn or an earlier one."""
    services, turn = place.services, place.turn
    thread = (await sessions.session(services.store, turn.key.session)).thread
    assert turn.base_sha is not None and turn.base is not None
    folder = services.turn_folder(turn.key.workflow_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    pack = await services.cache.pack(thread.repo.id, turn.base_sha, folder / "in.pack")
    saved = checkpoints.path(services, turn)
    known = await place.environment.prepare(
        pack.path,
        pack.sha,
        pack.shallow,
        turn.base,
        turn=turn.key.n,
        fresh=not place.row.prepared,
        saved=saved if turn.resumptions and saved.is_file() else None,
    )
    await rows.note(services.store, place.row.id, prepared=1)
    pack.path.unlink(missing_ok=True)
    return known


async def _set_up(place: _Place, *, known: bool) -> None:
    """Unless the very same commands have succeeded here."""
    commands = repo_config.load(place.turn.config).setup
    digest = hashlib.sha256(json.dumps(commands).encode()).hexdigest()
    if not commands or (known and place.row.setup_sha256 == digest):
        return
    for result in await place.environment.setup(commands, SETUP_SECONDS):
        if result.exit_code != 0:
            raise UserError(endings.setup_failed(result.command, result.exit_code, result.tail))
    await rows.note(place.services.store, place.row.id, setup_sha256=digest)
