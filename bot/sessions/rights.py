"""Decides what a session may do: the tools and sub-agents of its agent, and the hosts that its environment reaches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bot import repo_config
from bot.sessions.money.budget import canonical, full_name
from bot.settings import Limits
from bot.store.sessions import Turn
from sandbox.agents.base import Subagents
from sandbox.egress import EgressProxy, is_own_user
from sandbox.runner.web import is_listed

WRITING_TOOLS = ("Edit", "Write", "NotebookEdit")


@dataclass(frozen=True)
class Rights:
    permission: str
    """auto, ask or plan."""
    allowed: tuple[str, ...]
    denied: tuple[str, ...]


def rights_of(turn: Turn) -> Rights:
    config = repo_config.load(turn.config)
    if turn.traits.reads:
        mode = "plan" if turn.traits.plans else "auto"
        return Rights(mode, (), (*WRITING_TOOLS, *config.tools.denied))
    if config.permission == "ask":  # edits need no question: only our policy lets the work tree's content out
        return Rights("ask", (*WRITING_TOOLS, *config.tools.allowed), config.tools.denied)
    return Rights("auto", (), config.tools.denied)


def fallback_of(turn: Turn) -> str | None:
    """Return the model that goes on when the turn's own is overloaded or not available; None if it has no other."""
    said = turn.options.fallback if turn.options else None
    found = said or repo_config.load(turn.config).fallback
    return None if found is None or canonical(found) == canonical(turn.model) else full_name(found)


def models_of(turn: Turn) -> tuple[str, ...]:
    """Return the models that the turn may ask, its own first."""
    fallback = fallback_of(turn)
    return (turn.model,) if fallback is None else (turn.model, fallback)


def effort_of(turn: Turn) -> str | None:
    """Return how hard the model shall think: as the person said, else the repository, else the kind."""
    said = turn.options.effort if turn.options else None
    return said or repo_config.load(turn.config).effort or turn.traits.effort


def allowed_subagents(turn: Turn, limits: Limits) -> Subagents:
    most, at_once = repo_config.load(turn.config).subagents.within(limits.subagents, limits.subagents_at_once)
    return Subagents(at_once=at_once, most=most)


class SessionEgress:
    def __init__(
        self,
        folder: Path | None = None,
        everyones: frozenset[str] = frozenset(),
        admits: Callable[[int], bool] = is_own_user,
    ) -> None:
        """`folder`: environments look there for KEY/egress.sock; None if something else lets them out.
        `admits` decides whether a user of this machine may be an environment's."""
        self._folder = folder
        self._everyones = everyones
        self._admits = admits
        self._open: dict[str, EgressProxy] = {}
        self._opening = asyncio.Lock()

    async def open(self, environment_id: str, hosts: frozenset[str] | None) -> None:
        """Safe to repeat, also after a restart. `hosts`: None opens a way out that lets nothing through."""
        if self._folder is None or hosts == frozenset():
            return
        async with self._opening:
            if environment_id in self._open:
                return
            allowed = frozenset() if hosts is None else self._everyones | hosts
            folder = self._folder / environment_id
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # an existing environment has made its own
            proxy = EgressProxy(folder / "egress.sock", lambda host: is_listed(host, allowed), admits=self._admits)
            await proxy.start()
            self._open[environment_id] = proxy

    async def close(self, environment_id: str) -> None:
        if proxy := self._open.pop(environment_id, None):
            await proxy.close()
            if self._folder is not None:
                with contextlib.suppress(OSError):  # its environment may have removed it already
                    (self._folder / environment_id).rmdir()

    async def close_all(self) -> None:
        for environment_id in list(self._open):
            if proxy := self._open.pop(environment_id, None):
                await proxy.close()
