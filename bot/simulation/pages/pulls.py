"""The parts of a pull request's page beside its comments: reviews, comments at lines, check runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bot.simulation.github.accounts import Account
from bot.simulation.github.state import CheckRun, Repository
from bot.simulation.github.threads import Comment, Issue, Pull, Review, ReviewComment
from bot.simulation.pages import markdown

SHOWN_LINES = 6
"""The lines of a hunk above a comment."""
VERDICTS = {
    "COMMENTED": "reviewed",
    "CHANGES_REQUESTED": "asked for changes",
    "APPROVED": "approved",
    "DISMISSED": "asked for changes, which is dismissed",
}
SIGNS = {
    "success": "✅",
    "failure": "❌",
    "timed_out": "❌",
    "cancelled": "⏹️",
    "skipped": "⏭️",
    "neutral": "⬜",
    None: "🟡",
}


@dataclass(frozen=True)
class AtLine:
    """A discussion at lines."""

    where: str
    hunk: Sequence[tuple[str, str]]
    words: Sequence[tuple[Account, Markup]]
    resolved_by: Account | None


@dataclass(frozen=True)
class Shown:
    """A review."""

    id: int
    author: Account
    at: float
    verdict: str
    body: str
    lines: Sequence[AtLine]


def timeline(issue: Issue) -> list[Comment | Shown]:
    """Return comments and reviews in order; a reply is in its discussion."""
    entries: list[tuple[float, int, Comment | Shown]] = [
        (one.created_at, one.id, one) for one in issue.comments if not one.deleted
    ]
    reviews = issue.pull.reviews if issue.pull else []
    for review in reviews:
        if shown := _shown(review, reviews):
            entries.append((shown.at, shown.id, shown))
    return [entry for _, _, entry in sorted(entries, key=lambda one: one[:2])]


def checks(pull: Pull | None) -> list[tuple[str, CheckRun]]:
    """Return the check runs at the head, with a sign for each conclusion."""
    found = [one for one in pull.issue.repo.checks.values() if one.head_sha == pull.head_sha] if pull else []
    return [(SIGNS.get(one.conclusion, "⚪"), one) for one in found]


def kind_of(line: str) -> str:
    """Return the CSS class of a diff's line."""
    if line.startswith(("diff ", "--- ", "+++ ")):
        return "file"
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")


def _shown(review: Review, all_reviews: Sequence[Review]) -> Shown | None:
    first = [one for one in review.comments if one.reply_to is None]
    if not first and not review.body:
        return None
    answers = [(each.author, one) for each in all_reviews for one in each.comments if one.reply_to is not None]
    repo = review.pull.issue.repo
    lines = [_at_line(one, review.author, [each for each in answers if each[1].reply_to is one], repo) for one in first]
    verdict = VERDICTS.get(review.state, review.state)
    return Shown(review.id, review.author, review.submitted_at, verdict, review.body, lines)


def _at_line(
    one: ReviewComment, author: Account, answers: Sequence[tuple[Account, ReviewComment]], repo: Repository
) -> AtLine:
    many = one.line - (one.start_line or one.line) + 1
    hunk = one.hunk.split("\n")
    replaced = [line[1:] for line in hunk if not line.startswith(("-", "@"))][-many:]
    where = f"{one.path}, line {one.line}" if many == 1 else f"{one.path}, lines {one.start_line} to {one.line}"
    words = [(author, Markup(markdown.to_html(one.body, repo.full_name, replaced)))]
    words += [(who, Markup(markdown.to_html(each.body, repo.full_name))) for who, each in answers]
    return AtLine(where, [(kind_of(line), line) for line in hunk[-max(many, SHOWN_LINES) :]], words, one.resolved_by)
