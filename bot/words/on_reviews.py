"""The words of a review: its summary, its comments on lines, and what the agent is told of its earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.agent.findings import MOST, ReviewFinding, ReviewVerdict
from bot.words.quoting import code, shown

MOST_BELOW = 60
BELOW_CHARS = 36_000
"""Of all of these, so that what stands around them has its place too."""
MOST_LISTED = 100
_HEADLINES = {
    ReviewVerdict.COMMENT: "🔎 Reviewed",
    ReviewVerdict.REQUEST_CHANGES: "🔎 Changes are needed",
    ReviewVerdict.APPROVE: "🔎 Looks good",
}
Inert = Callable[[str], str]


class Known(Protocol):
    """What is told of an earlier finding."""

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
    """All that the summary of a review tells."""

    verdict: ReviewVerdict
    approves: bool
    """Whether an approval is given as one."""
    summary: str
    on_lines: int
    below: Sequence[ReviewFinding]
    """Findings that cannot stand on a line of the diff, as many as there is room for."""
    unsaid: int
    """How many more there were."""
    left_out: int
    repeated: int
    resolved: Sequence[Known]
    notes: Sequence[str]
    """What was not read, a sentence each."""
    commit: str
    base: str
    base_now: str | None
    """What it is to be merged into by now, if something else."""
    moved_to: str | None
    """Where the head stands now, if it is no longer what was read."""


def headline(verdict: ReviewVerdict) -> str:
    return _HEADLINES[verdict]


def marker(session: str, turn: int) -> str:
    return f"<!-- forgehand:review={session}-{turn} -->"


def finding_marker(name: str) -> str:
    return f"<!-- forgehand:finding={name} -->"


def on_line(finding: ReviewFinding, name: str, inert: Inert, *, suggests: bool = True) -> str:
    """`suggests`: the suggestion is one that a click applies; else it is shown as code."""
    said = finding_marker(name) + f"\n{_said(finding, inert)}"
    applies = suggestion(finding) if suggests else None
    return "\n\n".join(part for part in (said, applies or _shown_as_code(finding)) if part)


def _shown_as_code(finding: ReviewFinding) -> str:
    """A suggestion that no click applies; one without lines takes away those that it is about."""
    if finding.suggestion is None:
        return ""
    return (
        f"Suggested instead:\n\n{code(finding.suggestion, 'text')}" if finding.suggestion else "Suggested: remove it."
    )


def beyond_the_diff(finding: ReviewFinding) -> str:
    return f"<sub>It is about {_lines(finding)}, of which the diff shows no more.</sub>"


def suggestion(finding: ReviewFinding) -> str | None:
    """As it must stand in the comment for a click to apply it."""
    return None if finding.suggestion is None else code(finding.suggestion, "suggestion")


def summary(account: ReviewAccount, inert: Inert) -> str:
    parts = [
        f"### {_HEADLINES[account.verdict]}",
        inert(account.summary),
        _below(account, inert),
        _earlier(account),
        _unread(account),
        _foot(account),
    ]
    return "\n\n".join(part for part in parts if part)


def listed(said: Sequence[Known]) -> str:
    """For the agent: by name, so that it can say which are mended."""
    rows = [f"{one.id}: line {one.line} of {one.path}: {' '.join(one.body.split())[:400]}" for one in said]
    return "\n".join(rows[-MOST_LISTED:])


def in_short(account: ReviewAccount, url: str) -> str:
    """For the live comment."""
    counts = [_count(account.on_lines, "comment on a line", "comments on lines")] if account.on_lines else []
    counts += [f"{len(account.below)} more in its summary"] if account.below else []
    counts += [f"no room for {account.unsaid} more"] if account.unsaid else []
    counts += [f"{len(account.resolved)} earlier resolved"] if account.resolved else []
    counts += [f"{account.repeated} said before and not repeated"] if account.repeated else []
    found = ", ".join(counts) or "nothing to remark"
    return f"{_HEADLINES[account.verdict].removeprefix('🔎 ')}: [the review]({url}) has {found}."


def open_still(many: int, command: str) -> str:
    """After a push of ours, which no review follows by itself."""
    what = "1 finding of my reviews is" if many == 1 else f"{many} findings of my reviews are"
    return (
        f"{what} open still: `{command} review` looks whether the new commit settles {'it' if many == 1 else 'them'}."
    )


def let_go() -> str:
    return "A newer review of mine no longer asks for changes."


def _said(finding: ReviewFinding, inert: Inert) -> str:
    grade = [finding.severity.capitalize()] if finding.severity else []
    grade += [f"{finding.confidence:.0%} sure"] if finding.confidence is not None else []
    head = f"**{' · '.join(grade)}**\n\n" if grade else ""
    return f"{head}{inert(finding.body)}"


def room_for(findings: Sequence[ReviewFinding], inert: Inert) -> int:
    """How many of them, from the first, the summary has room for."""
    left = BELOW_CHARS
    for number, one in enumerate(findings[:MOST_BELOW]):
        left -= len(_row(one, inert)) + 2
        if left < 0:
            return number
    return min(len(findings), MOST_BELOW)


def _below(account: ReviewAccount, inert: Inert) -> str:
    if not account.below:
        return ""
    rows = ["**Findings that could not be put at a line of the diff:**", *(_row(one, inert) for one in account.below)]
    if account.unsaid:
        more = _count(account.unsaid, "finding", "findings")
        rows.append(f"… and {more} for which there is no room here: another review reports them once these are fixed.")
    return "\n\n".join(rows)


def _row(one: ReviewFinding, inert: Inert) -> str:
    words = f"#### {shown(one.path, 200)}, {_lines(one)}\n\n{_said(one, inert)}"
    return "\n\n".join(part for part in (words, _shown_as_code(one)) if part)


def _lines(one: ReviewFinding) -> str:
    return f"lines {one.start_line} to {one.line}" if one.start_line else f"line {one.line}"


def _earlier(account: ReviewAccount) -> str:
    rows = [f"- ✅ resolved: line {one.line} of {shown(one.path, 200)}" for one in account.resolved[:MOST_BELOW]]
    if account.repeated:
        rows.append(
            f"- still open, said before and not repeated here: {_count(account.repeated, 'finding', 'findings')}"
        )
    return "**Of what I said earlier:**\n\n" + "\n".join(rows) if rows else ""


def _unread(account: ReviewAccount) -> str:
    rows = [f"- {shown(note, 500)}" for note in account.notes]
    if account.left_out:
        more = _count(account.left_out, "finding", "findings")
        rows.append(f"- {more} more that named no line, or were beyond the {MOST} that are looked at")
    return "**Not read or left out:**\n\n" + "\n".join(rows) if rows else ""


def _foot(account: ReviewAccount) -> str:
    words = [f"Read at `{account.commit[:12]}` against {shown(account.base, 200)}."]
    if account.base_now is not None:
        words.append(f"Its base is {shown(account.base_now, 200)} by now, with which I did not compare it.")
    if account.moved_to is not None:
        words.append(f"The head has moved to `{account.moved_to[:12]}` meanwhile, which this does not cover.")
    if account.verdict is ReviewVerdict.APPROVE and not account.approves:
        words.append("Approving is left to people.")
    return f"<sub>{' '.join(words)}</sub>"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
