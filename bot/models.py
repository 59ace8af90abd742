"""The words of the domain as types: who, where, what was asked, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

DeliveryId = NewType("DeliveryId", str)
InstallationId = NewType("InstallationId", int)
RepoId = NewType("RepoId", int)
SessionId = NewType("SessionId", str)
"""`[a-z0-9]{8}`: names the session in branches, markers, pages and logs."""

ON_PUSH = "push:"
"""How the source of a turn begins that nobody asked for but by pushing commits."""

LEFT = "LEFT"
"""What GitHub calls the side of a diff on which lines stand that were taken away."""

WHOLE_SECOND = 1.0
"""GitHub says when something was written, and leaves the fraction out."""


class TurnState(StrEnum):
    """Where a turn stands in our hands; how it went is its outcome."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


class Step(StrEnum):
    """The seven steps of a turn, in their order."""

    PREPARE = "prepare"
    FURNISH = "furnish"
    WORK = "work"
    COLLECT = "collect"
    VERIFY = "verify"
    PUBLISH = "publish"
    SETTLE = "settle"

    @property
    def number(self) -> int:
        return list(Step).index(self) + 1


class Outcome(StrEnum):
    """How a turn ended: a closed set, each with its own wording in `words.outcomes`."""

    PULL_REQUEST = "pull_request"
    PUSHED = "pushed"
    ANSWERED = "answered"
    REVIEWED = "reviewed"
    PLANNED = "planned"
    NO_CHANGE = "no_change"
    NEEDS_INPUT = "needs_input"
    STOPPED = "stopped"
    OVER_BUDGET = "over_budget"
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    FAILED = "failed"
    REFUSED = "refused"


PUSHED = (Outcome.PULL_REQUEST, Outcome.PUSHED)
"""Outcomes after which the work is on a branch."""


class Permission(StrEnum):
    """What a person may do in a repository, as GitHub's collaborator API answers it."""

    ADMIN = "admin"
    MAINTAIN = "maintain"
    WRITE = "write"
    TRIAGE = "triage"
    READ = "read"
    NONE = "none"

    @property
    def may_write(self) -> bool:
        return self in (Permission.ADMIN, Permission.MAINTAIN, Permission.WRITE)


@dataclass(frozen=True)
class Person:
    """Somebody (or something) that acted on GitHub; the id stays when the login is renamed."""

    id: int
    login: str
    type: str = "User"

    @property
    def is_human(self) -> bool:
        return self.type == "User" and not self.login.endswith("[bot]")


@dataclass(frozen=True)
class Repo:
    """A repository as a payload or the API names it."""

    id: RepoId
    owner: str
    name: str
    private: bool
    default_branch: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True)
class Thread:
    """An issue or a pull request."""

    repo: Repo
    installation: InstallationId
    number: int
    is_pull: bool


@dataclass(frozen=True)
class Origin:
    """The facts of the delivery that an event came by."""

    delivery: DeliveryId
    name: str
    action: str
    sender: Person


@dataclass(frozen=True)
class Fork:
    """Where the head of a pull request lives that is not in its repository; without names where that was deleted."""

    repo_id: int | None
    full_name: str | None
    branch: str


@dataclass(frozen=True)
class Spot:
    """A place in the diff of a pull request at which somebody wrote."""

    comment_id: int
    """The comment with which the discussion there began: replies go to it."""
    path: str
    line: int | None
    start_line: int | None
    hunk: str
    """The lines of the diff around it, as GitHub gave them."""
    older: bool = False
    """Its line is one of an older version: it was taken away, or is no longer in the diff."""


@dataclass(frozen=True)
class TurnKey:
    """One run of the agent in a session, numbered from 1."""

    session: SessionId
    n: int

    @property
    def workflow_id(self) -> str:
        return f"turn:{self.session}:{self.n}"

    @property
    def rescue_ref(self) -> str:
        """Names the ref, which is no branch, that gets the work of a turn that was cut short."""
        return f"refs/forgehand/rescue/{self.session}-{self.n}"


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of one or more requests at the model, as its API counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )
