"""Events about issues and pull requests: their changes, and what people say or do there that may ask for something."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from bot import events
from bot.events.ignored import Ignored, useless
from bot.models import LEFT, ON_PUSH, DeliveryId, InstallationId, Origin, Person, Spot, Thread


@dataclass(frozen=True)
class Remark:
    """An act of a person on a thread that may ask for something: a text, a label, a tick, a press, a push."""

    origin: Origin
    thread: Thread
    author: Person
    body: str
    created_at: float
    comment_id: int | None
    """None for the body of the thread itself."""
    via_app: int | None
    """The App that wrote it in the person's name."""
    thread_sha256: str = ""
    """Digest of the thread's own text at that moment (`text_digest`)."""
    before: str | None = None
    """The text before an edit."""
    changed_at: float = 0.0
    closed_to_us: str | None = None
    """`locked` or `archived` if we can neither answer nor push there."""

    @property
    def is_bot(self) -> bool:
        return not self.author.is_human

    @property
    def source(self) -> str:
        """The name of the text itself: the same for every delivery about it."""
        kind = _SOURCES[type(self)]
        return f"{kind}:{self.thread.repo.id}:{self.comment_id or self.thread.number}"

    @property
    def react_to(self) -> int | None:
        """The comment that takes a reaction; a review as a whole takes none."""
        return self.comment_id

    @property
    def spot(self) -> Spot | None:
        return None

    @property
    def answered_elsewhere(self) -> bool:
        """True if its person reads the answer elsewhere, so the thread gets neither a reply nor a reaction."""
        return False


class CommentCreated(Remark):
    """A comment on an issue or on the conversation of a pull request."""


class CommentEdited(Remark):
    """Never a command, except for a ticked box in a comment of ours."""


@dataclass(frozen=True)
class BoxTicked(Remark):
    """A ticked box of a comment of ours: its command (`body`), by the person who ticked it, and what it answers."""

    approval: str | None = None

    @property
    def source(self) -> str:
        """The name of the tick: one for all deliveries about it; a later tick of the same box has another."""
        what = hashlib.sha256(f"{self.body}\n{self.approval}".encode()).hexdigest()[:8]
        where = self.comment_id or f"issue-{self.thread.number}"
        return f"tick:{self.thread.repo.id}:{where}:{self.created_at:.0f}:{what}"


class IssueEdited(Remark):
    """Never a command, except for a ticked box in our dashboard."""


class CommentDeleted(Remark):
    """A comment, with the text that it had."""


class IssueOpened(Remark):
    """An issue, with its body."""


class PullOpened(Remark):
    """A pull request, with its body."""


class ReviewSubmitted(Remark):
    """The words of a review as a whole."""

    @property
    def react_to(self) -> int | None:
        return None


@dataclass(frozen=True)
class ReviewCommentCreated(Remark):
    """A comment on a line of the diff."""

    spot: Spot | None = None


@dataclass(frozen=True)
class Labeled(Remark):
    """A label on a thread, without words; `author` is the person who added it."""

    label: str = ""

    @property
    def source(self) -> str:
        """The name of this label at this time, so that adding it again asks again. It uses only signed facts, because
        a replay has another GUID."""
        what = hashlib.sha256(self.label.encode("utf-8", "replace")).hexdigest()[:8]
        return f"label:{self.thread.repo.id}:{self.thread.number}:{self.created_at:.0f}:{what}"


@dataclass(frozen=True)
class ReviewWanted(Remark):
    """An act without words that may ask for a review; `author` is the person who did it."""

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
        """One name for each commit and each wanted reviewer."""
        where = f"{self.thread.repo.id}:{self.thread.number}:{self.head_sha}"
        if self.is_push:
            return f"{ON_PUSH}{where}"
        return f"wanted:{where}:{self.reviewer.id if self.reviewer else self.team or self.why}"


_SOURCES: dict[type[Remark], str] = {
    CommentCreated: "comment",
    CommentEdited: "comment",
    CommentDeleted: "comment",
    IssueOpened: "issue",
    IssueEdited: "issue",
    PullOpened: "pull",
    ReviewSubmitted: "review",
    ReviewCommentCreated: "review_comment",
}


@dataclass(frozen=True)
class ButtonPressed(Remark):
    """A button of a check run, as if its person had written the command on the thread; it has no words."""

    pressed: str = ""
    """The check run. GitHub sends no time, so pressing twice counts once, like a replay."""

    @property
    def source(self) -> str:
        return f"press:{self.thread.repo.id}:{self.pressed}"


def text_digest(title: str, body: str) -> str:
    """Digest a thread's own text. It tells whether the text is still the one that a command's author saw."""
    text = f"{title}\n\n{body}".replace("\r\n", "\n").strip()
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


MAX_AGE_SECONDS = 4 * 24 * 3600.0
"""GitHub's log goes back three days: anything older is a replay, or nobody waits for it."""
OLD = "what it tells of is more than 4 days old"


@dataclass(frozen=True)
class ThreadChanged:
    """A change of the thread that may end what runs there."""

    origin: Origin
    thread: Thread
    change: str
    """locked, transferred, deleted or closed."""
    at: float
    moved_to: Thread | None = None
    """The new thread of a transferred issue."""


@dataclass(frozen=True)
class IssueToggled:
    """An issue that was closed or opened again; GitHub says which."""

    origin: Origin
    thread: Thread


def decode(
    name: str, body: bytes | str, delivery: DeliveryId, now: float
) -> Remark | ThreadChanged | IssueToggled | Ignored:
    payload = msgspec.json.decode(body, type=events.OfThread)
    wanted = _WANTED.get((name, payload.action))
    if wanted is None:
        return useless(delivery, name, payload.action)
    if payload.installation is None:
        return Ignored(delivery, "it was not sent for an installation of the App (a webhook of the repository?)")
    origin = Origin(delivery, name, payload.action, events.person(payload.sender))
    if wanted is ThreadChanged:
        thread, changes = _thread(payload), payload.changes
        moved_to = None
        if changes and changes.new_issue and changes.new_repository:  # only within the account, so the installation
            moved_to = replace(thread, repo=events.repo(changes.new_repository), number=changes.new_issue.number)
        return ThreadChanged(origin, thread, origin.action, _changed_at(payload.subject()), moved_to)
    if wanted is IssueToggled:
        return IssueToggled(origin, _thread(payload))
    if wanted is Labeled or wanted is ReviewWanted:
        return _wordless(wanted, origin, payload, now)
    return _remark(cast("type[Remark]", wanted), origin, payload, now)


_WANTED: dict[tuple[str, str], type[Remark] | type[ThreadChanged] | type[IssueToggled]] = {
    ("issue_comment", "created"): CommentCreated,
    ("issue_comment", "edited"): CommentEdited,
    ("issue_comment", "deleted"): CommentDeleted,
    ("issues", "opened"): IssueOpened,
    ("issues", "edited"): IssueEdited,
    ("issues", "closed"): IssueToggled,
    ("issues", "reopened"): IssueToggled,
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


def _thread(payload: events.OfThread) -> Thread:
    subject = payload.subject()
    assert payload.installation is not None
    return Thread(
        repo=events.repo(payload.repository),
        installation=InstallationId(payload.installation.id),
        number=subject.number,
        is_pull=payload.pull_request is not None or subject.pull_request is not None,
    )


def _wordless(
    kind: type[Labeled] | type[ReviewWanted], origin: Origin, payload: events.OfThread, now: float
) -> Remark | ThreadChanged | Ignored:
    subject = payload.subject()
    at = _changed_at(subject)
    if now - at > MAX_AGE_SECONDS:
        return Ignored(origin.delivery, OLD)
    if kind is ReviewWanted:
        more = _review_wanted(payload)
    elif payload.label is None:
        raise msgspec.ValidationError("there is no label")
    else:
        more = {"label": payload.label.name}
    return kind(
        origin=origin,
        thread=_thread(payload),
        author=origin.sender,
        body="",
        created_at=at,
        comment_id=None,
        via_app=None,
        thread_sha256=text_digest(subject.title or "", subject.body or ""),
        closed_to_us=_closed_to_us(payload),
        **more,
    )


def _review_wanted(payload: events.OfThread) -> dict[str, Any]:
    head, reviewer, team = payload.subject().head, payload.requested_reviewer, payload.requested_team
    if head is None:
        raise msgspec.ValidationError("there is no head")
    return {
        "why": payload.action,
        "head_sha": head.sha,
        "reviewer": events.person(reviewer) if reviewer else None,
        "team": team.slug if team else None,
    }


def _changed_at(subject: events.Subject) -> float:
    if subject.updated_at is None:
        raise msgspec.ValidationError("there is no `updated_at`")
    return _epoch(subject.updated_at)


def _remark(kind: type[Remark], origin: Origin, payload: events.OfThread, now: float) -> Remark | Ignored:
    text = payload.text(origin.name)
    created_at, age = _times(kind, origin, text, now)
    if age > MAX_AGE_SECONDS:
        return Ignored(origin.delivery, OLD)
    author = events.person(text.user)
    if kind in _BY_AUTHOR and author.id != origin.sender.id:
        return Ignored(origin.delivery, "the account that sent it is not the author of the text")
    spot = {"spot": _spot(text)} if kind is ReviewCommentCreated else {}
    return kind(
        origin=origin,
        thread=_thread(payload),
        author=author,
        body=text.body or "",
        created_at=created_at,
        comment_id=text.id if isinstance(text, events.Text) else None,
        via_app=text.performed_via_github_app.id if text.performed_via_github_app else None,
        thread_sha256=text_digest(payload.subject().title or "", payload.subject().body or ""),
        changed_at=_epoch(text.updated_at) if text.updated_at else created_at,
        before=payload.changes.body.text if payload.changes and payload.changes.body else None,
        closed_to_us=_closed_to_us(payload),
        **spot,
    )


def _spot(text: events.Text | events.Subject) -> Spot | None:
    if not isinstance(text, events.Text) or text.path is None:
        return None
    line = text.line if text.line is not None else text.original_line  # null once the lines are gone from the diff
    older = line is not None and (text.line is None or text.side == LEFT)
    return Spot(text.in_reply_to_id or text.id, text.path, line, text.start_line, text.diff_hunk or "", older)


def _closed_to_us(payload: events.OfThread) -> str | None:
    if payload.repository.archived:
        return "archived"
    return "locked" if payload.subject().locked else None


_BY_AUTHOR = frozenset((CommentCreated, IssueOpened, ReviewSubmitted, ReviewCommentCreated))


def _times(kind: type[Remark], origin: Origin, text: events.Text | events.Subject, now: float) -> tuple[float, float]:
    """Return when it was written, and how long ago the event happened: an old text may be edited today."""
    written = text.created_at or text.submitted_at
    if written is None:
        raise msgspec.ValidationError("there is no `created_at`")
    happened = (text.updated_at or written) if kind in (CommentEdited, IssueEdited) else written
    age = 0.0 if kind is CommentDeleted else now - _epoch(happened)
    return _epoch(written), age


def _epoch(at: datetime) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
