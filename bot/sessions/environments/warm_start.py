"""Starts environments from snapshots of their repositories; makes and removes snapshots in the background."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable

from bot import repo_config
from bot.errors import BotError
from bot.git.errors import MirrorLost
from bot.git.quarantine import Had, RepositoryPack
from bot.loops import Loop
from bot.models import PUSHED, Outcome, SessionId, Thread, TurnKey
from bot.sessions import packages
from bot.sessions.services import Services
from bot.store import repos, sessions, snapshots
from bot.store.operations import DAY
from bot.store.sessions import Turn
from bot.store.snapshots import SnapshotBase, StoredSnapshot
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentSpec, Snapshots

log = logging.getLogger(__name__)

FRESH_SECONDS = 7 * DAY
REMADE_AFTER_SECONDS = DAY
"""Make an older snapshot again: its difference to the newest commit grows."""
GOOD = (*PUSHED, Outcome.ANSWERED, Outcome.NO_CHANGE)
LABELS = {"app": "forgehand-warming"}
"""Not the label of turns, whose strays the sweep ends: these have no turn."""
LOOK_SECONDS = 2.0
AGAIN_SECONDS = 60.0
LATER_SECONDS = 600.0
SWEEP_SECONDS = 300.0
SETUP_SECONDS = 900.0
MOST_TRIES = 2
NO_TURN = 0

Packed = Callable[[Had | None], Awaitable[RepositoryPack]]
"""Writes the pack of the wanted commit, as differences to what the other side has."""


async def warm_snapshot(services: Services, turn: Turn, thread: Thread) -> StoredSnapshot | None:
    """Find a snapshot for the environment, with the same setup commands as the turn's. None with submodules or LFS:
    everybody's sessions would start from files that only some may see."""
    if services.snapshots is None or repo_config.load(turn.config).brings_more:
        return None
    snapshot = await snapshots.ready(services.store, _base_of(turn, thread))
    return None if snapshot is None or snapshot.created_at < services.clock() - FRESH_SECONDS else snapshot


async def consider_snapshot(services: Services, turn: Turn) -> None:
    """Plan a snapshot after a turn that went well on a commit of the default branch, and was slow to begin.

    Every later session of the repository has the snapshot's content. So it holds only merged commits, and nothing of a
    pull request or a session's own branch.
    """
    e2b = services.settings.e2b
    was_slow = e2b is not None and 0 < e2b.snapshot_after <= (turn.furnish_seconds or 0)
    if services.snapshots is None or turn.outcome not in GOOD or not was_slow:
        return
    session = await sessions.session(services.store, turn.key.session)
    repo, now = session.thread.repo, services.clock()
    fresh = turn.n == 1 and turn.tip_sha is None and turn.number == session.number and not session.is_pull
    if not fresh or turn.base != repo.default_branch or turn.base_sha is None:
        return
    of = _base_of(turn, session.thread)
    name = f"forgehand-{int(repo.id)}-{_digest([of.template, of.setup_sha256, turn.base_sha])[:20]}"
    config = repo_config.load(turn.config)
    if config.brings_more:
        return
    wanted = StoredSnapshot(
        **vars(of),
        name=name,
        setup=config.setup,
        egress=config.egress,
        registries=config.registries,
        commit_sha=turn.base_sha,
        branch=turn.base,
        created_at=now,
    )
    await snapshots.plan(services.store, wanted, not_since=now - REMADE_AFTER_SECONDS)


def _base_of(turn: Turn, thread: Thread) -> SnapshotBase:
    config = repo_config.load(turn.config)
    return SnapshotBase(thread.repo.id, config.template or "", _digest(list(config.setup)))


def _digest(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


async def grown(
    services: Services, turn: Turn, environment: ExecutionEnvironment, snapshot: StoredSnapshot, packed: Packed
) -> bool:
    """Bring in the commits since the snapshot; False if the whole repository must come. Not for a kept environment,
    where an agent has been."""
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


class Warming:
    """Makes and removes snapshots; survives a kill, as a row exists before its snapshot and keeps its name."""

    def __init__(self, services: Services, cloud: Snapshots, look_seconds: float = LOOK_SECONDS) -> None:
        self._services = services
        self._cloud = cloud
        self._later: dict[str, float] = {}
        self._sweep_at = 0.0
        self.loop = Loop("snapshots", self._look, look_seconds, rest_seconds=AGAIN_SECONDS)

    async def _sweep(self) -> None:
        """End environments that a killed process left; look again and again, since one is in no list while its
        snapshot is taken."""
        now = asyncio.get_running_loop().time()
        if now >= self._sweep_at:
            for left in await self._services.environments.find(LABELS):
                await left.terminate()
            self._sweep_at = now + SWEEP_SECONDS

    async def _look(self) -> None:
        await self._sweep()
        store = self._services.store
        await snapshots.condemn_older(store, self._services.clock() - FRESH_SECONDS)
        for one in await snapshots.making(store):
            await self._make(one)
        now = asyncio.get_running_loop().time()
        for one in await snapshots.condemned(store):
            if self._later.get(one.name, now) <= now:
                await self._remove(one, now)

    async def _remove(self, one: StoredSnapshot, now: float) -> None:
        """Remove one, or try again later: a sandbox may still use it, even a paused one."""
        try:
            await self._cloud.remove_snapshot(one.snapshot_id or one.name)
        except SandboxError as error:
            if one.name not in self._later:
                log.warning("a snapshot is removed later", extra={"snapshot": one.name, "error": str(error)})
            self._later[one.name] = now + LATER_SECONDS
        else:
            self._later.pop(one.name, None)
            await snapshots.forget(self._services.store, one.name)

    async def _make(self, wanted: StoredSnapshot) -> None:
        store = self._services.store
        await snapshots.tried(store, wanted.name)
        try:
            snapshot_id, shallow = await self._taken(wanted)
        except (BotError, SandboxError) as error:
            log.warning("no snapshot could be made", extra={"snapshot": wanted.name, "error": str(error)})
            if wanted.attempts + 1 >= MOST_TRIES or isinstance(error, MirrorLost):
                await snapshots.condemn(store, wanted.name)
            return
        await snapshots.finish(store, wanted, snapshot_id, shallow)

    async def _taken(self, wanted: StoredSnapshot) -> tuple[str, tuple[str, ...]]:
        """Take the snapshot in a separate environment, with only the repository and its setup. The one token in it
        reads packages, and ends with the setup."""
        services, template = self._services, wanted.base.template or None
        spec = EnvironmentSpec(LABELS, public_repository=True, egress=wanted.egress, template=template)
        primitives = await services.environments.create(wanted.name, spec)
        try:
            environment = ExecutionEnvironment(primitives, services.agent)
            shallow = await self._bring_in(wanted, environment)
            whose = (
                TurnKey(SessionId(wanted.name), NO_TURN),
                await repos.installation_of(services.store, wanted.repo_id),
            )
            async with packages.opened_by_name(services, whose, wanted.registries, SETUP_SECONDS) as clients:
                results = await environment.setup(wanted.setup, SETUP_SECONDS, clients=clients)
            if failed := next((one for one in results if one.exit_code), None):
                raise SandboxError(f"the setup command `{failed.command}` ended with {failed.exit_code}")
            return await self._cloud.take_snapshot(primitives.id, wanted.name), shallow
        finally:
            await primitives.terminate()

    async def _bring_in(self, wanted: StoredSnapshot, environment: ExecutionEnvironment) -> tuple[str, ...]:
        folder = self._services.made_turn_folder(wanted.name)
        target = folder / "in.pack"
        try:
            pack = await self._services.cache.pack(wanted.base.repo_id, wanted.commit_sha, target)
            await environment.prepare(pack.path, pack.sha, pack.shallow, wanted.branch, turn=NO_TURN)
        finally:
            target.unlink(missing_ok=True)
            folder.rmdir()
        return pack.shallow
