"""Serves `/healthz` (the process lives and has its store) and `/readyz` (it can work, or says what is missing)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import BotError
from bot.github.client import GitHubApp
from bot.loops import Loop, LoopName
from bot.sessions.environments.meter import LABEL
from bot.settings import Secret
from bot.store import operations
from bot.store.base import Database, Store
from bot.store.rows import one
from bot.web import overload
from bot.web.metrics import ServiceMetrics, metrics_routes
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentProvider

Check = Callable[[], Awaitable[str | None]]
"""None when all is well, else a sentence that an operator understands and that holds no secret."""


ALIVE_SECONDS = 5.0


def health_routes(checks: Mapping[str, Check], *, alive: Check | None = None, timeout: float = 2.0) -> list[BaseRoute]:
    """Checks run at every question, all at once. `alive` is what a supervisor's restart might mend."""

    async def healthz(request: Request) -> Response:
        trouble = await _ask(alive, ALIVE_SECONDS) if alive else None
        return JSONResponse({"status": trouble or "ok"}, 503 if trouble else 200)

    async def readyz(request: Request) -> Response:
        answers = await asyncio.gather(*(_ask(check, timeout) for check in checks.values()))
        troubles = {name: answer for name, answer in zip(checks, answers, strict=True) if answer is not None}
        status = "not ready" if troubles else "ready"
        return JSONResponse({"status": status, "troubles": troubles}, 503 if troubles else 200)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


async def _ask(check: Check, timeout: float) -> str | None:
    try:
        async with asyncio.timeout(timeout):
            return await check()
    except TimeoutError:
        return "no answer in time"
    except Exception as error:  # noqa: BLE001 - a check that breaks is a trouble, not the end of the page
        return f"broken ({type(error).__name__})"


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
        self.metrics = ServiceMetrics(store)
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
    if await operations.paused_at(parts.store) is None:
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
