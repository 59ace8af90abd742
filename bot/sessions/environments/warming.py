"""Makes the snapshots that are wanted and removes those that are not, in the background, one at a time."""

from __future__ import annotations

import asyncio
import logging

from bot.errors import BotError
from bot.git.errors import MirrorLost
from bot.loops import Loop
from bot.sessions.environments import warmth
from bot.sessions.services import Services
from bot.store import snapshots
from bot.store.snapshots import Snapshot
from sandbox.errors import SandboxError
from sandbox.execution import ExecutionEnvironment
from sandbox.primitives import EnvironmentSpec, Snapshots

log = logging.getLogger(__name__)

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
        """When one that could not be removed is tried again."""
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
        await snapshots.condemn_older(store, self._services.clock() - warmth.FRESH_SECONDS)
        for one in await snapshots.making(store):
            await self._make(one)
        now = asyncio.get_running_loop().time()
        for one in await snapshots.condemned(store):
            if self._later.get(one.name, now) <= now:
                await self._remove(one, now)

    async def _remove(self, one: Snapshot, now: float) -> None:
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

    async def _make(self, wanted: Snapshot) -> None:
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

    async def _taken(self, wanted: Snapshot) -> tuple[str, tuple[str, ...]]:
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

    async def _bring_in(self, wanted: Snapshot, environment: ExecutionEnvironment) -> tuple[str, ...]:
        folder = self._services.turn_folder(wanted.name)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        target = folder / "in.pack"
        try:
            pack = await self._services.cache.pack(wanted.base.repo_id, wanted.commit_sha, target)
            await environment.prepare(pack.path, pack.sha, pack.shallow, wanted.branch, turn=NO_TURN)
        finally:
            target.unlink(missing_ok=True)
            folder.rmdir()
        return pack.shallow
