"""Step 2: find or create the environment, bring the repository in without a credential, run its setup commands."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bot import repo_config
from bot.errors import TransientError, UserError
from bot.git.quarantine import Had, RepositoryPack
from bot.kinds.resolve import Merge
from bot.kinds.shape import AgentReading, WorkFolders
from bot.models import Step
from bot.sessions import agent_memory, environments, packages, setbacks, starting_point
from bot.sessions.environments import warm_start
from bot.sessions.money import spending_limits
from bot.sessions.money.budget import Prices
from bot.sessions.moves import DiskFilled, Move, To, stop_command_if_disk_fills
from bot.sessions.publish import rescue
from bot.sessions.rights import models_of
from bot.sessions.services import Services
from bot.store import environments as rows
from bot.store import sessions
from bot.store.environments import EnvironmentRow
from bot.store.sessions import Turn
from bot.store.snapshots import StoredSnapshot
from bot.words import endings
from sandbox.errors import EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment

SPARE_SECONDS = 600.0
UNSEEN = {"": ""}
"""Stands for the content of a home that nobody has looked at, so that everything in it counts as changed."""


@dataclass(frozen=True)
class _Place:
    services: Services
    turn: Turn
    environment: ExecutionEnvironment
    row: EnvironmentRow
    saved: Path | None
    """Work to put on top of the checkout."""


async def run(services: Services, turn: Turn) -> Move:
    if spending_limits.is_metered(services):  # without a price, the gateway would refuse each request later
        prices = Prices.at(services.settings.model)
        for model in models_of(turn):
            prices.of(model)
    if repo_config.load(turn.config).registries:
        await packages.require(services, turn)
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
    if turn.resumptions:  # lost work goes on from its checkpoint, which fits only a fresh checkout
        saved = await rescue.checkpoint(services, turn)
    else:
        saved = await rescue.left_before(services, turn)
    snapshot = None if saved or turn.resumptions else await warm_start.warm_snapshot(services, turn, session.thread)
    environment, row = await environments.find_or_create(services, turn, snapshot)
    agent_session = session.agent_session_id or str(uuid.uuid5(uuid.NAMESPACE_URL, f"forgehand:{turn.key.session}"))
    known_by = {"environment_id": environment.primitives.id, "agent_session_id": agent_session}
    await sessions.update_session(services.store, turn.key.session, **known_by)
    place = _Place(services, turn, environment, row, saved)
    if environments.is_reused(row) and not row.prepared:
        await environment.comb(UNSEEN if row.home is None else row.home)
    warm = snapshot is not None and await _grow(place, snapshot)
    known = warm or await _bring_in(place)
    notes = await _bring_more(place)
    resumed = await agent_memory.restore_transcript(services, agent_session, environment)
    same = warm and snapshot is not None and snapshot.commit_sha == turn.base_sha
    if same and not turn.part(WorkFolders).patterns:  # the same commands have run in it
        await rows.note(services.store, row.id, setup_sha256=_digest(turn))
    elif not turn.traits.judges and await starting_point.may_set_up(services, turn):
        # Code under review never meets what setup may hold, nor does code that nobody here has approved.
        await _set_up(place, known=known, notes=notes)
    if not row.prepared:  # else an agent may have been here
        await rows.note(services.store, row.id, home=json.dumps(await environment.home()))
    columns = {"timeout_seconds": await _time_there(place), "furnish_seconds": time.monotonic() - began}
    read = () if resumed else await agent_memory.summary_instead(services, turn)
    if notes:  # once, however often the step runs
        reading = read[0] if read else turn.part(AgentReading)
        read = (msgspec.structs.replace(reading, notes=tuple(dict.fromkeys((*reading.notes, *notes)))),)
    return To(Step.WORK, {"resumed": int(resumed), **columns}, parts=read)


async def _bring_more(place: _Place) -> tuple[str, ...]:
    """Bring in what is not in git's own data; return what is to be said about that."""
    services, turn = place.services, place.turn
    if not repo_config.load(turn.config).brings_more:
        return ()
    from bot.sessions import contents

    assert turn.base_sha is not None
    source = contents.Source(services.cache.git_dir(turn.repo_id), turn.base_sha)
    return await contents.bring(services, turn, place.environment, source)


async def _grow(place: _Place, snapshot: StoredSnapshot) -> bool:
    """Bring in the commits since the snapshot; False if the whole repository must come.

    Never in a kept environment: an agent has been there."""
    services, turn = place.services, place.turn
    assert turn.base_sha is not None
    sha, file = turn.base_sha, services.made_turn_folder(turn.key.workflow_id) / "in.pack"

    async def packed(had: Had | None) -> RepositoryPack:
        return await services.cache.pack(turn.repo_id, sha, file, had=had)

    reused = environments.is_reused(place.row)
    if reused or not await warm_start.grown(services, turn, place.environment, snapshot, packed):
        return False
    await rows.note(services.store, place.row.id, prepared=1)
    return True


async def _time_there(place: _Place) -> float:
    """Cut the turn's time so that the environment lives long enough to bring the work home."""
    turn, left = place.turn, await place.environment.primitives.left()
    if left is None:
        return turn.timeout_seconds
    used = setbacks.seconds_used(turn) if turn.attempt else 0.0
    return max(min(turn.timeout_seconds, used + left - min(SPARE_SECONDS, left / 2)), min(turn.timeout_seconds, 60.0))


async def _give_up(services: Services, turn: Turn) -> None:
    """End the environment; the next try makes another."""
    async with services.environment_locks.of(turn.key.session):
        if (row := await rows.used_by(services.store, turn.key)) is not None:
            await environments.give_up(services, row.id)


async def _bring_in(place: _Place) -> bool:
    """Return whether this turn or an earlier one has furnished the environment before."""
    services, turn = place.services, place.turn
    assert turn.base_sha is not None and turn.base is not None
    file = services.made_turn_folder(turn.key.workflow_id) / "in.pack"
    pack = await services.cache.pack(turn.repo_id, turn.base_sha, file)
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


def _digest(turn: Turn) -> str:
    return hashlib.sha256(json.dumps(_commands(turn)).encode()).hexdigest()


def _commands(turn: Turn) -> tuple[str, ...]:
    return repo_config.load(turn.config).with_paths(turn.part(WorkFolders).patterns).setup


async def _set_up(place: _Place, *, known: bool, notes: tuple[str, ...]) -> None:
    """Run the setup commands, unless the very same ones have succeeded here. What is missing may be why one fails."""
    commands, digest = _commands(place.turn), _digest(place.turn)
    if not commands or (known and place.row.setup_sha256 == digest):
        return
    has_registries = bool(repo_config.load(place.turn.config).registries)
    opened = packages.opened(place.services, place.turn, warm_start.SETUP_SECONDS) if has_registries else nullcontext()
    try:
        async with opened as clients:
            setup = place.environment.setup(commands, warm_start.SETUP_SECONDS, clients=clients)
            results = await stop_command_if_disk_fills(place.services, place.environment, "setup", setup)
    except DiskFilled as filled:
        raise UserError(str(filled)) from None
    for result in results:
        if result.exit_code != 0:
            if place.turn.part(Merge).sha is not None:
                return  # perhaps a lock file has marks of a conflict, which are the agent's task
            words = endings.setup_failed(result.command, result.exit_code, result.tail)
            raise UserError("\n\n".join((words, *notes)))
    await rows.note(place.services.store, place.row.id, setup_sha256=digest)
