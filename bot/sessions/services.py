"""What the steps of a turn work with: services, locks, the turn's rights, its way out to the network."""

from __future__ import annotations

import asyncio
import contextlib
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bot import repo_config
from bot.git.cache import RepositoryCache
from bot.github.client import GitHubApp
from bot.live.board import LiveBoard
from bot.models import SessionId, TurnKey
from bot.outbound import Outbound, Redactor
from bot.settings import Limits, Settings
from bot.store.base import Store
from bot.store.sessions import Turn
from sandbox.agents.base import Agent, Subagents
from sandbox.egress import EgressProxy, is_own_user
from sandbox.primitives import EnvironmentProvider, Snapshots
from sandbox.runner.web import is_listed


class SessionEgress:
    """`folder`: where environments look for KEY/egress.sock; None where something else lets them out. `admits`:
    whether a user of this machine may be an environment's."""

    def __init__(
        self,
        folder: Path | None = None,
        everyones: frozenset[str] = frozenset(),
        admits: Callable[[int], bool] = is_own_user,
    ) -> None:
        self._folder = folder
        self._everyones = everyones
        self._admits = admits
        self._open: dict[str, EgressProxy] = {}
        self._opening = asyncio.Lock()

    async def open(self, environment_id: str, hosts: frozenset[str] | None) -> None:
        """Safe to repeat. After a restart it is found again where it was. None: a way out that lets nothing through."""
        if self._folder is None or hosts == frozenset():
            return
        async with self._opening:
            if environment_id in self._open:
                return
            allowed = frozenset() if hosts is None else self._everyones | hosts
            folder = self._folder / environment_id
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # where it is new: the environment made its own
            proxy = EgressProxy(folder / "egress.sock", lambda host: is_listed(host, allowed), admits=self._admits)
            await proxy.start()
            self._open[environment_id] = proxy

    async def close(self, environment_id: str) -> None:
        if proxy := self._open.pop(environment_id, None):
            await proxy.close()
            if self._folder is not None:
                with contextlib.suppress(OSError):  # its environment may have taken it away already
                    (self._folder / environment_id).rmdir()

    async def close_all(self) -> None:
        for environment_id in list(self._open):
            if proxy := self._open.pop(environment_id, None):
                await proxy.close()


class TurnSignals:
    """In-process only and losable: whoever waits looks at the store after waking, and now and then anyway."""

    def __init__(self) -> None:
        self._events: dict[TurnKey, asyncio.Event] = {}

    def poke(self, key: TurnKey) -> None:
        if event := self._events.get(key):
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
    """In-process only: what must hold across a crash is decided in the store."""

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
    snapshots: Snapshots | None = None
    """Where environments can start from one."""
    signals: TurnSignals = field(default_factory=TurnSignals)
    environment_locks: Locks = field(default_factory=Locks)
    egress: SessionEgress = field(default_factory=SessionEgress)
    disks: tuple[Path, ...] = ()
    """Folders of the host where environments write, beside its data directory."""
    clock: Callable[[], float] = time.time

    def turn_folder(self, workflow_id: str) -> Path:
        """Files of one turn on the host: its bundle, its pack. Removed when it settles, but for what was rescued."""
        return self.settings.data_dir / "turns" / workflow_id.replace(":", "-")

    def made_turn_folder(self, workflow_id: str) -> Path:
        folder = self.turn_folder(workflow_id)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder


WRITING_TOOLS = ("Edit", "Write", "NotebookEdit")


@dataclass(frozen=True)
class Rights:
    permission: str
    """auto, ask or plan."""
    allowed: tuple[str, ...]
    denied: tuple[str, ...]


def allowed_subagents(turn: Turn, limits: Limits) -> Subagents:
    config = repo_config.load(turn.config)
    most, at_once = config.subagents.within(limits.subagents, limits.subagents_at_once)
    return Subagents(at_once=at_once, most=most)


def rights_of(turn: Turn) -> Rights:
    """Where people are asked, edits of the work tree go without asking: nothing leaves it but through our policy."""
    config = repo_config.load(turn.config)
    if turn.traits.reads:
        mode = "plan" if turn.traits.plans else "auto"
        return Rights(mode, (), (*WRITING_TOOLS, *config.tools.denied))
    if config.permission == "ask":
        return Rights("ask", (*WRITING_TOOLS, *config.tools.allowed), config.tools.denied)
    return Rights("auto", (), config.tools.denied)
