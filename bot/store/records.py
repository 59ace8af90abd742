"""Rows as frozen values, and what a new turn needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, NewType, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from bot.commands.options import NO_OPTIONS, Options
from bot.funds import Raise
from bot.kinds import TRAITS, Traits, shape
from bot.kinds.shape import P, TurnPart
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
    """A value made from a row by the names and types of its fields; structured types are stored as JSON."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def of(cls: type[R], row: Row) -> R:
        readers = _readers(cast(Hashable, cls))
        values = {name: read(row[name]) if read and row[name] is not None else row[name] for name, read in readers}
        return msgspec.convert(values, cls)

    @classmethod
    async def one(cls: type[R], store: Store, sql: str, /, **values: Any) -> R | None:
        row = await store.one(sql, **values)
        return cls.of(row) if row else None

    @classmethod
    async def many(cls: type[R], store: Store, sql: str, /, **values: Any) -> list[R]:
        """Read all rows; many are converted in the reader's thread."""
        return await store.read(lambda db: [cls.of(row) for row in many(db, sql, **values)], single=True)


@dataclass(frozen=True)
class OfRepo(Record):
    """A row with the columns of its repository."""

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
class OfTurn(Record):
    """A row that belongs to a turn."""

    session_id: SessionId
    turn: int

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.turn)


@dataclass(frozen=True)
class Session(OfRepo):
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
    """The budget that its repository's config allowed when last read."""
    created_at: float

    @property
    def thread(self) -> Thread:
        return Thread(self.repo, self.installation_id, self.number, self.is_pull)


@dataclass(frozen=True)
class Queued(Record):
    """A turn's request and progress: columns that no step sets."""

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
    """Its requested kind: if the repository wants a plan first, it starts as a plan."""
    prompt: str
    requester: str
    requester_id: int
    number: int
    source: str
    source_comment: int | None
    asked_at: float | None
    """GitHub's time."""
    thread_sha256: str | None
    """Digest of the thread's title and text at that moment."""
    approval: str | None
    """The approval that started it."""
    options: Options | None
    stop_requested: str | None
    stop_at: float | None
    push_began: float | None
    """From then on it is too late to stop."""
    stream_skipped: int
    rescue_gone: bool
    created_at: float
    started_at: float | None
    finished_at: float | None
    step_times: dict[str, float]


@dataclass(frozen=True)
class Turn(Queued):
    """A turn with everything about it; the fields listed here are those that a step may set."""

    kind: str
    model: str
    budget_usd: float
    """For this turn alone; 0: only the session's budget limits it."""
    timeout_seconds: float
    base: str | None
    base_sha: str | None
    tip_sha: str | None
    furnish_seconds: float | None
    config: str | None
    resumed: bool
    untrusted: bool
    """True if the agent has read words of people without write access."""
    resumptions: int
    """How often it went back to `furnish`: its agent was lost, or refused its memory."""
    mending: int | None
    """The attempt in which the agent got the failures of the checks."""
    checkpoint_at: float | None
    """When its work so far was last brought home."""
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
    """How often admission has started it."""
    work_started_at: float | None
    pulse_at: float | None
    new_branch: bool
    """True if its requester wants a separate branch and pull request."""
    branch: str | None
    """The branch that got its work; None: the session's."""
    pull_number: int | None
    """The pull request that it opened for a separate branch."""
    replica: str | None
    """The replica that runs it or ran it last; None: the only service."""

    payload: dict[str, dict[str, Any]]
    """Its parts (`bot.kinds`), by their names."""

    @property
    def traits(self) -> Traits:
        return TRAITS[self.kind]

    def part(self, of: type[P]) -> P:
        """Return the part of this type; an empty one if the turn has none."""
        return shape.part(self.payload, of)

    def having(self, *more: TurnPart, **columns: Any) -> Turn:
        return replace(self, payload=shape.with_parts(self.payload, more), **columns)

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.n)

    @property
    def is_for_a_push(self) -> bool:
        """True for a further review, which a push started."""
        return self.source.startswith(ON_PUSH)

    @property
    def attempt(self) -> int:
        """The number of the agent's run in this turn, from 0. A resumption starts another, and so do failed checks."""
        return self.resumptions + (self.mending is not None)


@dataclass(frozen=True)
class OpenTurn(Record):
    """A turn that waits or runs, for its place in the queue."""

    session_id: SessionId
    n: int
    state: TurnState
    created_at: float
    started_at: float | None
    thread_id: str
    repo_id: RepoId
    installation_id: InstallationId

    @property
    def key(self) -> TurnKey:
        return TurnKey(self.session_id, self.n)


@dataclass(frozen=True)
class NewTurn:
    """A person's request, ready to be queued."""

    thread: Thread
    """Where they asked; the store maps a pull request of ours to its issue."""
    kind: str
    prompt: str
    requester: str
    requester_id: int
    source: str
    """`comment:ID`, `issue:ID`, ...: the text that asked; one source starts one turn."""
    model: str
    budget_usd: float
    timeout_seconds: float
    more: Raise | None = None
    """Money to add to the session's budget."""
    findings: tuple[str, ...] = ()
    """The findings that it is about."""
    unasked: bool = False
    """The repository's config started it, no words of a person."""
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
    """The options as written; the fields above have their effect."""
    discussions: tuple[Spot, ...] = ()
    agreed: str | None = None
    """The approval that said yes to its price."""
    api_token: str = ""
    """The name of the API's token with which it was asked for."""
    delivery: DeliveryId | None = None
    """The delivery to settle as acted upon in the same transaction."""


@dataclass(frozen=True)
class SessionSummary(Record):
    """A line of `sessions list`, with the state and outcome of the last turn."""

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
    replica: str | None


def stored(value: Any) -> Any:
    """Turn a value into what its column holds; `Record.of` reads it back."""
    if value is None or isinstance(value, str | int | float):
        return int(value) if isinstance(value, bool) else value
    return msgspec.json.encode(_cleaned(msgspec.to_builtins(value))).decode()


def _cleaned(value: Any) -> Any:
    """Remove lone surrogates, which other people's texts may have and JSON cannot hold."""
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(one) for one in value]
    return clean(value) if isinstance(value, str) else value


@cache
def _readers(cls: Hashable) -> tuple[tuple[str, Callable[[Any], Any] | None], ...]:
    hints = get_type_hints(cls).items()
    return tuple((name, _reader(hint)) for name, hint in hints if get_origin(hint) is not ClassVar)


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    """Choose how to read a field's column by its type; None: as it is. A union may only be with None."""
    if get_origin(hint) in (Union, UnionType):
        [hint] = [one for one in get_args(hint) if one is not NoneType]
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    if hint is bool:
        return bool
    return None if isinstance(hint, type) and issubclass(hint, str | int | float) else msgspec.json.decode
