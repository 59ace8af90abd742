"""The services that the steps of a turn work with, and what wakes or locks them in this process."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot.git.cache import RepositoryCache
from bot.github.client import GitHubApp
from bot.live.board import LiveBoard
from bot.models import SessionId, TurnKey
from bot.outbound import Outbound, Redactor
from bot.sessions.rights import SessionEgress
from bot.settings import Settings
from bot.store.base import Store
from bot.store.files import KeptFiles
from bot.store.operations import DAY
from sandbox.agents.base import Agent
from sandbox.primitives import EnvironmentProvider, Snapshots

APPROVAL_DAYS = 7
"""For so long a plan, a held commit or a fork's work waits for a yes."""


class TurnSignals:
    """In-process only and losable: a waiter looks at the store after waking, and now and then anyway."""

    def __init__(self) -> None:
        self._events: dict[TurnKey, asyncio.Event] = {}

    def poke(self, key: TurnKey) -> None:
        if event := self._events.get(key):
            event.set()

    def poke_all(self) -> None:
        for event in self._events.values():
            event.set()

    async def wait(self, key: TurnKey, timeout: float) -> None:
        event = self._events.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(timeout):
                await event.wait()
        except TimeoutError:
            pass
        event.clear()

    def forget(self, key: TurnKey) -> None:
        self._events.pop(key, None)


class Locks:
    """In-process only: the store decides everything that must survive a crash."""

    def __init__(self) -> None:
        self._locks: weakref.WeakValueDictionary[SessionId, asyncio.Lock] = weakref.WeakValueDictionary()

    def of(self, session: SessionId) -> asyncio.Lock:
        return self._locks.setdefault(session, asyncio.Lock())


@dataclass(frozen=True)
class Services:
    settings: Settings
    store: Store
    github: GitHubApp
    outbound: Outbound
    redactor: Redactor
    cache: RepositoryCache
    environments: EnvironmentProvider
    agent: Agent
    board: LiveBoard
    files: KeptFiles
    snapshots: Snapshots | None = None
    """None if environments cannot start from one."""
    signals: TurnSignals = field(default_factory=TurnSignals)
    environment_locks: Locks = field(default_factory=Locks)
    egress: SessionEgress = field(default_factory=SessionEgress)
    disks: tuple[Path, ...] = ()
    """Folders of the host where environments write, beside its data directory."""
    here: str | None = None
    """This replica's data directory, if other replicas do not reach the environments in it."""
    clock: Callable[[], float] = time.time

    def turn_folder(self, workflow_id: str) -> Path:
        """Return the place for files of one turn on the host: its bundle, its pack. Settling removes it."""
        return self.settings.data_dir / "turns" / workflow_id.replace(":", "-")

    def name_of(self, path: Path) -> str:
        """Name a file below the data directory as `files` knows it."""
        return path.relative_to(self.settings.data_dir).as_posix()

    def made_turn_folder(self, workflow_id: str) -> Path:
        folder = self.turn_folder(workflow_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def approval_deadline(self) -> float:
        return self.clock() + APPROVAL_DAYS * DAY
