"""The demo's replicas: several services on one throw-away PostgreSQL behind a balancer.

A crash kills the replica that runs the turn, waits until another has taken over, and starts the killed one again, as an
orchestrator would."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bot import settings
from bot.cli.demo_service import ServiceProcess, placed
from bot.errors import BotError, TransientError
from bot.loops import background
from bot.settings import database
from bot.simulation.balancer import Balancer
from bot.simulation.github.accounts import App
from bot.simulation.postgres import LocalPostgres
from bot.store import replicas, sessions
from bot.store.base import Store

PATIENCE_SECONDS = 6
LOOK_SECONDS = 0.1
TAKEOVER_SECONDS = 60.0
Place = int | None
"""The number of a replica, from 1; None: nobody, or nobody knows."""


@dataclass(frozen=True)
class Sight:
    """Which replica leads, and which one runs a turn."""

    leads: Place = None
    runs: Place = None


@dataclass(frozen=True)
class Takeover:
    killed: int
    by: Place
    had_turn: bool
    seconds: float

    def __str__(self) -> str:
        what = "ran the turn" if self.had_turn else "led"
        return (
            f"Replica {self.killed} was killed while it {what}; replica {self.by} took over {self.seconds:.1f} s later."
        )


class DemoReplicas:
    crash_label = "Kill the replica at work"
    up = True
    """The balancer always answers."""

    def __init__(self, processes: list[ServiceProcess], store: Store, changed: Callable[[], None]) -> None:
        self.url = ""
        self.secrets: tuple[str, ...] = ()
        self.sight = Sight()
        self.takeovers: list[Takeover] = []
        self._processes = processes
        self._store = store
        self._changed = changed
        self._rows = Path()
        self._killed: Place = None
        self._looked = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def running(
        cls, values: Mapping[str, str], app: App, folder: Path, count: int, changed: Callable[[], None]
    ) -> AsyncIterator[DemoReplicas]:
        """Start them; `changed` is called when there is something new to show."""
        async with AsyncExitStack() as stack:
            password = secrets.token_urlsafe(24)
            server = stack.enter_context(LocalPostgres.running(password=password))
            shared = {**values, "FORGEHAND_REPLICA_SECONDS": str(PATIENCE_SECONDS)}
            shared |= {database.NAME: server.url(), database.PASSWORD: password}
            places = [placed(shared, folder / f"replica{n}") for n in range(1, count + 1)]
            processes = [await stack.enter_async_context(place) for place in places]
            stack.push_async_callback(_stop, processes)
            await processes[0].start()  # it makes the tables
            await asyncio.gather(*(process.start() for process in processes[1:]))
            balancer = await stack.enter_async_context(Balancer(partial(_urls, processes)).running())
            await balancer.finds(count)
            app.webhook_url = f"{balancer.url}/webhook"
            store = await stack.enter_async_context(Store.reading(settings.read_database(shared)))
            service = cls(processes, store, changed)
            service.url, service.secrets, service._rows = balancer.url, (password,), folder / "rows"
            await stack.enter_async_context(background(service._follow()))
            yield service

    async def crash(self) -> None:
        async with self._one_at_a_time:
            before, began = self.sight, time.monotonic()
            self._killed = number = before.runs or before.leads or 1
            await self._processes[number - 1].kill()
            self._changed()
            try:
                async with asyncio.timeout(TAKEOVER_SECONDS):
                    await self._taken_over_from(number)
            except TimeoutError:
                raise TransientError(f"No replica has taken over within {TAKEOVER_SECONDS:.0f} s.") from None
            after, seconds = self.sight, round(time.monotonic() - began, 1)
            self.takeovers.append(Takeover(number, after.runs or after.leads, before.runs is not None, seconds))
            self._killed = None
            self._changed()
            await self._processes[number - 1].start()

    async def _taken_over_from(self, number: int) -> None:
        while self.sight.runs == number or self.sight.leads in (None, number):
            self._looked.clear()
            await self._looked.wait()

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(BotError):
                seen, before = await self._look(), self.sight
                self.sight = seen
                self._looked.set()
                if seen != before:
                    self._changed()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> Sight:
        numbers = {process.replica: n for n, process in enumerate(self._processes, 1)}
        leaders = [one.id for one in await replicas.living(self._store) if one.leads]
        runners = [turn.replica for turn in await sessions.running(self._store) if turn.replica]
        return Sight(*(numbers.get(one[0]) if one else None for one in (leaders, runners)))

    @property
    def values(self) -> Mapping[str, str]:
        """Return the settings of one, as a command beside it needs them."""
        return self._processes[0].values

    @property
    def isolation(self) -> str:
        return self._processes[0].isolation

    @property
    def status(self) -> list[str]:
        """Say who leads, who took over from whom, and who runs the turn."""
        leads = f"replica {self.sight.leads} leads" if self.sight.leads else "none leads"
        said = [f"{len(self._processes)} replicas share one PostgreSQL database; {leads}.", *self.happened]
        if self._killed:
            said.append(f"Replica {self._killed} was killed; the others wait {PATIENCE_SECONDS} s for its beat …")
        elif self.sight.runs:
            said.append(f"Replica {self.sight.runs} runs the turn.")
        return said

    @property
    def happened(self) -> list[str]:
        return [str(one) for one in self.takeovers]

    def told(self) -> dict[str, Any]:
        """Return what happened to them, for a script."""
        last = self.takeovers[-1] if self.takeovers else None
        return {
            "replicas": len(self._processes),
            "killed": last and last.killed,
            "took_over": last and last.by,
            "took_over_seconds": last and last.seconds,
            "service_starts": sum(process.starts for process in self._processes),
        }

    async def stored(self) -> Path:
        """Return a file with all rows."""
        shutil.rmtree(self._rows, ignore_errors=True)
        self._rows.mkdir(mode=0o700)
        file = database.in_folder(self._rows)
        await self._store.backend.copy(file)
        return file


def _urls(processes: list[ServiceProcess]) -> list[str]:
    return [one.url for one in processes if one.url]


async def _stop(processes: list[ServiceProcess]) -> None:
    await asyncio.gather(*(process.stop() for process in processes))
