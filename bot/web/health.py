"""Serves `/healthz` (the process lives and reaches its store) and `/readyz` (it may receive traffic, or why not)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from bot.errors import BotError
from bot.github.client import GitHubApp
from bot.loops import Loop, LoopName
from bot.replicas import Replicas
from bot.sessions.environments.meter import LABEL
from bot.settings import Secret
from bot.store import operations
from bot.store.base import Store
from bot.store.files import KeptFiles
from bot.web import overload
from bot.web.metrics import ServiceMetrics, metrics_routes
from sandbox.errors import SandboxError
from sandbox.primitives import EnvironmentProvider

T = TypeVar("T")
Check = Callable[[], Awaitable[str | None]]
"""Returns None if all is well, else a sentence for the operator without any secret."""

ALIVE_SECONDS = 5.0
SHARED = frozenset(("engine", "github", "switch", "delivery_log", "leader"))
"""Troubles that every replica has at once. `/readyz` names them, but a balancer must not turn everybody away."""
LEAST_FREE_BYTES = 256 << 20
REMEMBERED_SECONDS = 30.0
ASK_SECONDS = 5.0
LOOK_SECONDS = 1.5
"""Less than a check may take, so that what a look finds is remembered."""
LONGEST_SILENCE = 180.0
SILENT_SWEEPS = 10
NO_LEADER = "No replica leads, so nothing new starts; the log of each replica says why it does not."


def health_routes(checks: Mapping[str, Check], *, alive: Check | None = None, timeout: float = 2.0) -> list[BaseRoute]:
    """Each request runs all checks at once. `alive` covers only troubles that a restart might fix."""

    async def healthz(request: Request) -> Response:
        trouble = await _ask(alive, ALIVE_SECONDS) if alive else None
        return JSONResponse({"status": trouble or "ok"}, 503 if trouble else 200)

    async def readyz(request: Request) -> Response:
        answers = await asyncio.gather(*(_ask(check, timeout) for check in checks.values()))
        troubles = {name: answer for name, answer in zip(checks, answers, strict=True) if answer is not None}
        is_ready = troubles.keys() <= SHARED
        status = "ready" if is_ready else "not ready"
        return JSONResponse({"status": status, "troubles": troubles}, 200 if is_ready else 503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


async def _ask(check: Check, timeout: float) -> str | None:
    try:
        async with asyncio.timeout(timeout):
            return await check()
    except TimeoutError:
        return "no answer in time"
    except Exception as error:  # noqa: BLE001 - a check that breaks is a trouble, not the end of the page
        return f"broken ({type(error).__name__})"


class Health:
    """Reports little while the service starts, and everything once it is `ready`."""

    def __init__(self, store: Store, token: Secret | None, *, is_reached: bool) -> None:
        self._store = store
        self._is_reached = is_reached
        self.metrics = ServiceMetrics(store)

        async def starting() -> str | None:
            return "The service is still starting."

        self._checks: dict[str, Check] = {"start": starting}
        self._token = token

    def routes(self) -> list[BaseRoute]:
        metrics = metrics_routes(self.metrics, self._token, is_reached=self._is_reached)
        return [*health_routes(self._checks, alive=self._alive), *metrics]

    async def _alive(self) -> str | None:
        """Ignore what passes without a restart: a shortage of descriptors, a database server that is away."""
        trouble = None if self._store.is_remote else await _store_trouble(self._store)
        return None if trouble and overload.short_of_descriptors() else trouble

    def ready(self, parts: Parts, environments: EnvironmentProvider) -> None:
        self._checks.update(checks(parts))
        self._checks.pop("start", None)
        self.metrics.loops, self.metrics.replicas = parts.loops, parts.replicas
        self.metrics.turns_here = parts.turns_here

        async def sandboxes() -> int | None:
            try:
                async with asyncio.timeout(ASK_SECONDS):
                    return len(await environments.find(LABEL))
            except (SandboxError, TimeoutError):
                return None

        self.metrics.sandboxes = _Remembered(sandboxes)


@dataclass(frozen=True)
class Parts:
    """The parts of the service that the checks look at."""

    store: Store
    files: KeptFiles
    data_dir: Path
    github: GitHubApp
    loops: Mapping[LoopName, Loop]
    poll_seconds: float
    turns_here: Callable[[], int]
    """Counts the turns that this process runs."""
    replicas: Replicas | None


def checks(parts: Parts) -> dict[str, Check]:
    async def engine() -> str | None:
        if (admission := parts.loops.get("admission")) is None:  # another replica leads
            return None
        silent = admission.silent_seconds
        return f"No turn could be taken up for {silent:.0f} s; the log says why." if silent > LONGEST_SILENCE else None

    async def github() -> str | None:
        try:
            await parts.github.registration()
        except BotError as error:
            return str(error)
        return None

    async def switch() -> str | None:
        paused = await operations.paused_at(parts.store) is not None
        return "The operator has paused it: `forgehand resume` starts what is waiting." if paused else None

    async def beat() -> str | None:
        if (replicas := parts.replicas) is None or replicas.is_sure():
            return None
        lag = replicas.lag_seconds
        return f"The database has confirmed no beat of this replica for {lag:.0f} s, so it changes nothing at GitHub."

    async def leader() -> str | None:
        return NO_LEADER if parts.replicas is not None and parts.replicas.is_leaderless() else None

    return {
        "store": lambda: _store(parts),
        "files": _Remembered(lambda: _files_trouble(parts.files)),
        "engine": engine,
        "github": _Remembered(github),
        "switch": switch,
        "delivery_log": lambda: _delivery_log(parts),
        "beat": beat,
        "leader": leader,
    }


async def _store(parts: Parts) -> str | None:
    if trouble := await _store_trouble(parts.store):
        return trouble
    free = (await asyncio.to_thread(shutil.disk_usage, parts.data_dir)).free
    return f"Only {free >> 20} MiB are free on the disk with the data." if free < LEAST_FREE_BYTES else None


async def _files_trouble(files: KeptFiles) -> str | None:
    try:
        if files.home is not None:
            async with asyncio.timeout(LOOK_SECONDS):
                await files.home.look()
    except TimeoutError:
        return "The home of files did not answer in time."
    except BotError as error:
        return str(error)
    return None


async def _store_trouble(store: Store) -> str | None:
    """Read a table: a query without one would not touch the file."""
    try:
        await store.one("SELECT COUNT(*) AS n FROM switches")
    except BotError as error:
        return str(error)
    return None


async def _delivery_log(parts: Parts) -> str | None:
    loop = parts.loops.get("delivery_log")
    if not parts.poll_seconds or loop is None:
        return None
    silent, most = loop.silent_seconds, max(60.0, parts.poll_seconds * SILENT_SWEEPS)
    if loop.succeeded_at is None:
        return "GitHub's log of deliveries was not read yet."
    return f"GitHub's log of deliveries was not read for {silent:.0f} s." if silent > most else None


class _Remembered(Generic[T]):
    """Asks every 30 seconds at most, and repeats the last answer in between."""

    def __init__(self, ask: Callable[[], Awaitable[T | None]]) -> None:
        self._ask = ask
        self._asked_at = float("-inf")
        self._answer: T | None = None

    async def __call__(self) -> T | None:
        now = asyncio.get_running_loop().time()
        if now - self._asked_at > REMEMBERED_SECONDS:
            self._asked_at = now
            self._answer = await self._ask()
        return self._answer
