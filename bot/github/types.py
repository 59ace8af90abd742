"""What GitHub tells us, as frozen values; the JSON that they come from is known in `wire` only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.models import InstallationId, Person, Repo, Spot
from bot.settings import Secret


class TokenPurpose(StrEnum):
    """What a token is for: it decides which of the App's permissions the token carries."""

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
    """Who we are on GitHub: the App, and the bot user that its comments are written by."""

    app_id: int
    slug: str
    name: str
    owner: str
    bot_login: str
    bot_id: int
    noreply_host: str
    """Behind addresses by which this GitHub, and no other, knows its accounts."""

    @property
    def bot_email(self) -> str:
        """The address by which GitHub links a commit to the bot."""
        return f"{self.bot_id}+{self.bot_login}@{self.noreply_host}"


@dataclass(frozen=True)
class Registration:
    """The App as it is registered."""

    slug: str
    url: str
    permissions: Mapping[str, str]
    events: frozenset[str]


@dataclass(frozen=True)
class Converted:
    """An App that GitHub has just made from a manifest."""

    app_id: int
    slug: str
    private_key: Secret
    webhook_secret: Secret
    client_id: str
    client_secret: Secret
    url: str
    """Of its page."""


@dataclass(frozen=True)
class Hook:
    """The App's webhook as it is set at GitHub."""

    url: str
    content_type: str


@dataclass(frozen=True)
class InstallationView:
    """An installation of the App as GitHub lists it."""

    id: InstallationId
    account: Person
    is_suspended: bool


@dataclass(frozen=True)
class RepoView(Repo):
    """A repository as it is now."""

    archived: bool = False
    disabled: bool = False


@dataclass(frozen=True)
class Issue:
    """An issue, or the conversation side of a pull request."""

    number: int
    title: str
    body: str
    body_text: str
    """The body as GitHub renders it, without markup; empty where GitHub did not give it."""
    author: Person
    state: str
    locked: bool
    is_pull: bool
    labels: tuple[str, ...]
    created_at: str
    updated_at: str
    via_app: bool = False
    """Written by an App in the person's name."""
    body_html: str = ""
    """The body as GitHub renders it; addresses of images in it are good for some minutes."""


@dataclass(frozen=True)
class Comment:
    """A comment on an issue or pull request, or what a reviewer wrote."""

    id: int
    author: Person
    body: str
    body_text: str
    created_at: str
    updated_at: str
    via_app: bool = False
    """Written by an App in the person's name."""
    body_html: str = ""
    """The body as GitHub renders it; addresses of images in it are good for some minutes."""
    kind: str = "comment"
    """In words: what it is, and of what."""
    spot: Spot | None = None
    """Where in the diff it was written."""
    review_id: int | None = None
    """The review that it belongs to."""


@dataclass(frozen=True)
class Pull:
    """A pull request; `head_repo_id` is None when its fork was deleted."""

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
    head_repo: str | None
    """Its full name."""
    base_branch: str
    base_sha: str
    node_id: str = ""
    """Its name in GraphQL."""


@dataclass(frozen=True)
class MadeCommit:
    """A commit that GitHub has made for us."""

    sha: str
    tree: str
    verified: bool
    reason: str
    """Why it is verified or not, in GitHub's word."""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileChanges:
    """Whole files that are new or changed, and paths that go."""

    additions: Mapping[str, bytes]
    deletions: tuple[str, ...]


@dataclass(frozen=True)
class LineComment:
    """What is said at lines of the new side of a diff; `start_line` None: at one line."""

    path: str
    line: int
    start_line: int | None
    body: str


@dataclass(frozen=True)
class ReviewDraft:
    """A review to be handed in as a whole. `sha` None: of the head, wherever it stands."""

    sha: str | None
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
    """How many it has."""


@dataclass(frozen=True)
class LoggedDelivery:
    """A line of the App's own delivery log."""

    id: int
    guid: str
    event: str
    action: str | None
    status_code: int
    delivered_at: str
    redelivery: bool
    installation_id: int | None
    repository_id: int | None

    @property
    def is_accepted(self) -> bool:
        """Whoever was called has answered that all is well."""
        return 200 <= self.status_code < 300

    @property
    def at(self) -> float:
        """The time when it was delivered, or should have been; 0 for one that cannot be read."""
        try:
            return datetime.fromisoformat(self.delivered_at).timestamp()
        except ValueError:
            return 0.0


@dataclass(frozen=True)
class DeliveryPage:
    """Newest first; `next_cursor` is None on the last page."""

    items: tuple[LoggedDelivery, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Annotation:
    """What a check run says at lines of a file."""

    path: str
    first: int
    last: int
    level: str
    """notice, warning or failure."""
    message: str
    title: str = ""


@dataclass(frozen=True)
class Button:
    """Of a check run; GitHub takes 20, 40 and 20 characters."""

    label: str
    what: str
    identifier: str


@dataclass(frozen=True)
class CheckOutput:
    """What a check run shows; `conclusion` None while it is under way."""

    title: str
    summary: str
    conclusion: str | None = None
    details_url: str | None = None
    status: str = "in_progress"
    """While there is no conclusion: or queued."""
    annotations: tuple[Annotation, ...] = ()
    buttons: tuple[Button, ...] = ()
