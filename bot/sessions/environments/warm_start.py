"""Starts environments from snapshots of their repositories, and makes and removes these in the background."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable

from bot import repo_config
from bot.errors import BotError
from bot.git.errors import MirrorLost
from bot.git.pack import Had, RepositoryPack
from bot.loops import Loop
from bot.models import Outcome, Thread
from bot.sessions.services import Services
from bot.store import sessions, snapshots
from bot.store.sessions import Turn
from bot.store.snapshots import SnapshotBase, StoredSnapshot
from sandbox.errors import EnvironmentBusy, EnvironmentGone, SandboxError
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentSpec, Snapshots

FRESH_SECONDS = 7 * 86_400.0
REMADE_AFTER_SECONDS = 86_400.0
"""A day old, and it is made anew: the difference to the newest commit grows."""
GOOD = (Outcome.PULL_REQUEST, Outcome.PUSHED, Outcome.ANSWERED, Outcome.NO_CHANGE)


async def warm_snapshot(services: Services, turn: Turn, thread: Thread) -> StoredSnapshot | None:
    """Finds what the environment starts from; its setup commands are those that the turn itself would run."""
    if services.snapshots is None:
        return None
    snapshot = await snapshots.ready(services.store, base_of(turn, thread))
    if snapshot is None or snapshot.created_at < services.clock() - FRESH_SECONDS:
        return None
    return snapshot


async def consider_snapshot(services: Services, turn: Turn) -> None:
    """Wants a snapshot after a turn that went well on a commit of the default branch, and was slow to begin.

    Only such a commit: what is in a snapshot is in every later session of the repository, so it is what people with
    write access have merged, and nothing of a pull request or a session's own branch.
    """
    if services.snapshots is None or turn.outcome not in GOOD or not _was_slow(services, turn):
        return
    session = await sessions.session(services.store, turn.key.session)
    repo, now = session.thread.repo, services.clock()
    fresh = turn.n == 1 and turn.tip_sha is None and turn.number == session.number and not session.is_pull
    if not fresh or turn.base != repo.default_branch or turn.base_sha is None:
        return
    of = base_of(turn, session.thread)
    name = f"forgehand-{int(repo.id)}-{_digest([of.template, of.setup_sha256, turn.base_sha])[:20]}"
    config = repo_config.load(turn.config)
    wanted = StoredSnapshot(
        **vars(of),
        name=name,
        setup=config.setup,
        egress=config.egress,
        commit_sha=turn.base_sha,
        branch=turn.base,
        created_at=now,
    )
    await snapshots.plan(services.store, wanted, not_since=now - REMADE_AFTER_SECONDS)


def _was_slow(services: Services, turn: Turn) -> bool:
    e2b = services.settings.e2b
    return e2b is not None and 0 < e2b.snapshot_after <= (turn.furnish_seconds or 0)


def base_of(turn: Turn, thread: Thread) -> SnapshotBase:
    config = repo_config.load(turn.config)
    return SnapshotBase(thread.repo.id, config.template or "", _digest(list(config.setup)))


def _digest(parts: list[str]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


log = logging.getLogger(__name__)

Packed = Callable[[Had | None], Awaitable[RepositoryPack]]
"""Writes the pack of the wanted commit, as differences to what the other side has."""


async def grown(
    services: Services, turn: Turn, environment: ExecutionEnvironment, snapshot: StoredSnapshot, packed: Packed
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


LABELS = {"app": "forgehand-warming"}
"""Not the label of turns: their strays are ended, and no turn stands behind these."""
LOOK_SECONDS = 2.0
AGAIN_SECONDS = 60.0
LATER_SECONDS = 600.0
SWEEP_SECONDS = 300.0
SETUP_SECONDS = 900.0
MOST_ATTEMPTS = 2
NO_TURN = 0


class Warming:
    """A killed process is no trouble: the row is there before its snapshot, and the same name is taken again."""

    def __init__(self, services: Services, cloud: Snapshots, look_seconds: float = LOOK_SECONDS) -> None:
        self._services = services
        self._cloud = cloud
        self._later: dict[str, float] = {}
        self._sweep_at = 0.0
        self.loop = Loop("snapshots", self._round, look_seconds, rest_seconds=AGAIN_SECONDS)

    async def _sweep(self) -> None:
        """What a killed process left half made is begun anew. And what was in no list while it was being snapshotted,
        and so seemed to be gone already, is in one by now: one looks again and again."""
        now = asyncio.get_running_loop().time()
        if now >= self._sweep_at:
            for left in await self._services.environments.find(LABELS):
                await left.terminate()
            self._sweep_at = now + SWEEP_SECONDS

    async def _round(self) -> None:
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
        """Each by itself: one that a sandbox uses still, also a paused one, must not keep the others."""
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
            if wanted.attempts + 1 >= MOST_ATTEMPTS or isinstance(error, MirrorLost):
                await snapshots.condemn(store, wanted.name)
            return
        await snapshots.finish(store, wanted, snapshot_id, shallow)

    async def _taken(self, wanted: StoredSnapshot) -> tuple[str, tuple[str, ...]]:
        """An environment of its own, without a token and without any secret: only the repository and its setup."""
        services, template = self._services, wanted.base.template or None
        spec = EnvironmentSpec(LABELS, public_repository=True, egress=wanted.egress, template=template)
        primitives = await services.environments.create(wanted.name, spec)
        try:
            environment = ExecutionEnvironment(primitives, services.agent)
            shallow = await self._bring_in(wanted, environment)
            for done in await environment.setup(wanted.setup, SETUP_SECONDS):
                if done.exit_code:
                    raise SandboxError(f"the setup command `{done.command}` ended with {done.exit_code}")
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
