"""Turns GitHub's webhook payloads into our events; no other package sees their JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, ValidationError

from bot.events import accounts, api, checks, threads
from bot.events.accounts import AccessChanged, AccountRepositoryPushed, InstallationChanged
from bot.events.api import ApiAsked
from bot.events.checks import CheckAsked, CheckEnded
from bot.events.ignored import Ignored, useless
from bot.events.threads import IssueToggled, Remark, ThreadChanged
from bot.models import DeliveryId, Person, Repo, RepoId

SUBSCRIBED_EVENTS = frozenset(
    (
        "check_run",
        "issue_comment",
        "issues",
        "member",
        "organization",
        "pull_request",
        "pull_request_review",
        "pull_request_review_comment",
        "push",
        "status",
    )
)
"""The list in app.yml."""
AUTOMATIC_EVENTS = frozenset(("github_app_authorization", "installation", "installation_repositories"))
"""GitHub sends these to every App; a manifest that names them is refused."""
HANDLED_EVENTS = SUBSCRIBED_EVENTS | AUTOMATIC_EVENTS

Event = (
    Remark
    | CheckAsked
    | CheckEnded
    | ThreadChanged
    | IssueToggled
    | InstallationChanged
    | AccessChanged
    | AccountRepositoryPushed
    | ApiAsked
    | Ignored
)


def decode(name: str, body: bytes | str, *, delivery: DeliveryId, now: float) -> Event:
    """Read a delivery with a valid signature; no body makes it raise."""
    try:
        if name in accounts.ABOUT_PEOPLE:
            return accounts.decode_access(name, body, delivery)
        if name in AUTOMATIC_EVENTS:
            return accounts.decode_installation(name, body, delivery)
        if name == accounts.PUSH:
            return accounts.decode_push(body, delivery)
        if name in checks.EVENTS:
            return checks.decode(name, body, delivery)
        if name in SUBSCRIBED_EVENTS or name == api.EVENT:
            return api.decode(body, delivery) if name == api.EVENT else threads.decode(name, body, delivery, now)
    except msgspec.ValidationError as error:
        return Ignored(delivery, f"the payload of `{name}` lacks something that we need: {error}"[:300])
    except (ValueError, RecursionError, OverflowError):  # not JSON; msgspec's errors are ValueErrors
        return Ignored(delivery, f"the payload of `{name}` cannot be read as JSON")
    return useless(delivery, name)


Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Name = Annotated[str, Meta(min_length=1, max_length=300)]


class User(Struct):
    id: Id
    login: Name
    type: str = ""


class Numbered(Struct):
    """An App or an installation."""

    id: Id


class Owner(Struct):
    login: Name


class Repository(Struct):
    id: Id
    name: Name
    owner: Owner
    default_branch: Name
    private: bool = True
    archived: bool = False


class AuthoredPayload(Struct):
    user: User | None = None
    body: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    submitted_at: datetime | None = None
    performed_via_github_app: Numbered | None = None


class Text(AuthoredPayload, kw_only=True):
    """A comment or a review; fields from `path` on belong to a comment on a line of a diff."""

    id: Id
    path: str | None = None
    line: int | None = None
    start_line: int | None = None
    original_line: int | None = None
    side: str | None = None
    diff_hunk: str | None = None
    in_reply_to_id: Id | None = None


class Head(Struct):
    sha: Name


class Team(Struct):
    slug: Name


class Subject(AuthoredPayload, kw_only=True):
    """An issue or a pull request; a pull request has a head."""

    number: Number
    title: str | None = None
    pull_request: dict[str, object] | None = None
    locked: bool = False
    head: Head | None = None
    draft: bool = False


class Before(Struct, rename={"text": "from"}):
    text: str | None = None


class NewPlace(Struct):
    number: Number


class Changes(Struct):
    body: Before | None = None
    new_issue: NewPlace | None = None
    new_repository: Repository | None = None


class Label(Struct):
    name: str


class OfThread(Struct):
    """A payload about an issue or a pull request."""

    action: str
    sender: User
    repository: Repository
    installation: Numbered | None = None
    issue: Subject | None = None
    pull_request: Subject | None = None
    comment: Text | None = None
    review: Text | None = None
    label: Label | None = None
    changes: Changes | None = None
    requested_reviewer: User | None = None
    requested_team: Team | None = None

    def subject(self) -> Subject:
        found = self.issue or self.pull_request
        if found is None:
            raise ValidationError("there is neither an issue nor a pull request")
        return found

    def text(self, event: str) -> Text | Subject:
        if event in ("issue_comment", "pull_request_review_comment"):
            found: Text | Subject | None = self.comment
        else:
            found = self.review if event == "pull_request_review" else self.subject()
        if found is None:
            raise ValidationError("there is no comment or review")
        return found


class CheckRun(Struct):
    head_sha: str = ""
    external_id: str | None = None
    app: Numbered | None = None


class Pressed(Struct):
    identifier: str


class OfCheck(Struct):
    action: str
    sender: User
    repository: Repository
    check_run: CheckRun
    installation: Numbered | None = None
    requested_action: Pressed | None = None


class OfStatus(Struct):
    """A payload about a commit status; it has no action."""

    sha: str
    state: str
    sender: User
    repository: Repository
    installation: Numbered | None = None


class OfPush(Struct):
    """A payload about a push; it has no action."""

    ref: str
    sender: User
    repository: Repository
    installation: Numbered | None = None


class OrganisationMember(Struct):
    user: User | None = None


class OfPerson(Struct):
    """A payload about a person's access."""

    action: str
    sender: User
    membership: OrganisationMember | None = None
    """Their place in an organisation."""
    member: User | None = None
    """The collaborator of a repository."""


class ShortRepo(Struct):
    id: Id
    full_name: Name
    private: bool = True


class WholeInstallation(Struct):
    id: Id
    account: User | None = None
    suspended_at: str | int | None = None


class OfInstallation(Struct):
    """A payload about the App's own installations."""

    action: str
    sender: User
    installation: WholeInstallation
    repositories: tuple[ShortRepo, ...] | None = None
    repositories_added: tuple[ShortRepo, ...] | None = None
    repositories_removed: tuple[ShortRepo, ...] | None = None


def person(user: User | None) -> Person:
    if user is None:
        raise ValidationError("there is no account behind it")
    return Person(user.id, user.login, user.type)


def repo(found: Repository) -> Repo:
    return Repo(RepoId(found.id), found.owner.login, found.name, found.private, found.default_branch)
