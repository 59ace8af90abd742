"""What `/readyz` asks of a running service: each answer is a sentence for the operator, or None when all is well."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.routing import BaseRoute

from bot.errors import BotError
from bot.github.client import GitHubApp
from bot.loops import Loop, LoopName
from bot.sessions.environments.strays import LABEL
from bot.settings import Secret
from bot.store import switches
from bot.store.base import Database, Store
from bot.store.rows import one
from bot.web import overload
from bot.web.health import Check, health_routes
from bot.web.metrics import Metrics, metrics_routes
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentProvider

LEAST_FREE_BYTES = 256 << 20
REMEMBERED_SECONDS = 30.0
ASK_SECONDS = 5.0
LONGEST_SILENCE = 180.0
SILENT_SWEEPS = 10


class Health:
    """What is served of the service's state: little while it starts, all of it once it is `ready`."""

    def __init__(self, store: Store, token: Secret | None, *, is_reached: bool) -> None:
        self._store = store
        self._is_reached = is_reached
        self.metrics = Metrics(store)
        self._checks: dict[str, Check] = {"start": _starting}
        self._token = token

    def routes(self) -> list[BaseRoute]:
        metrics = metrics_routes(self.metrics, self._token, is_reached=self._is_reached)
        return [*health_routes(self._checks, alive=self._alive), *metrics]

    async def _alive(self) -> str | None:
        """That descriptors are short is no reason to be started anew: it passes."""
        try:
            await self._store.read(_read)
        except BotError as error:
            return None if overload.short_of_descriptors() else str(error)
        return None

    def ready(self, parts: Parts, environments: EnvironmentProvider) -> None:
        self._checks.update(checks(parts))
        self._checks.pop("start", None)
        self.metrics.loops += parts.loops.values()
        self.metrics.sandboxes = _Alive(environments).count


async def _starting() -> str | None:
    return "The service is still starting."


@dataclass(frozen=True)
class Parts:
    """Of the service that answers."""

    store: Store
    data_dir: Path
    github: GitHubApp
    loops: Mapping[LoopName, Loop]
    poll_seconds: float


def checks(parts: Parts) -> dict[str, Check]:
    return {
        "store": lambda: _store(parts),
        "engine": lambda: _engine(parts),
        "github": _Reachable(parts.github).check,
        "switch": lambda: _switch(parts),
        "delivery_log": lambda: _delivery_log(parts),
    }


async def _store(parts: Parts) -> str | None:
    try:
        await parts.store.read(_read)
    except BotError as error:
        return str(error)
    free = (await asyncio.to_thread(shutil.disk_usage, parts.data_dir)).free
    return f"Only {free >> 20} MiB are free where the data lies." if free < LEAST_FREE_BYTES else None


def _read(db: Database) -> None:
    """Of the file: what asks for nothing in it is answered without it."""
    one(db, "SELECT COUNT(*) AS n FROM switches")


async def _engine(parts: Parts) -> str | None:
    silent = parts.loops["admission"].silent_seconds
    return f"No turn could be taken up for {silent:.0f} s; the log says why." if silent > LONGEST_SILENCE else None


async def _switch(parts: Parts) -> str | None:
    if await switches.paused_at(parts.store) is None:
        return None
    return "The operator has paused it: `forgehand resume` starts what is waiting."


async def _delivery_log(parts: Parts) -> str | None:
    if not parts.poll_seconds:
        return None
    loop = parts.loops["delivery_log"]
    silent, most = loop.silent_seconds, max(60.0, parts.poll_seconds * SILENT_SWEEPS)
    if loop.succeeded_at is None:
        return "GitHub's log of deliveries was not read yet."
    return f"GitHub's log of deliveries was not read for {silent:.0f} s." if silent > most else None


class _Alive:
    """Asked now and then too: in a cloud it costs a request."""

    def __init__(self, environments: EnvironmentProvider) -> None:
        self._environments = environments
        self._asked_at = float("-inf")
        self._count: int | None = None

    async def count(self) -> int | None:
        now = asyncio.get_running_loop().time()
        if now - self._asked_at > REMEMBERED_SECONDS:
            self._asked_at = now
            try:
                async with asyncio.timeout(ASK_SECONDS):
                    self._count = len(await self._environments.find(LABEL))
            except (SandboxError, TimeoutError):
                self._count = None
        return self._count


class _Reachable:
    """GitHub is asked now and then, however often we are."""

    def __init__(self, github: GitHubApp) -> None:
        self._github = github
        self._asked_at = float("-inf")
        self._answer: str | None = None

    async def check(self) -> str | None:
        now = asyncio.get_running_loop().time()
        if now - self._asked_at > REMEMBERED_SECONDS:
            self._asked_at = now
            try:
                await self._github.registration()
                self._answer = None
            except BotError as error:
                self._answer = str(error)
        return self._answer
