"""The stand-in's threads: issues and pull requests, with their comments, reactions and reviews."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.simulation.github.accounts import Account, App

if TYPE_CHECKING:
    from bot.simulation.github.state import Repository


@dataclass(eq=False)
class Reaction:
    id: int
    user: Account
    content: str
    created_at: float


@dataclass(eq=False)
class Label:
    id: int
    name: str
    color: str = "ededed"


@dataclass(eq=False)
class Comment:
    """A comment on a thread; `history` has every body so far."""

    id: int
    issue: Issue
    author: Account
    body: str
    created_at: float
    updated_at: float
    app: App | None = None
    history: list[tuple[float, str]] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    deleted: bool = False


@dataclass(eq=False)
class Issue:
    """A thread: an issue, or the conversation of a pull request (then `pull` is set)."""

    id: int
    repo: Repository
    number: int
    title: str
    body: str | None
    author: Account
    created_at: float
    updated_at: float
    state: str = "open"
    locked: bool = False
    closed_at: float | None = None
    app: App | None = None
    labels: list[Label] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    history: list[tuple[float, str]] = field(default_factory=list)
    pull: Pull | None = None


@dataclass(eq=False)
class Pull:
    """A pull request beside its thread; its head follows the branch while it is open."""

    issue: Issue
    head_repo: Repository | None
    head: str
    head_sha: str
    base: str
    base_sha: str
    draft: bool = False
    merged_at: float | None = None
    merged_by: Account | None = None
    reviews: list[Review] = field(default_factory=list)
    requested: list[Account] = field(default_factory=list)
    requested_teams: list[str] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.issue.number

    @property
    def title(self) -> str:
        return self.issue.title

    @property
    def body(self) -> str | None:
        return self.issue.body

    @property
    def state(self) -> str:
        return self.issue.state

    @property
    def label(self) -> str:
        owner = self.head_repo.owner.login if self.head_repo else "unknown"
        return f"{owner}:{self.head}"


@dataclass(eq=False)
class Review:
    id: int
    pull: Pull
    author: Account
    state: str
    body: str
    commit_id: str
    submitted_at: float
    comments: list[ReviewComment] = field(default_factory=list)


@dataclass(eq=False)
class ReviewComment:
    id: int
    path: str
    body: str
    line: int
    side: str
    start_line: int | None
    created_at: float
    hunk: str = ""
    reply_to: ReviewComment | None = None
    """The discussion's first comment; None for that comment itself."""
    resolved_by: Account | None = None
    """The person who resolved the discussion that began here."""
    reactions: list[Reaction] = field(default_factory=list)
