"""The stand-in's state: repositories and everything else, as plain objects that tests and pages may read."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bot.simulation.github import gitstore
from bot.simulation.github.accounts import Account, App, Installation, SignIn, Token
from bot.simulation.github.threads import Comment, Issue, Label, Pull, Review, ReviewComment

if TYPE_CHECKING:
    from bot.simulation.github.statuses import CommitStatus
    from bot.simulation.github.workflows import WorkflowRun

Clock = Callable[[], float]
T = TypeVar("T")
BODY_LIMIT = 65_536
ROLES = ("none", "read", "triage", "write", "maintain", "admin")


@dataclass(eq=False)
class CheckRun:
    """A check run; `history` has its (status, conclusion) pairs so far."""

    id: int
    repo: Repository
    app: App
    name: str
    head_sha: str
    status: str
    conclusion: str | None
    started_at: float
    completed_at: float | None = None
    output: dict[str, Any] = field(default_factory=dict)
    details_url: str | None = None
    external_id: str | None = None
    suite: int = 0
    actions: list[dict[str, str]] = field(default_factory=list)
    history: list[tuple[str, str | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Protection:
    """A rule that refuses pushes to branches like `pattern`, with GitHub's `code` and `lines`."""

    pattern: str
    code: str = "GH006"
    lines: tuple[str, ...] = ("Changes must be made through a pull request.",)
    reason: str = "protected branch hook declined"
    only: str = ""
    """`signatures` refuses unverified commits, `linear` merges; empty: every push."""


@dataclass(eq=False)
class Attachment:
    """A file that somebody attached to a text."""

    id: str
    repo: Repository = field(repr=False)
    content: bytes
    media_type: str


@dataclass(eq=False)
class LargeObjects:
    """The contents of one repository, by their SHA-256, and the locks on its paths."""

    held: dict[str, bytes] = field(default_factory=dict)
    arrived: dict[str, bytes] = field(default_factory=dict)
    """Contents that nobody has verified yet."""
    locks: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a path and the login of its owner."""
    lifetime: float = 600.0
    """Seconds for which an address is good."""
    ended: int = 0
    """So many of the next addresses are no longer good when they are used."""
    states_size: bool = False
    """It answers a question with a wrong size by the right one, as some servers do, instead of refusing it."""
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    """What every batch of an operation gets, as when the account has used up its quota."""

    def add(self, content: bytes) -> str:
        """Hold a content, and return its pointer."""
        oid = hashlib.sha256(content).hexdigest()
        self.held[oid] = content
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


@dataclass(eq=False)
class Repository:
    """A repository; `issues` also has the threads of pull requests."""

    id: int
    world: State = field(repr=False)
    owner: Account
    name: str
    path: Path
    private: bool
    default_branch: str
    created_at: float
    pushed_at: float
    fork_of: Repository | None = None
    archived: bool = False
    deleted: bool = False
    drafts_allowed: bool = True
    has_issues: bool = True
    max_file_bytes: int = 100 * 1024 * 1024
    grants: dict[int, str] = field(default_factory=dict)
    issues: dict[int, Issue] = field(default_factory=dict)
    gone: dict[int, Issue | None] = field(default_factory=dict)
    """Issues that were deleted (None) or became another by a transfer."""
    labels: dict[str, Label] = field(default_factory=dict)
    checks: dict[int, CheckRun] = field(default_factory=dict)
    statuses: list[CommitStatus] = field(default_factory=list)
    """The statuses in order; the last in a context counts."""
    workflows: dict[int, WorkflowRun] = field(default_factory=dict)
    protections: list[Protection] = field(default_factory=list)
    verified: set[str] = field(default_factory=set)
    """Commits with a signature that GitHub trusts."""
    signs: bool = True
    """GitHub signs the commits of its API; a GitHub Enterprise Server may not."""
    reuses_trees: bool = True
    """The API knows trees that came with a push to a ref that is no branch."""
    made_trees: set[str] = field(default_factory=set)
    known_secrets: list[str] = field(default_factory=list)
    """Texts that push protection refuses."""
    large: LargeObjects = field(default_factory=LargeObjects)
    """What Git LFS keeps."""
    pushes: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def pulls(self) -> dict[int, Pull]:
        return {number: issue.pull for number, issue in self.issues.items() if issue.pull}

    def branches(self) -> dict[str, str]:
        return gitstore.refs(self.path, "refs/heads/")

    def branch_sha(self, name: str) -> str | None:
        return gitstore.ref(self.path, f"refs/heads/{name}")

    def file(self, ref: str, path: str) -> bytes | None:
        return gitstore.file(self.path, ref, path)

    def diff(self, base: str, head: str) -> str:
        return gitstore.diff(self.path, base, head)

    def checkout_to(self, path: Path, branch: str) -> None:
        gitstore.checkout(self.path, branch, path)

    def grant(self, login: str, role: str) -> None:
        """Make somebody a collaborator, change their role, or (`none`) remove them."""
        account = self.world.user(login)
        if role == "none":
            self.grants.pop(account.id, None)
        else:
            self.grants[account.id] = ROLES[ROLES.index(role)]
        self.world.touch()

    def role(self, account: Account) -> str:
        """Return the person's permission here, as GitHub's `role_name`."""
        granted = [self.grants.get(account.id, "none")]
        if account is self.owner or self.owner.members.get(account.id) == "admin":
            granted.append("admin")
        if not self.private:
            granted.append("read")
        return max(granted, key=ROLES.index)


class State:
    """The whole state with its lookups; call `touch()` after a change to wake those who wait for one."""

    def __init__(self, root: Path, clock: Clock = time.time) -> None:
        self.root = root
        self.clock = clock
        self.url = ""
        self.at_the_browser = ""
        """The account that the sign-in page suggests to its visitor."""
        self.logs_url = ""
        self.storage_url = ""
        self.accounts: dict[int, Account] = {}
        self.repos: dict[int, Repository] = {}
        self.moved: dict[str, Repository] = {}
        self.apps: dict[int, App] = {}
        self.installations: dict[int, Installation] = {}
        self.tokens: dict[str, Token] = {}
        self.attachments: dict[str, Attachment] = {}
        self.sign_ins: dict[str, SignIn] = {}
        self.user_tokens: dict[str, SignIn] = {}
        self.manifests: dict[str, tuple[dict[str, Any], str]] = {}
        self._ids: Iterator[int] = itertools.count(100_001)
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/v3"

    def new_id(self) -> int:
        return next(self._ids)

    def touch(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def changed(self, predicate: Callable[[], T | Literal[False] | None], timeout: float = 10.0) -> T:
        """Return the predicate's first truthy answer; it is asked now and after each change."""
        async with asyncio.timeout(timeout):
            while not (answer := predicate()):
                future = asyncio.get_running_loop().create_future()
                self._waiting.append(future)
                await future
            return answer

    def account(self, login: str) -> Account | None:
        wanted = login.lower()
        return next((each for each in self.accounts.values() if each.login.lower() == wanted), None)

    def user(self, login: str, kind: str = "User") -> Account:
        """Find or create."""
        found = self.account(login)
        if found is None:
            found = Account(self.new_id(), login, kind, self.clock())
            self.accounts[found.id] = found
        return found

    def repo(self, full_name: str) -> Repository | None:
        wanted = full_name.lower()
        live = (each for each in self.repos.values() if not each.deleted)
        return next((each for each in live if each.full_name.lower() == wanted), None)

    def comment(self, repo: Repository, comment_id: int) -> Comment | None:
        found = (c for issue in repo.issues.values() for c in issue.comments if c.id == comment_id)
        return next(found, None)

    def review_comment(self, repo: Repository, comment_id: int) -> tuple[Review, ReviewComment] | None:
        reviews = (review for pull in repo.pulls.values() for review in pull.reviews)
        found = ((review, each) for review in reviews for each in review.comments if each.id == comment_id)
        return next(found, None)

    def installations_of(self, repo: Repository) -> list[Installation]:
        return [each for each in self.installations.values() if repo in each.repos and not each.deleted]
