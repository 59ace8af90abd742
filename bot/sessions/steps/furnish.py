"""Step 2: find or create the environment, bring the repository in without a credential, run its setup commands."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from bot import repo_config
from bot.errors import TransientError, UserError
from bot.git.pack import Had, RepositoryPack
from bot.kinds.resolve import Merge
from bot.models import Step
from bot.sessions import agent_memory, environments, setbacks, starting_point
from bot.sessions.environments import warm_start
from bot.sessions.money import spending_limits
from bot.sessions.money.budget import Prices
from bot.sessions.moves import DiskFilled, Move, To, spared
from bot.sessions.publish import rescue
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store import sessions
from bot.store.environments import EnvironmentRow
from bot.store.sessions import Turn
from bot.store.snapshots import StoredSnapshot
from bot.words import endings
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

SETUP_SECONDS = 900.0
SPARE_SECONDS = 600.0
UNSEEN = {"": ""}
"""In the place of what lies in a home that nobody has looked at: it is not as it was."""


@dataclass(frozen=True)
class _Place:
    """What is being furnished."""

    services: Services
    turn: Turn
    environment: ExecutionEnvironment
    row: EnvironmentRow
    saved: Path | None
    """Work that is put on top of the checkout."""


async def run(services: Services, turn: Turn) -> Move:
    if spending_limits.is_metered(services):  # the gateway would refuse each request, when all has been made
        Prices(services.settings.model.prices).of(turn.model)
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
    began = time.monotonic()
    session = await sessions.session(services.store, turn.key.session)
    # What was lost goes on from what was saved of it, and that is made for a checkout of its own.
    saved = await _saved(services, turn)
    snapshot = None if saved or turn.resumptions else await warm_start.warm_snapshot(services, turn, session.thread)
    environment, row = await environments.find_or_create(services, turn, snapshot)
    agent_session = session.agent_session_id or str(uuid.uuid5(uuid.NAMESPACE_URL, f"forgehand:{turn.key.session}"))
    await sessions.update_session(
        services.store, turn.key.session, environment_id=environment.primitives.id, agent_session_id=agent_session
    )
    place = _Place(services, turn, environment, row, saved)
    if environments.is_reused(row) and not row.prepared:
        await environment.comb(UNSEEN if row.home is None else row.home)
    warm = snapshot is not None and await _grow(place, snapshot)
    known = warm or await _bring_in(place)
    resumed = await agent_memory.restore_transcript(services, agent_session, environment)
    if warm and snapshot and snapshot.commit_sha == turn.base_sha:  # in which the same commands have run
        await rows.note(services.store, row.id, setup_sha256=_digest(turn))
    elif not turn.traits.judges and await starting_point.may_set_up(services, turn):
        # What is to be judged is not run with what setup may hold, nor is what nobody here has approved.
        await _set_up(place, known=known)
    if not row.prepared:  # else an agent may have been here
        await rows.note(services.store, row.id, home=json.dumps(await environment.home()))
    columns = {"timeout_seconds": await _time_there(place), "furnish_seconds": time.monotonic() - began}
    forgotten = () if resumed else await agent_memory.summary_instead(services, turn)
    return To(Step.WORK, {"resumed": int(resumed), **columns}, parts=forgotten)


async def _saved(services: Services, turn: Turn) -> Path | None:
    """What an agent has done that was lost, or in an earlier turn where it could not be pushed."""
    if turn.resumptions:
        lost = rescue.checkpoint_bundle(services, turn)
        return lost if lost.is_file() else None
    return await rescue.left_before(services, turn)


async def _grow(place: _Place, snapshot: StoredSnapshot) -> bool:
    """Bring in what has come since the snapshot; False where it has to be all.

    Never in an environment that was kept: an agent has been there."""
    services, turn = place.services, place.turn
    assert turn.base_sha is not None
    sha = turn.base_sha
    if environments.is_reused(place.row):
        return False

    async def packed(had: Had | None) -> RepositoryPack:
        return await services.cache.pack(turn.repo_id, sha, _pack_file(services, turn), had=had)

    if not await warm_start.grown(services, turn, place.environment, snapshot, packed):
        return False
    await rows.note(services.store, place.row.id, prepared=1)
    return True


async def _time_there(place: _Place) -> float:
    """The turn's time, as far as the environment lives that long: enough of it is left to bring the work home."""
    turn, left = place.turn, await place.environment.primitives.left()
    if left is None:
        return turn.timeout_seconds
    used = setbacks.seconds_used(turn) if turn.attempt else 0.0
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
    pack = await services.cache.pack(thread.repo.id, turn.base_sha, _pack_file(services, turn))
    known = await place.environment.prepare(
        pack.path,
        pack.sha,
        pack.shallow,
        turn.base,
        turn=turn.key.n,
        fresh=not place.row.prepared,
        saved=place.saved,
    )
    await rows.note(services.store, place.row.id, prepared=1)
    pack.path.unlink(missing_ok=True)
    return known


def _pack_file(services: Services, turn: Turn) -> Path:
    folder = services.turn_folder(turn.key.workflow_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / "in.pack"


def _digest(turn: Turn) -> str:
    """Of the setup commands."""
    return hashlib.sha256(json.dumps(repo_config.load(turn.config).setup).encode()).hexdigest()


async def _set_up(place: _Place, *, known: bool) -> None:
    """Unless the very same commands have succeeded here."""
    commands = repo_config.load(place.turn.config).setup
    digest = _digest(place.turn)
    if not commands or (known and place.row.setup_sha256 == digest):
        return
    setup = place.environment.setup(commands, SETUP_SECONDS)
    try:
        results = await spared(place.services, place.environment, "setup", setup)
    except DiskFilled as filled:
        raise UserError(str(filled)) from None
    for result in results:
        if result.exit_code != 0 and place.turn.part(Merge).sha is not None:
            return  # a lock file with marks of a conflict in it, perhaps: that is what the agent is to mend
        if result.exit_code != 0:
            raise UserError(endings.setup_failed(result.command, result.exit_code, result.tail))
    await rows.note(place.services.store, place.row.id, setup_sha256=digest)
