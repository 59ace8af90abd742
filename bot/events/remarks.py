"""Remarks: all that people say or do on a thread that may ask for something."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from bot.models import ON_PUSH, Origin, Person, Spot, Thread


@dataclass(frozen=True)
class Remark:
    """A person's text on a thread: the common fields of comments, bodies and reviews."""

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
    """Digest of the thread's own text at that moment (`standing`)."""
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
    def place(self) -> Spot | None:
        return None


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
        return f"tick:{self.thread.repo.id}:{self.comment_id}:{self.created_at:.0f}:{what}"


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

    @property
    def place(self) -> Spot | None:
        return self.spot


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


def standing(title: str, body: str) -> str:
    """Digest a thread's own text, to tell whether it is still the one that a command's author saw."""
    text = f"{title}\n\n{body}".replace("\r\n", "\n").strip()
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
