"""The domain's words as types: people, places, turns and outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Self

DeliveryId = NewType("DeliveryId", str)
InstallationId = NewType("InstallationId", int)
RepoId = NewType("RepoId", int)
SessionId = NewType("SessionId", str)
"""`[a-z0-9]{8}`: names the session in branches, markers, pages and logs."""
ON_PUSH = "push:"
"""The prefix of a turn's source if only a push of commits started it."""
LEFT = "LEFT"
"""GitHub's name for the side of a diff with removed lines."""
WHOLE_SECOND = 1.0
"""The precision of GitHub's times."""


class TurnState(StrEnum):
    """The progress of a turn; its outcome is separate."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


class Step(StrEnum):
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
    """The ways a turn can end, each with its words in `words.outcomes`."""

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
    """A person's permission in a repository, as GitHub's collaborator API names it."""

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
    """A person or bot that acted on GitHub; a rename changes the login but not the id."""

    id: int
    login: str
    type: str = "User"

    @property
    def is_human(self) -> bool:
        return self.type == "User" and not self.login.endswith("[bot]")


@dataclass(frozen=True)
class Repo:
    id: RepoId
    owner: str
    name: str
    private: bool
    default_branch: str

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"


ACCOUNT_REPOSITORY = ".github"
"""The name of the repository in which an account keeps what all of its repositories share."""


@dataclass(frozen=True)
class Thread:
    """An issue or a pull request."""

    repo: Repo
    installation: InstallationId
    number: int
    is_pull: bool


@dataclass(frozen=True)
class Origin:
    delivery: DeliveryId
    name: str
    action: str
    sender: Person


@dataclass(frozen=True)
class Fork:
    """The repository of a pull request's head, if it is another one; without names if it was deleted."""

    repo_id: int | None
    full_name: str | None
    branch: str


@dataclass(frozen=True)
class Spot:
    """A place in a pull request's diff where someone wrote."""

    comment_id: int
    """The first comment of the discussion there, which replies go to."""
    path: str
    line: int | None
    start_line: int | None
    hunk: str
    """The lines of the diff around it, as GitHub gave them."""
    older: bool = False
    """True if its line was removed, or is no longer in the diff."""


@dataclass(frozen=True)
class TurnKey:
    """A turn by its session and its number, from 1."""

    session: SessionId
    n: int

    @property
    def workflow_id(self) -> str:
        return f"turn:{self.session}:{self.n}"

    @classmethod
    def parse(cls, workflow_id: str) -> Self:
        _, session, n = workflow_id.split(":")
        return cls(SessionId(session), int(n))

    @property
    def rescue_ref(self) -> str:
        """The ref, not a branch, for the work of a turn that was cut short."""
        return f"refs/forgehand/rescue/{self.session}-{self.n}"


@dataclass(frozen=True)
class TokenUsage:
    """Tokens of requests to the model, as its API counts them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return TokenUsage(*(mine + theirs for mine, theirs in both))
