"""Knows what remarks there are: whatever somebody says or does on a thread that may ask for something."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.models import ON_PUSH, Origin, Person, Spot, Thread


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
        """Put on a second time, it asks a second time. Of what is signed: a replay brings another GUID."""
        what = hashlib.sha256(self.label.encode("utf-8", "replace")).hexdigest()[:8]
        return f"label:{self.thread.repo.id}:{self.thread.number}:{self.created_at:.0f}:{what}"


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


@dataclass(frozen=True)
class ButtonPressed(Remark):
    """A button of a check run, as if its command had been written on the thread; there are no words."""

    pressed: str = ""
    """The check run: GitHub tells no time, so pressed there twice it is one, as a replay is."""

    @property
    def source(self) -> str:
        return f"press:{self.thread.repo.id}:{self.pressed}"


def standing(title: str, body: str) -> str:
    """What tells whether the thread's own text is still the one that the person saw who gave a command on it."""
    text = f"{title}\n\n{body}".replace("\r\n", "\n").strip()
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
