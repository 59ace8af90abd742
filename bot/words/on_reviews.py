"""A review: its summary, its comments on lines, and how the agent hears of its earlier ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.agent.findings import MOST, KeptBack, ReviewFinding, ReviewVerdict, Severity
from bot.text.markup import code, shown

MOST_BELOW = 60
BELOW_CHARS = 36_000
"""The room for all of them together, so that the text around them fits too."""
MOST_LISTED = 100
_HEADLINES = {
    ReviewVerdict.COMMENT: "🔎 Reviewed",
    ReviewVerdict.REQUEST_CHANGES: "🔎 Changes are needed",
    ReviewVerdict.APPROVE: "🔎 Looks good",
}
Inert = Callable[[str], str]


class Known(Protocol):
    """An earlier finding of ours."""

    @property
    def id(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def body(self) -> str: ...


@dataclass(frozen=True)
class ReviewAccount:
    verdict: ReviewVerdict
    approves: bool
    """An approval is given as one."""
    summary: str
    on_lines: int
    below: Sequence[ReviewFinding]
    """Findings that cannot stand on a line of the diff, as many as there is room for."""
    unsaid: int
    left_out: int
    repeated: int
    resolved: Sequence[Known]
    notes: Sequence[str]
    """Sentences, each about something that was not read."""
    commit: str
    base: str
    base_now: str | None
    """The base now, if it has changed."""
    moved_to: str | None
    """The head now, if it is no longer what was read."""
    graded: Sequence[Severity] = ()
    """The severity of each finding that it posts."""
    kept_back: KeptBack = field(default_factory=KeptBack)


def headline(verdict: ReviewVerdict) -> str:
    return _HEADLINES[verdict]


def marker(session: str, turn: int) -> str:
    return f"<!-- forgehand:review={session}-{turn} -->"


def finding_marker(name: str) -> str:
    return f"<!-- forgehand:finding={name} -->"


def on_line(finding: ReviewFinding, name: str, inert: Inert, *, suggests: bool = True) -> str:
    """`suggests`: a click applies the suggestion; else it is shown as code."""
    said = f"{finding_marker(name)}\n{_said(finding, inert)}"
    applies = suggestion(finding) if suggests else None
    return "\n\n".join(filter(None, (said, applies or _shown_as_code(finding))))


def _shown_as_code(finding: ReviewFinding) -> str:
    """Show a suggestion that no click applies; an empty one removes the lines."""
    if finding.suggestion is None:
        return ""
    return (
        f"Suggested instead:\n\n{code(finding.suggestion, 'text')}" if finding.suggestion else "Suggested: remove it."
    )


def how_to_answer(command: str) -> str:
    return f"<sub>Reply `{command} fix this`, or `{command} not a bug: …` with the reason.</sub>"


def beyond_the_diff(finding: ReviewFinding) -> str:
    return f"<sub>It is about {_lines(finding)}; the diff shows only some of them.</sub>"


def suggestion(finding: ReviewFinding) -> str | None:
    """Write the suggestion so that a click applies it."""
    return None if finding.suggestion is None else code(finding.suggestion, "suggestion")


def summary(account: ReviewAccount, inert: Inert) -> str:
    head, said = f"### {_HEADLINES[account.verdict]}", inert(account.summary)
    counts = f"**{tally(account.graded)}**" if account.graded else ""
    before = (_below(account, inert), _earlier(account), " ".join(_kept_back(account.kept_back)))
    parts = (head, counts, said, *before, _unread(account), _foot(account))
    return "\n\n".join(filter(None, parts))


def tally(severities: Iterable[Severity]) -> str:
    """Count them by severity, the worst first."""
    counts = Counter(severities)
    return ", ".join(f"{counts[one]} {one}" for one in Severity if counts[one])


def _kept_back(counts: KeptBack) -> Iterator[str]:
    if counts.mild:
        yield f"{_are(counts.mild)} milder than `{counts.threshold}` and only counted (`review.threshold`)."
    if counts.ignored:
        yield f"{_are(counts.ignored)} in paths that `review.ignore` leaves out."
    if counts.dismissed:
        yield f"{_are(counts.dismissed)} left out because people said before that such a thing is no bug."


def _are(number: int) -> str:
    return f"{_count(number, 'finding', 'findings')} {'is' if number == 1 else 'are'}"


def listed(said: Sequence[Known], most: int = 400) -> str:
    """List them for the agent by name, so that it can say which are fixed."""
    rows = [f"{one.id}: line {one.line} of {one.path}: {' '.join(one.body.split())[:most]}" for one in said]
    return "\n".join(rows[-MOST_LISTED:])


class Dismissed(Protocol):
    """A finding that somebody dismissed."""

    @property
    def path(self) -> str: ...
    @property
    def body(self) -> str: ...
    @property
    def login(self) -> str: ...
    @property
    def why(self) -> str: ...


def listed_dismissals(known: Sequence[Dismissed]) -> str:
    rows = []
    for one in known:
        why = f" (their reason: {' '.join(one.why.split())[:200]})" if one.why else ""
        rows.append(f"- {one.path}: {' '.join(one.body.split())[:300]}{why}")
    return "\n".join(rows)


def in_short(account: ReviewAccount, url: str) -> str:
    counts = [_count(account.on_lines, "comment on a line", "comments on lines")] if account.on_lines else []
    counts += [f"{len(account.below)} more in its summary"] if account.below else []
    counts += [f"no room for {account.unsaid} more"] if account.unsaid else []
    counts += [f"{len(account.resolved)} earlier resolved"] if account.resolved else []
    counts += [f"{account.repeated} said before and not repeated"] if account.repeated else []
    found = ", ".join(counts) or "no remarks"
    grades = f" ({tally(account.graded)})" if account.graded else ""
    said = f"{_HEADLINES[account.verdict].removeprefix('🔎 ')}{grades}: [the review]({url}) has {found}."
    return " ".join([said, *_kept_back(account.kept_back)])


def nothing_new(account: ReviewAccount) -> str:
    """Tell what a review found that has nothing to post."""
    said = [f"I have nothing new to say about commit `{account.commit[:12]}`, so I posted no further review."]
    if account.resolved:
        said.append(f"{_count(len(account.resolved), 'earlier finding', 'earlier findings')} resolved.")
    if account.repeated:
        said.append(f"{_count(account.repeated, 'earlier finding', 'earlier findings')} still open.")
    return " ".join([*said, *_kept_back(account.kept_back)])


def open_still(many: int, command: str) -> str:
    what, them = ("1 finding of my reviews is", "it") if many == 1 else (f"{many} findings of my reviews are", "them")
    return f"{what} still open: `{command} review` checks whether the new commit settles {them}."


def is_at(number: int, address: str) -> str:
    """Say on an issue where the review of its pull request is."""
    live = f": [its live comment]({address})" if address else "."
    return f"I review pull request #{number}{live}"


def let_go() -> str:
    return "A newer review of mine no longer asks for changes."


def _said(finding: ReviewFinding, inert: Inert) -> str:
    grade = [finding.severity.capitalize()]
    grade += [f"{finding.confidence:.0%} sure"] if finding.confidence is not None else []
    head = f"**{' · '.join(grade)}**\n\n" if grade else ""
    return f"{head}{inert(finding.body)}"


def room_for(findings: Sequence[ReviewFinding], inert: Inert) -> int:
    """Count how many, from the first, the summary has room for."""
    left = BELOW_CHARS
    for number, one in enumerate(findings[:MOST_BELOW]):
        left -= len(_row(one, inert)) + 2
        if left < 0:
            return number
    return min(len(findings), MOST_BELOW)


def _below(account: ReviewAccount, inert: Inert) -> str:
    if not account.below:
        return ""
    rows = ["**Findings that fit no line of the diff:**", *(_row(one, inert) for one in account.below)]
    if account.unsaid:
        more = _count(account.unsaid, "finding", "findings")
        rows.append(f"… and {more} that did not fit here: another review reports them once these are fixed.")
    return "\n\n".join(rows)


def _row(one: ReviewFinding, inert: Inert) -> str:
    words = f"#### {shown(one.path, 200)}, {_lines(one)}\n\n{_said(one, inert)}"
    return "\n\n".join(filter(None, (words, _shown_as_code(one))))


def _lines(one: ReviewFinding) -> str:
    return f"lines {one.start_line} to {one.line}" if one.start_line else f"line {one.line}"


def _earlier(account: ReviewAccount) -> str:
    rows = [f"- ✅ resolved: line {one.line} of {shown(one.path, 200)}" for one in account.resolved[:MOST_BELOW]]
    if account.repeated:
        again = _count(account.repeated, "finding", "findings")
        rows.append(f"- still open, said before and not repeated here: {again}")
    return "**My earlier findings:**\n\n" + "\n".join(rows) if rows else ""


def _unread(account: ReviewAccount) -> str:
    rows = [f"- {shown(note, 500)}" for note in account.notes]
    if account.left_out:
        more = _count(account.left_out, "finding", "findings")
        rows.append(f"- {more} more that named no line, or came after the first {MOST}")
    return "**Not read or left out:**\n\n" + "\n".join(rows) if rows else ""


def _foot(account: ReviewAccount) -> str:
    words = [f"Read at `{account.commit[:12]}` against {shown(account.base, 200)}."]
    if account.base_now is not None:
        words.append(f"Its base is now {shown(account.base_now, 200)}; I did not compare it with that.")
    if account.moved_to is not None:
        words.append(f"The head has since moved to `{account.moved_to[:12]}`; this review does not cover that.")
    if account.verdict is ReviewVerdict.APPROVE and not account.approves:
        words.append("Approving is left to people.")
    return f"<sub>{' '.join(words)}</sub>"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
