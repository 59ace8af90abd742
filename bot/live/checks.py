"""Keeps the check runs true to the store: whatever has changed there is told at its commit, also after a crash."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from bot.errors import BotError, TransientError
from bot.live import check_words
from bot.loops import Loop
from bot.models import InstallationId
from bot.outbound import Outbound
from bot.store import checks, sessions
from bot.store.base import Store
from bot.store.checks import Check

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
PAUSE_SECONDS = 2.0


class CheckBoard:
    """One writer an installation, as for the comments: a slow GitHub of one holds up no other."""

    def __init__(self, store: Store, outbound: Outbound) -> None:
        self._store = store
        self._outbound = outbound
        self._writers: dict[InstallationId, asyncio.Task[None]] = {}
        self.loop = Loop("check_runs", self._look, LOOK_SECONDS, rest_seconds=PAUSE_SECONDS)

    async def _look(self) -> None:
        self._writers = {one: writer for one, writer in self._writers.items() if not writer.done()}
        due: defaultdict[InstallationId, list[Check]] = defaultdict(list)
        for check in await checks.due(self._store):
            due[check.installation_id].append(check)
        for installation in due.keys() - self._writers.keys():
            self._writers[installation] = self.loop.begin(self._write(due[installation]))

    async def _write(self, due: Sequence[Check]) -> None:
        """One that cannot be told must not silence the others."""
        pause = 0.0
        for check in due:
            try:
                pause = max(pause, await self._one(check))
            except Exception:  # a bug, or the store's
                log.exception("a check run cannot be told", extra={"turn": check.key.workflow_id})
                pause = max(pause, PAUSE_SECONDS)
        await asyncio.sleep(pause)

    async def _one(self, check: Check) -> float:
        """How long to leave GitHub alone afterwards."""
        try:
            await self._tell(check)
        except TransientError as error:
            log.warning("a check run waits", extra={"turn": check.key.workflow_id, "error": str(error)})
            return error.retry_after or PAUSE_SECONDS
        except BotError as error:  # without the permission, say: nobody has to do without the review for that
            log.warning("a check run cannot be told", extra={"turn": check.key.workflow_id, "error": str(error)})
            await checks.refused(self._store, check)
            return PAUSE_SECONDS
        await checks.told(self._store, check)
        return 0.0

    async def _tell(self, check: Check) -> None:
        turn = await sessions.turn(self._store, check.key)
        home = (await sessions.session(self._store, check.session_id)).thread
        await self._outbound.check(
            replace(home, number=turn.number),
            sha=check.sha,
            name=check_words.NAME,
            external_id=f"{check.session_id}-{check.turn}",
            output=check_words.output(turn, check.wanted),
        )
