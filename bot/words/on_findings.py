"""Findings after their review: the request to fix them, the list of them, and what people say is no bug."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from bot.agent.findings import Severity
from bot.text.markup import shown
from bot.words.on_reviews import Dismissed, Known

MOST_LISTED = 50
MOST_SHOWN = 160


class Finding(Known, Protocol):
    @property
    def severity(self) -> Severity: ...


class DatedDismissal(Dismissed, Protocol):
    @property
    def finding_id(self) -> str: ...
    @property
    def at(self) -> float: ...


def to_fix(ids: Sequence[str], words: str) -> str:
    """Word the request. It names findings only: what they say comes from a pull request that nobody has vouched for."""
    one = len(ids) == 1
    asked = f"Fix {'this finding' if one else f'these {len(ids)} findings'} of your reviews: {', '.join(ids)}"
    return f"{asked}\n\n{words}".strip()


def to_look_at(ids: Sequence[str]) -> str:
    """Word the request for the review of our own push."""
    return (
        f"Your work has just been pushed and was to fix these findings of yours: {', '.join(ids)}. Check whether each "
        "is fixed, and name those that are in `resolved`. Look only at what this push changes, and report only what it "
        "breaks."
    )


def will_look(many: int) -> str:
    return f"My next review checks whether the new commit settles {'it' if many == 1 else f'all {many}'}."


def tick_or_say(command: str) -> str:
    return f"Tick a box, or comment `{command} …` with what to do. A reply at a finding is about that finding."


def none_open() -> str:
    return "My reviews of this pull request have no open findings."


def not_open(name: str) -> str:
    return f"{shown(name, 40)} is no open finding of this pull request."


def which(command: str, word: str) -> str:
    return (
        f"Which finding? Reply below its comment in the diff, or name it: `{command} {word} ab12cd34-1-2`. "
        f"`{command} findings` lists the names."
    )


def being_fixed(ids: Sequence[str]) -> str:
    them = "That finding is" if len(ids) == 1 else "These findings are"
    return f"{them} being fixed already; the live comment shows the progress."


def dismissed(login: str, why: str, command: str, name: str) -> str:
    """`why` is harmless already."""
    reason = f": {why}" if why else ""
    return (
        f"{login} says that this is no bug{reason}\n\nI will not report it again in this repository. "
        f"`{command} is a bug {name}` takes that back."
    )


def dismissed_already(login: str) -> str:
    return f"{login} has dismissed this finding already."


def open_again(login: str) -> str:
    return f"{login} says that this is a bug after all, so the finding is open again."


def not_dismissed(name: str) -> str:
    return f"Nobody has dismissed {shown(name, 40)} in this repository."


def listing(found: Sequence[Finding] | None, known: Sequence[DatedDismissal], command: str) -> str:
    """List the open findings of a pull request, if there is one, and all that the repository has dismissed."""
    parts = []
    if found is not None:
        rows = [f"- `{one.id}` · {one.severity} · {_place(one)}: {_brief(one.body)}" for one in found[:MOST_LISTED]]
        parts.append("\n".join(["**Open findings**", "", *rows, *_more(len(found))]) if rows else none_open())
    if known:
        rows = [f"- `{one.finding_id}` · {shown(one.path, 120)}: {_brief(one.body)}{_who(one)}" for one in known]
        head = "**No bugs, people here said**"
        parts.append("\n".join([head, "", *rows[:MOST_LISTED], *_more(len(known))]))
        parts.append(f"`{command} is a bug NAME` takes one back. `review.dismissed` in the config can hold others.")
    else:
        parts.append("Nobody has dismissed a finding in this repository.")
    return "\n\n".join(parts)


def _place(one: Finding) -> str:
    return f"{shown(one.path, 120)}, line {one.line}"


def _brief(body: str) -> str:
    return shown(" ".join(body.split()), MOST_SHOWN)


def _who(one: DatedDismissal) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(one.at))
    why = f": {_brief(one.why)}" if one.why else ""
    return f" ({one.login}, {day}{why})"


def _more(many: int) -> list[str]:
    return [f"- and {many - MOST_LISTED} more"] if many > MOST_LISTED else []
