"""Knows GitHub's webhook payloads and turns each into an event of ours; nothing else in the bot sees their JSON."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, cast

import msgspec

from bot.events import checks, payloads
from bot.events.checks import CheckAsked, CheckEnded
from bot.models import ON_PUSH, DeliveryId, InstallationId, Origin, Person, Repo, RepoId, Spot, Thread

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
    )
)
"""The same list as in app.yml."""
AUTOMATIC_EVENTS = frozenset(("github_app_authorization", "installation", "installation_repositories"))
"""GitHub sends these to every App; a manifest that names them is refused."""
HANDLED_EVENTS = SUBSCRIBED_EVENTS | AUTOMATIC_EVENTS
MAX_AGE_SECONDS = 4 * 24 * 3600.0
"""GitHub's own log goes back three days: what is older than this is a replay, or nobody waits for it."""
OLD = "what it tells of is more than 4 days old"
_NO_CHECK = "nothing is asked of us with it, and no check has ended"


@dataclass(frozen=True)
class Remark:
    """Somebody's text on a thread: what comments, bodies and reviews have in common."""

    origin: Origin
    thread: Thread
    author: Person
    body: str
    created_at: float
    comment_id: int | None
    """None for the body of the thread itself."""
    via_app: int | None
    """The App through which it was written in the person's name."""
    thread_sha256: str = ""
    """Of what the thread itself said at that moment: see `standing`."""
    before: str | None = None
    """What an edit has replaced."""
    changed_at: float = 0.0
    closed_to_us: str | None = None
    """`locked` or `archived`: nothing could be answered or pushed there."""

    @property
    def is_bot(self) -> bool:
        return not self.author.is_human

    @property
    def source(self) -> str:
        """Names the text itself, whatever number of deliveries tell of it."""
        kind = _SOURCES[type(self)]
        return f"{kind}:{self.thread.repo.id}:{self.comment_id or self.thread.number}"

    @property
    def react_to(self) -> int | None:
        """The comment that can be reacted to; a review as a whole cannot."""
        return self.comment_id

    @property
    def place(self) -> Spot | None:
        """Where in a diff it was written."""
        return None


class CommentCreated(Remark):
    """A comment on an issue or on the conversation of a pull request."""


class CommentEdited(Remark):
    """Never a command, but for a box that is ticked in our own."""


@dataclass(frozen=True)
class BoxTicked(Remark):
    """A checkbox of our live comment: a command (`body`) by the person who ticked it, bound to what it answers."""

    approval: str | None = None

    @property
    def source(self) -> str:
        """Names the tick: told of twice it is one, and the same box ticked again later is another."""
        what = hashlib.sha256(f"{self.body}\n{self.approval}".encode()).hexdigest()[:8]
        return f"tick:{self.thread.repo.id}:{self.comment_id}:{self.created_at:.0f}:{what}"


class CommentDeleted(Remark):
    """The text as it was."""


class IssueOpened(Remark):
    """`body` is that of the issue."""


class PullOpened(Remark):
    """`body` is that of the pull request."""


class ReviewSubmitted(Remark):
    """The words of a review as a whole."""

    @property
    def react_to(self) -> int | None:
        return None


@dataclass(frozen=True)
class ReviewCommentCreated(Remark):
    """A comment on a line of the diff."""

    spot: Spot | None = None

    @property
    def place(self) -> Spot | None:
        return self.spot


@dataclass(frozen=True)
class Labeled(Remark):
    """A label was put on an issue or a pull request; its `author` is who did that, and there are no words."""

    label: str = ""

    @property
    def source(self) -> str:
        """Put on a second time, it asks a second time."""
        return f"label:{self.thread.repo.id}:{self.thread.number}:{self.origin.delivery}"


@dataclass(frozen=True)
class ReviewWanted(Remark):
    """Something without words that may ask for a review; its `author` is who did it."""

    why: str = ""
    """review_requested, ready_for_review or synchronize: GitHub's own words."""
    head_sha: str = ""
    reviewer: Person | None = None
    team: str | None = None

    @property
    def is_push(self) -> bool:
        return self.why == "synchronize"

    @property
    def source(self) -> str:
        """One review for each commit and each of whom it is wanted."""
        where = f"{self.thread.repo.id}:{self.thread.number}:{self.head_sha}"
        if self.is_push:
            return f"{ON_PUSH}{where}"
        return f"wanted:{where}:{self.reviewer.id if self.reviewer else self.team or self.why}"


_SOURCES: dict[type[Remark], str] = {
    CommentCreated: "comment",
    CommentEdited: "comment",
    CommentDeleted: "comment",
    IssueOpened: "issue",
    PullOpened: "pull",
    ReviewSubmitted: "review",
    ReviewCommentCreated: "review_comment",
}


class ButtonPressed(Remark):
    """A button of a check run, as if its command had been written on the thread; there are no words."""

    @property
    def source(self) -> str:
        return f"press:{self.thread.repo.id}:{self.origin.delivery}"


@dataclass(frozen=True)
class ThreadChanged:
    """Somebody did something to the thread that may take the ground from under what runs there."""

    origin: Origin
    thread: Thread
    change: str
    """locked, transferred, deleted or closed."""
    at: float
    moved_to: Thread | None = None
    """What a transferred issue has become."""


@dataclass(frozen=True)
class InstalledRepo:
    id: RepoId
    owner: str
    name: str
    private: bool


@dataclass(frozen=True)
class InstallationChanged:
    """The App was installed, removed, suspended or given other repositories; idempotent, whatever the order."""

    origin: Origin
    installation: InstallationId
    account: Person
    state: str
    """active, suspended or deleted."""
    added: tuple[InstalledRepo, ...] = ()
    removed: tuple[InstalledRepo, ...] = ()


@dataclass(frozen=True)
class AccessChanged:
    """What a person may see has changed, or may have."""

    origin: Origin
    person: Person
    leaves: bool
    """Has left the organisation, or taken back that we may know who they are: they are signed in no more."""


@dataclass(frozen=True)
class Ignored:
    """Stored and not acted upon; the reason is what `why` says."""

    delivery: DeliveryId
    reason: str


Event = (
    CommentCreated
    | CommentEdited
    | CommentDeleted
    | IssueOpened
    | PullOpened
    | ReviewSubmitted
    | ReviewCommentCreated
    | Labeled
    | ReviewWanted
    | CheckAsked
    | CheckEnded
    | ThreadChanged
    | InstallationChanged
    | AccessChanged
    | Ignored
)


def decode(name: str, body: bytes | str, *, delivery: DeliveryId, now: float) -> Event:
    """The event in a delivery whose signature was checked; never raises for what GitHub, or anyone, may send."""
    try:
        if name in _ABOUT_PEOPLE:
            return _access(name, body, delivery)
        if name in AUTOMATIC_EVENTS:
            return _installation(name, body, delivery)
        if name == "check_run":
            return checks.decode(body, delivery) or Ignored(delivery, _NO_CHECK)
        if name in SUBSCRIBED_EVENTS:
            return _of_thread(name, body, delivery, now)
    except msgspec.ValidationError as error:
        return Ignored(delivery, f"the payload of `{name}` lacks something that we need: {error}"[:300])
    except (ValueError, RecursionError, OverflowError):  # not JSON; msgspec's errors are ValueErrors
        return Ignored(delivery, f"the payload of `{name}` cannot be read as JSON")
    return Ignored(delivery, f"we have no use for `{_short(name)}` events")


def _short(text: str) -> str:
    return "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in text[:60])


def standing(title: str, body: str) -> str:
    """What tells whether the thread's own text is still the one that the person saw who gave a command on it."""
    text = f"{title}\n\n{body}".replace("\r\n", "\n").strip()
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _person(user: payloads.User | None) -> Person:
    if user is None:
        raise msgspec.ValidationError("there is no account behind it")
    return Person(user.id, user.login, user.type)


def _of_thread(name: str, body: bytes | str, delivery: DeliveryId, now: float) -> Event:
    payload = msgspec.json.decode(body, type=payloads.OfThread)
    wanted = _WANTED.get((name, payload.action))
    if wanted is None:
        return Ignored(delivery, f"we have no use for `{name}` with the action `{_short(payload.action)}`")
    if payload.installation is None:
        return Ignored(delivery, "it was not sent for an installation of the App (a webhook of the repository?)")
    origin = Origin(delivery, name, payload.action, _person(payload.sender))
    if wanted is ThreadChanged:
        return _thread_changed(origin, payload)
    if wanted is Labeled or wanted is ReviewWanted:
        return _wordless(wanted, origin, payload, now)
    return _remark(cast("type[Remark]", wanted), origin, payload, now)


_WANTED: dict[tuple[str, str], type[Remark] | type[ThreadChanged]] = {
    ("issue_comment", "created"): CommentCreated,
    ("issue_comment", "edited"): CommentEdited,
    ("issue_comment", "deleted"): CommentDeleted,
    ("issues", "opened"): IssueOpened,
    ("issues", "labeled"): Labeled,
    ("issues", "locked"): ThreadChanged,
    ("issues", "transferred"): ThreadChanged,
    ("issues", "deleted"): ThreadChanged,
    ("pull_request", "opened"): PullOpened,
    ("pull_request", "ready_for_review"): ReviewWanted,
    ("pull_request", "review_requested"): ReviewWanted,
    ("pull_request", "synchronize"): ReviewWanted,
    ("pull_request", "labeled"): Labeled,
    ("pull_request", "locked"): ThreadChanged,
    ("pull_request", "closed"): ThreadChanged,
    ("pull_request_review", "submitted"): ReviewSubmitted,
    ("pull_request_review_comment", "created"): ReviewCommentCreated,
}


def _thread(payload: payloads.OfThread) -> Thread:
    subject = payload.subject()
    assert payload.installation is not None
    return Thread(
        repo=_repo(payload.repository),
        installation=InstallationId(payload.installation.id),
        number=subject.number,
        is_pull=payload.pull_request is not None or subject.pull_request is not None,
    )


def _repo(repo: payloads.Repository) -> Repo:
    return Repo(RepoId(repo.id), repo.owner.login, repo.name, repo.private, repo.default_branch)


def _wordless(
    kind: type[Labeled] | type[ReviewWanted], origin: Origin, payload: payloads.OfThread, now: float
) -> Event:
    """What somebody did rather than said."""
    subject = payload.subject()
    at = _epoch(subject.updated_at) if subject.updated_at else now
    if now - at > MAX_AGE_SECONDS:
        return Ignored(origin.delivery, OLD)
    more = _label(payload) if kind is Labeled else _review_wanted(payload)
    return kind(
        origin=origin,
        thread=_thread(payload),
        author=origin.sender,
        body="",
        created_at=at,
        comment_id=None,
        via_app=None,
        thread_sha256=standing(subject.title or "", subject.body or ""),
        closed_to_us=_closed_to_us(payload),
        **more,
    )


def _label(payload: payloads.OfThread) -> dict[str, Any]:
    if payload.label is None:
        raise msgspec.ValidationError("there is no label")
    return {"label": payload.label.name}


def _review_wanted(payload: payloads.OfThread) -> dict[str, Any]:
    head, reviewer, team = payload.subject().head, payload.requested_reviewer, payload.requested_team
    if head is None:
        raise msgspec.ValidationError("there is no head")
    return {
        "why": payload.action,
        "head_sha": head.sha,
        "reviewer": _person(reviewer) if reviewer else None,
        "team": team.slug if team else None,
    }


def _thread_changed(origin: Origin, payload: payloads.OfThread) -> Event:
    changed = payload.subject().updated_at
    if changed is None:
        raise msgspec.ValidationError("there is no `updated_at`")
    return ThreadChanged(origin, _thread(payload), origin.action, _epoch(changed), _new_place(payload))


def _new_place(payload: payloads.OfThread) -> Thread | None:
    """Of the same account, and so of the same installation, where that has it."""
    changes, old = payload.changes, _thread(payload)
    if changes is None or changes.new_issue is None or changes.new_repository is None:
        return None
    return replace(old, repo=_repo(changes.new_repository), number=changes.new_issue.number)


def _remark(kind: type[Remark], origin: Origin, payload: payloads.OfThread, now: float) -> Event:
    text = payload.text(origin.name)
    created_at, age = _times(kind, origin, text, now)
    if age > MAX_AGE_SECONDS:
        return Ignored(origin.delivery, OLD)
    author = _person(text.user)
    if kind in _BY_AUTHOR and author.id != origin.sender.id:
        return Ignored(origin.delivery, "the account that sent it is not the author of the text")
    spot = {"spot": _spot(text)} if kind is ReviewCommentCreated else {}
    return cast(
        "Event",
        kind(
            origin=origin,
            thread=_thread(payload),
            author=author,
            body=text.body or "",
            created_at=created_at,
            comment_id=text.id if isinstance(text, payloads.Text) else None,
            via_app=text.performed_via_github_app.id if text.performed_via_github_app else None,
            thread_sha256=standing(payload.subject().title or "", payload.subject().body or ""),
            changed_at=_epoch(text.updated_at) if text.updated_at else created_at,
            before=payload.changes.body.text if payload.changes and payload.changes.body else None,
            closed_to_us=_closed_to_us(payload),
            **spot,
        ),
    )


def _spot(text: payloads.Text | payloads.Subject) -> Spot | None:
    if not isinstance(text, payloads.Text) or text.path is None:
        return None
    line = text.line if text.line is not None else text.original_line  # null once the lines are gone from the diff
    return Spot(text.in_reply_to_id or text.id, text.path, line, text.start_line, text.diff_hunk or "")


def _closed_to_us(payload: payloads.OfThread) -> str | None:
    if payload.repository.archived:
        return "archived"
    return "locked" if payload.subject().locked else None


_BY_AUTHOR = frozenset((CommentCreated, IssueOpened, ReviewSubmitted, ReviewCommentCreated))


def _times(
    kind: type[Remark], origin: Origin, text: payloads.Text | payloads.Subject, now: float
) -> tuple[float, float]:
    """When it was written, and how long ago it happened: an old text may be edited, or become ready, today."""
    written = text.created_at or text.submitted_at
    if written is None:
        raise msgspec.ValidationError("there is no `created_at`")
    happened = written
    if kind is CommentEdited:
        happened = text.updated_at or written
    age = 0.0 if kind is CommentDeleted else now - _epoch(happened)
    return _epoch(written), age


def _epoch(at: datetime) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


_PEOPLE = {
    ("github_app_authorization", "revoked"): True,
    ("organization", "member_removed"): True,
    ("organization", "member_added"): False,
    ("member", "removed"): False,
    ("member", "edited"): False,
    ("member", "added"): False,
}
"""Whether the person has left."""
_ABOUT_PEOPLE = frozenset(name for name, _ in _PEOPLE)


def _access(name: str, body: bytes | str, delivery: DeliveryId) -> Event:
    payload = msgspec.json.decode(body, type=payloads.OfPerson)
    leaves = _PEOPLE.get((name, payload.action))
    if leaves is None:
        return Ignored(delivery, f"we have no use for `{name}` with the action `{_short(payload.action)}`")
    origin = Origin(delivery, name, payload.action, _person(payload.sender))
    in_organization = payload.membership.user if payload.membership else None
    whose = {"github_app_authorization": payload.sender, "organization": in_organization, "member": payload.member}
    return AccessChanged(origin, _person(whose[name]), leaves)


def _installation(name: str, body: bytes | str, delivery: DeliveryId) -> Event:
    payload = msgspec.json.decode(body, type=payloads.OfInstallation)
    origin = Origin(delivery, name, payload.action, _person(payload.sender))
    known = _INSTALLATION_STATES.get((name, payload.action))
    if known is None:
        return Ignored(delivery, f"we have no use for `{name}` with the action `{_short(payload.action)}`")
    account = payload.installation.account
    suspended = known == "active" and payload.installation.suspended_at is not None
    return InstallationChanged(
        origin=origin,
        installation=InstallationId(payload.installation.id),
        account=_person(account),
        state="suspended" if suspended else known,
        added=_repos(payload.repositories, payload.repositories_added),
        removed=_repos(payload.repositories_removed),
    )


_INSTALLATION_STATES = {
    ("installation", "created"): "active",
    ("installation", "new_permissions_accepted"): "active",
    ("installation", "unsuspend"): "active",
    ("installation", "suspend"): "suspended",
    ("installation", "deleted"): "deleted",
    ("installation_repositories", "added"): "active",
    ("installation_repositories", "removed"): "active",
}


def _repos(*found: tuple[payloads.ShortRepo, ...] | None) -> tuple[InstalledRepo, ...]:
    repos = []
    for repo in chain.from_iterable(filter(None, found)):
        owner, slash, name = repo.full_name.partition("/")
        if slash and owner and name:
            repos.append(InstalledRepo(RepoId(repo.id), owner, name, repo.private))
    return tuple(repos)
