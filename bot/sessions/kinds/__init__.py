"""The kinds of turns at work, by name. A kind that changes a step has a module here that ends with its `KIND`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol

from bot import repo_config
from bot.kinds import TRAITS, Traits
from bot.kinds.shape import Titled, TurnPart
from bot.live.state import LiveState
from bot.models import Step
from bot.proposal import titles
from bot.repo_config import RepoConfig
from bot.sessions.moves import End, Move, To
from bot.sessions.reading import Evidence
from bot.sessions.services import Services
from bot.sessions.starting_point import Start
from bot.store.sessions import Session, Turn

NO_WORK: dict[str, object] = {"tree_sha": None, "files_changed": None}


@dataclass(frozen=True)
class Preparation:
    """The starting point of an agent, before its reading is composed."""

    config: RepoConfig
    base: str
    """The branch to merge the work into."""
    start: Start
    request: str = ""
    """Replaces the person's own words."""
    beside: Evidence = field(default_factory=Evidence)
    """More to read, beside the thread."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[TurnPart, ...] = ()

    @property
    def pinned(self) -> dict[str, Any]:
        config, start = repo_config.dump(self.config), self.start
        return {**self.columns, "base": self.base, "base_sha": start.sha, "tip_sha": start.tip, "config": config}


class TurnKind(Protocol):
    """One kind of turn in the steps. Most kinds go this way; a module overrides what it does differently."""

    traits: Traits
    schema: dict[str, Any] | None = None
    """The form of the agent's answer."""

    async def prepare(self, services: Services, turn: Turn) -> Move:
        """Replace step 1 for a kind without an agent."""
        return await self.ended(services, turn)

    async def pin(self, services: Services, turn: Turn) -> tuple[str, Start] | None:
        """Return the base branch and the start of the work; None for the usual ones of the thread."""
        return None

    async def begin(self, services: Services, turn: Turn, preparation: Preparation) -> Preparation | To | End:
        """Prepare more before the agent's reading is composed; return a move if an agent has nothing to do."""
        return preparation

    def result(self, turn: Turn, state: LiveState) -> tuple[str, tuple[TurnPart, ...]]:
        """Return the agent's last words to keep, and everything else that it has handed over."""
        if not self.traits.changes:
            return state.last_words, ()
        title, words = titles.parted(state.last_words)
        return words, (Titled(title),)

    async def ended(self, services: Services, turn: Turn) -> Move:
        """End a turn without work as its run ended, otherwise as an answer without a change."""
        return End(turn.outcome or self.traits.unchanged, turn.detail or "" if turn.outcome else "", NO_WORK)

    async def verify(self, services: Services, turn: Turn) -> Move:
        """Replace step 5 for a kind without an agent."""
        return To(Step.PUBLISH)

    async def publish(self, services: Services, turn: Turn, session: Session) -> Move:
        """Replace step 6 for a kind whose agent changes no files."""
        return await self.ended(services, turn)


@dataclass
class Usual(TurnKind):
    traits: Traits


_OWN = {one.name for one in iter_modules(__path__)}
KINDS: dict[str, TurnKind] = {
    name: import_module(f"{__name__}.{name}").KIND if name in _OWN else Usual(traits) for name, traits in TRAITS.items()
}


def of(turn: Turn) -> TurnKind:
    return KINDS[turn.kind]
