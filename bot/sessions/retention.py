"""Removes the data of repositories that were taken away, and files past their time."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from bot.loops import Loop
from bot.sessions import agent_memory, declared_checks, turn_patch
from bot.sessions.publish import rescue
from bot.sessions.services import Services
from bot.store import audit, operations, repos, sessions
from bot.store.operations import DAY
from bot.store.repos import RemovedRepo

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
TIDY_SECONDS = 3600.0
COPIES_SECONDS = 600.0
KEPT_DAYS = 30.0
"""For so long we keep work that could not be pushed, as the comment promises, even after the App was removed."""


class Retention:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._looks = 0
        self.loop = Loop("purging", self._look, LOOK_SECONDS)

    async def _look(self) -> None:
        """Tidy nothing in the first hour, which belongs to the work that waits."""
        self._looks += 1
        for gone in await repos.to_purge(self._services.store):  # those whose turns have all ended
            await self._forget(gone)
        await rescue.expire_rescues(self._services)
        if self._looks % int(TIDY_SECONDS / LOOK_SECONDS) == 0:
            await self.tidy()

    async def tidy(self) -> None:
        services, days = self._services, self._services.settings.limits.retention_days
        await operations.prune(services.store, days)
        now = services.clock()
        for old, kept_days in (
            ("kept", KEPT_DAYS),
            ("transcripts", days),
            (declared_checks.OUTPUTS, days),
            (turn_patch.FOLDER, days),
        ):
            await services.files.forget_older(old, now - kept_days * DAY)
        await services.files.sweep()

    async def _forget(self, gone: RemovedRepo) -> None:
        services, name = self._services, f"{gone.owner}/{gone.name}"
        known = await repos.sessions_of(services.store, gone.id)
        held = [agent_memory.transcript_name(one) for one in known.values() if one]
        printed = [name for one in known for name in await declared_checks.output_names(services.files, one)]
        shown = [name for one in known for name in await turn_patch.names(services.files, one)]
        turns = await repos.turns_held(services.store, gone.id)
        bundles = [rescue.kept_name(one.kept) for one in turns if one.kept and one.is_old]
        patches = [rescue.kept_name(one.patch) for one in turns if one.patch]
        await services.cache.remove(gone.id)
        gathered = [services.turn_folder(one.key.workflow_id) for one in turns]
        await services.files.forget(*bundles, *patches, *held, *printed, *shown)
        await asyncio.to_thread(_remove, gathered)
        await repos.purged(services.store, gone.id)
        said = f"{len(held)} transcripts, {len(bundles)} bundles, {len(patches)} patches"
        await audit.add(services.store, "github", "repository forgotten", name, said)
        log.info("a repository was taken away; what was held of it is gone", extra={"repo": name})


class Copies:
    """What lies on the machine of one replica beside what all share: caches, copies of files, folders of turns."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.loop = Loop("copies", self._look, COPIES_SECONDS)

    async def _look(self) -> None:
        """Remove what was forgotten for all; another replica may have done that."""
        services = self._services
        for repo in await repos.are_purged(services.store, await services.cache.held()):
            await services.cache.remove(repo)
        await services.files.forget_copies()
        running = {services.turn_folder(one.key.workflow_id) for one in await sessions.running(services.store)}
        await asyncio.to_thread(_remove_old, services.settings.data_dir / "turns", running)


def _remove_old(folder: Path, used: set[Path]) -> None:
    long_ago = time.time() - COPIES_SECONDS
    _remove(one for one in folder.glob("*") if one not in used and one.stat().st_mtime < long_ago)


def _remove(folders: Iterable[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
