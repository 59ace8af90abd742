"""GitHub's answers as frozen values; only `wire`, `checks` and `reviews` know their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.models import InstallationId, Person, Repo, Spot
from bot.settings import Secret


class TokenPurpose(StrEnum):
    """The use of a token, which decides which of the App's permissions it has."""

    METADATA = "metadata"
    READ_REPOSITORY = "read_repository"
    PUSH = "push"
    PUSH_WORKFLOWS = "push_workflows"
    THREAD = "thread"
    CHECKS = "checks"
    STATUSES = "statuses"
    RESOLVE = "resolve"
    MEMBERS = "members"
    ACTIONS = "actions"
    RERUN = "rerun"


@dataclass(frozen=True)
class AppIdentity:
    """The App, and the bot user that writes its comments."""

    app_id: int
    slug: str
    name: str
    owner: str
    bot_login: str
    bot_id: int
    noreply_host: str
    """The host of mail addresses by which only this GitHub knows its accounts."""

    @property
    def bot_email(self) -> str:
        """The address by which GitHub links a commit to the bot."""
        return f"{self.bot_id}+{self.bot_login}@{self.noreply_host}"


@dataclass(frozen=True)
class Registration:
    slug: str
    url: str
    permissions: Mapping[str, str]
    events: frozenset[str]


@dataclass(frozen=True)
class Converted:
    """An App that GitHub just made from a manifest."""

    app_id: int
    slug: str
    private_key: Secret
    webhook_secret: Secret
    client_id: str
    client_secret: Secret
    url: str


@dataclass(frozen=True)
class Hook:
    url: str
    content_type: str


@dataclass(frozen=True)
class InstallationView:
    id: InstallationId
    account: Person
    is_suspended: bool
    permissions: Mapping[str, str] = field(default_factory=dict)
    """What the account has granted, by GitHub's names, such as `workflows`: `write`."""


@dataclass(frozen=True)
class RepoView(Repo):
    archived: bool = False
    disabled: bool = False


@dataclass(frozen=True)
class FolderEntry:
    name: str
    is_folder: bool


@dataclass(frozen=True, kw_only=True)
class Authored:
    """Something that somebody wrote on GitHub."""

    author: Person
    body: str
    body_text: str
    """The body as GitHub renders it, without markup; empty if GitHub left it out."""
    body_html: str
    """The body as GitHub renders it; addresses of images in it are good for some minutes."""
    created_at: str
    updated_at: str
    via_app: bool
    """An App wrote it in the person's name."""


@dataclass(frozen=True, kw_only=True)
class Issue(Authored):
    """An issue, or the conversation of a pull request."""

    number: int
    title: str
    state: str
    locked: bool
    is_pull: bool
    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Comment(Authored):
    """A comment on an issue or pull request, or the words of a reviewer."""

    id: int
    kind: str = "comment"
    """A phrase for people, with the place that it comments on."""
    spot: Spot | None = None
    """Its place in the diff."""
    review_id: int | None = None


@dataclass(frozen=True)
class Pull:
    number: int
    url: str
    title: str
    body: str
    state: str
    draft: bool
    merged: bool
    author: Person
    head_branch: str
    head_sha: str
    head_repo_id: int | None
    """None if the fork was deleted."""
    head_repo: str | None
    """Its full name."""
    base_branch: str
    base_sha: str
    node_id: str = ""
    """Its id in GraphQL."""


@dataclass(frozen=True)
class MadeCommit:
    """A commit that GitHub made for us."""

    sha: str
    tree: str
    verified: bool
    reason: str
    """GitHub's word for why it is verified or not."""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileChanges:
    """The whole content of new or changed files, and the deleted paths."""

    additions: Mapping[str, bytes]
    deletions: tuple[str, ...]


@dataclass(frozen=True)
class LineComment:
    """A comment at lines of the new side of a diff; `start_line` is None if it is at one line."""

    path: str
    line: int
    start_line: int | None
    body: str


@dataclass(frozen=True)
class ReviewDraft:
    """A review that we submit as a whole."""

    sha: str | None
    """The commit under review; None: the current head."""
    event: str
    """COMMENT, REQUEST_CHANGES or APPROVE."""
    body: str
    comments: tuple[LineComment, ...] = ()


@dataclass(frozen=True)
class OwnCheckRun:
    """A check run of ours on a commit."""

    id: int
    external_id: str
    status: str
    conclusion: str | None
    annotations: int = 0


@dataclass(frozen=True)
class LoggedDelivery:
    """A line of the App's delivery log."""

    id: int
    guid: str
    event: str
    action: str | None
    status_code: int
    delivered_at: str
    installation_id: int | None
    repository_id: int | None

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status_code < 300

    @property
    def at(self) -> float:
        """Return when it was delivered, or should have been; 0 if we cannot read that."""
        try:
            return datetime.fromisoformat(self.delivered_at).timestamp()
        except ValueError:
            return 0.0


@dataclass(frozen=True)
class DeliveryPage:
    """Deliveries, newest first; the last page has no `next_cursor`."""

    items: tuple[LoggedDelivery, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Annotation:
    """A note of a check run at lines of a file."""

    path: str
    first: int
    last: int
    level: str
    """notice, warning or failure."""
    message: str
    title: str = ""


@dataclass(frozen=True)
class Button:
    """A button of a check run; GitHub takes 20, 40 and 20 characters."""

    label: str
    what: str
    identifier: str


@dataclass(frozen=True)
class CheckOutput:
    """The content of a check run; without a `conclusion` it is under way."""

    title: str
    summary: str
    conclusion: str | None = None
    details_url: str | None = None
    status: str = "in_progress"
    """The status without a conclusion: `in_progress` or `queued`."""
    annotations: tuple[Annotation, ...] = ()
    buttons: tuple[Button, ...] = ()
