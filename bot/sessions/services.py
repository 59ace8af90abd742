"""What the steps of a turn work with, put together once by the composition root."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot.git.cache import RepositoryCache
from bot.github.client import GitHubApp
from bot.live.board import LiveBoard
from bot.outbound import Outbound, Redactor
from bot.sessions.locks import Locks
from bot.sessions.signals import TurnSignals
from bot.sessions.ways import SessionEgress
from bot.settings import Settings
from bot.store.base import Store
from sandbox.agents.base import Agent
from sandbox.primitives import EnvironmentProvider, Snapshots


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
    snapshots: Snapshots | None = None
    """Where environments can start from one."""
    signals: TurnSignals = field(default_factory=TurnSignals)
    environment_locks: Locks = field(default_factory=Locks)
    ways: SessionEgress = field(default_factory=SessionEgress)
    disks: tuple[Path, ...] = ()
    """Folders of the host where environments write, beside its data directory."""
    clock: Callable[[], float] = time.time

    def turn_folder(self, workflow_id: str) -> Path:
        """Files of one turn on the host: its bundle, its pack. Removed when it settles, but for what was rescued."""
        return self.settings.data_dir / "turns" / workflow_id.replace(":", "-")
