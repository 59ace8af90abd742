"""The rows that leave the store, as frozen values, and what a new turn needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from bot.commands.options import NO_OPTIONS, Options
from bot.funds import Raise
from bot.kinds import TRAITS, Traits, parts
from bot.kinds.parts import P, TurnPart
from bot.models import (
    ON_PUSH,
    DeliveryId,
    InstallationId,
    Outcome,
    Repo,
    RepoId,
    SessionId,
    Spot,
    Step,
    Thread,
    TurnKey,
    TurnState,
)
from bot.store.base import Store
from bot.store.rows import Row, clean, many

R = TypeVar("R", bound="Record")


class Record:
    """Made from a row by the names of its fields; their types say what is JSON and what is a flag."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def of(cls: type[R], row: Row) -> R:
        found = {
            name: read(row[name]) if row[name] is not None else None for name, read in _readers(cast(Hashable, cls))
        }
        return msgspec.convert(found, cls)

    @classmethod
    async def one(cls: type[R], store: Store, sql: str, /, **values: Any) -> R | None:
        row = await store.one(sql, **values)
        return cls.of(row) if row else None

    @classmethod
    async def many(cls: type[R], store: Store, sql: str, /, **values: Any) -> list[R]:
        """Read all rows; many are converted in the reader's thread."""
        return await store.read(lambda db: [cls.of(row) for row in many(db, sql, **values)])


@dataclass(frozen=True)
class OfRepo(Record):
    """What a row says of the repository that it belongs to."""

    repo_id: RepoId
    installation_id: InstallationId
    owner: str
    name: str
    private: bool
    default_branch: str

    @property
    def repo(self) -> Repo:
        return Repo(self.repo_id, self.owner, self.name, self.private, self.default_branch)


@dataclass(frozen=True)
class Session(OfRepo):
    """A conversation on one thread."""

    id: SessionId
    thread_id: str
    number: int
    is_pull: bool
    agent_session_id: str | None
    branch: str | None
    pull_number: int | None
    pull_url: str | None
    environment_id: str | None
    budget_usd: float | None
    """What its repository lets it spend, as it was last read."""
    created_at: float

    @property
    def thread(self) -> Thread:
        """The issue (or pull request) that the conversation hangs on."""
        return Thread(self.repo, self.installation_id, self.number, self.is_pull)


@dataclass(frozen=True)
class Queued(Record):
    """What was asked, and how far it is: columns that no step sets."""

    session_id: SessionId
    n: int
    thread_id: str
    repo_id: RepoId
    installation_id: InstallationId
    state: TurnState
    step: Step
    outcome: Outcome | None
    detail: str | None
    asked_as: str
    """Its kind when it was asked for: where the repository wants a plan first, it begins as one."""
    prompt: str
    requester: str
    requester_id: int
    number: int
    source: str
    source_comment: int | None
    asked_at: float | None
    """By GitHub's clock."""
    thread_sha256: str | None
    """Of the thread's own title and text at that moment."""
    approval: str | None
    """What it was begun with a yes to."""
    options: Options | None
    """What was set for it, where anything was."""
    stop_requested: str | None
    stop_at: float | None
    push_began: float | None
    """From then on a wish to stop comes too late."""
    stream_skipped: int
    rescue_gone: bool
    """When that is taken away; None: nobody was told."""
    created_at: float
    started_at: float | None
    finished_at: float | None
    step_times: dict[str, float]


@dataclass(frozen=True)
class Turn(Queued):
    """One run of the agent, with where it belongs. The fields that stand here are what a step may set."""

    kind: str
    model: str
    budget_usd: float
    """Of this turn alone; 0: none, what the session may spend is the limit."""
    timeout_seconds: float
    base: str | None
    base_sha: str | None
    tip_sha: str | None
    furnish_seconds: float | None
    config: str | None
    resumed: bool
    untrusted: bool
    """The agent has read words of people without write access."""
    resumptions: int
    """How often it was begun anew after it was lost."""
    mending: int | None
    """The attempt with which it was given what the checks had found, if it was."""
    checkpoint_at: float | None
    """When what it has done was last brought home, while it works."""
    agent_result: str | None
    agent_error: str | None
    exit_code: int | None
    stream_offset: int
    tree_sha: str | None
    commit_sha: str | None
    files_changed: tuple[dict[str, Any], ...] | None
    verified: tuple[dict[str, Any], ...] | None
    rescue_ref: str | None
    rescue_until: float | None
    kept: str | None
    attempts: int
    work_started_at: float | None
    pulse_at: float | None
    new_branch: bool
    """Asked for: a branch and a pull request beside those that it works on."""
    branch: str | None
    """To which its work went; None: the session's."""
    pull_number: int | None
    """What it opened for such a branch."""

    payload: dict[str, dict[str, Any]]
    """Its parts (`bot.kinds`), by their names."""

    @property
    def traits(self) -> Traits:
        return TRAITS[self.kind]

    def part(self, of: type[P]) -> P:
        """An empty one where the turn has none."""
        return parts.part(self.payload, of)

    def having(self, *more: TurnPart, **columns: Any) -> Turn:
        return replace(self, payload=parts.with_parts(self.payload, more), **columns)

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.n)

    @property
    def is_for_a_push(self) -> bool:
        """Nobody asked for it but by pushing commits: a further review."""
        return self.source.startswith(ON_PUSH)

    @property
    def attempt(self) -> int:
        """How many of its runs came before the present one: those that were lost, and the one that was checked."""
        return self.resumptions + (self.mending is not None)


@dataclass(frozen=True)
class NewTurn:
    """What somebody asked for, ready to be queued."""

    thread: Thread
    """Where it was asked; a pull request of ours is led back to its issue."""
    kind: str
    prompt: str
    requester: str
    requester_id: int
    source: str
    """`comment:ID`, `issue:ID`, ...: what asked; asked twice is one turn."""
    model: str
    budget_usd: float
    timeout_seconds: float
    more: Raise | None = None
    """To be added to what the session may spend."""
    source_comment: int | None = None
    asked_at: float | None = None
    thread_sha256: str | None = None
    base: str | None = None
    approval: str | None = None
    spot: Spot | None = None
    head_sha: str | None = None
    """The commit at which a check run shows the turn."""
    new_branch: bool = False
    options: Options = NO_OPTIONS
    """As they were said; what comes of them stands above."""
    discussions: tuple[Spot, ...] = ()
    delivery: DeliveryId | None = None
    """Settled as acted upon in the same transaction."""


@dataclass(frozen=True)
class SessionSummary(Record):
    """A line of `sessions list`; state and outcome are those of the last turn."""

    id: SessionId
    repo: str
    number: int
    state: TurnState
    outcome: Outcome | None
    cost_usd: float
    turns: int
    requester: str
    pull_url: str | None
    created_at: float
    finished_at: float | None


def stored(value: Any) -> Any:
    """As a column holds it, read back by `Record.of`."""
    if value is None or isinstance(value, str | int | float):
        return int(value) if isinstance(value, bool) else value
    return msgspec.json.encode(_cleaned(msgspec.to_builtins(value))).decode()


def _cleaned(value: Any) -> Any:
    """JSON has no place for a lone surrogate, which a text of others may hold."""
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    return clean(value) if isinstance(value, str) else value


@cache
def _readers(cls: Hashable) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    hints = get_type_hints(cls).items()
    return tuple((name, _reader(hint)) for name, hint in hints if get_origin(hint) is not ClassVar)


def _reader(hint: Any) -> Callable[[Any], Any]:
    """By the type of a field; a second type beside None is not foreseen."""
    if get_origin(hint) in (Union, UnionType):
        [hint] = [one for one in get_args(hint) if one is not NoneType]
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if hint is bool:
        return bool
    return _as_is if isinstance(hint, type) and issubclass(hint, str | int | float) else msgspec.json.decode


def _as_is(value: Any) -> Any:
    return value
