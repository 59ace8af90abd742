"""The kinds of turns at work, by name. A kind with steps of its own has a module here that ends with its `KIND`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol

from bot import repo_config
from bot.kinds import TRAITS, Traits
from bot.kinds.parts import TurnPart
from bot.live.state import LiveState
from bot.repo_config import RepoConfig
from bot.sessions.moves import End, Move, To
from bot.sessions.reading import Evidence
from bot.sessions.services import Services
from bot.sessions.starting_point import Start
from bot.store.sessions import Session, Turn

NO_WORK: dict[str, object] = {"tree_sha": None, "files_changed": None}


@dataclass(frozen=True)
class Preparation:
    """Where an agent begins, before it is composed what it reads."""

    config: RepoConfig
    base: str
    """The branch that the work is to be merged into."""
    start: Start
    request: str = ""
    """In the place of the person's own words."""
    beside: Evidence = field(default_factory=Evidence)
    """What is read beside the thread."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[TurnPart, ...] = ()

    @property
    def pinned(self) -> dict[str, Any]:
        config, start = repo_config.dump(self.config), self.start
        return {**self.columns, "base": self.base, "base_sha": start.sha, "tip_sha": start.tip, "config": config}


class TurnKind(Protocol):
    """One kind of turn in the steps. What stands here is the way of most; a kind says what it does instead."""

    traits: Traits
    schema: dict[str, Any] | None = None
    """The form of the agent's answer."""

    async def prepare(self, services: Services, turn: Turn) -> Move:
        """All of step 1, where there is no agent to prepare for."""
        return await self.ended(services, turn)

    async def pin(self, services: Services, turn: Turn) -> tuple[str, Start] | None:
        """The base branch and where the work starts; None: as for any work on the thread."""
        return None

    async def begin(self, services: Services, turn: Turn, preparation: Preparation) -> Preparation | To | End:
        """What it needs before the agent's reading is composed, or why there is nothing to do for an agent."""
        return preparation

    def result(self, turn: Turn, state: LiveState) -> tuple[str, tuple[TurnPart, ...]]:
        """The agent's last words as they are kept, and what else it has handed over."""
        return state.last_words, ()

    async def ended(self, services: Services, turn: Turn) -> Move:
        """How it ends when no work comes home: as the run did, else as an answer without a change."""
        return End(turn.outcome or self.traits.unchanged, turn.detail or "" if turn.outcome else "", NO_WORK)

    async def publish(self, services: Services, turn: Turn, session: Session) -> Move:
        """All of step 6, where no work has come home that is judged and pushed."""
        return await self.ended(services, turn)


@dataclass
class Usual(TurnKind):
    """Goes the way of most."""

    traits: Traits


_OWN = {one.name for one in iter_modules(__path__)}
KINDS: dict[str, TurnKind] = {
    name: import_module(f"{__name__}.{name}").KIND if name in _OWN else Usual(traits) for name, traits in TRAITS.items()
}


def of(turn: Turn) -> TurnKind:
    return KINDS[turn.kind]
