"""The checkboxes of the live comment: which are offered, how each looks, and which one a person has ticked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bot.funds import FundsState
from bot.models import Outcome
from bot.outbound import scrub
from bot.text import markup

_LINE_END = re.compile(r"\r\n?")
_TICKED = re.compile(r"- \[[xX]\] (.+)")
_AGAIN = frozenset((Outcome.FAILED, Outcome.KILLED, Outcome.NO_CHANGE, Outcome.REFUSED))
_ON = frozenset((Outcome.STOPPED, Outcome.TIMED_OUT, Outcome.KILLED))
MORE_MONEY = "continue +3"


@dataclass(frozen=True)
class TickBox:
    """`command` is what a person could write instead, without our word; `approval` is what it answers, if anything."""

    label: str
    command: str
    approval: str | None = None

    def text(self, word: str) -> str:
        """The line behind the box: it names the approval, so that a box ticked late cannot answer another one."""
        bound = f" <sub>({self.approval})</sub>" if self.approval else ""
        return f"**{self.label}** · `{word} {self.command}`{bound}"


STOP = TickBox("Stop", "stop")
RETRY = TickBox("Retry", "retry")
CONTINUE = TickBox("Continue", "continue")
CONTINUE_WITH_MORE = TickBox("Continue with 3 dollars more", MORE_MONEY)


def to_answer(approval_id: str, *, plan: bool) -> list[TickBox]:
    """The command itself names what it answers."""
    if plan:
        return [TickBox("Approve the plan", f"approve {approval_id}"), TickBox("Deny it", f"deny {approval_id}")]
    return [
        TickBox("Yes, this once", f"approve {approval_id}"),
        TickBox("Yes, for this session", f"approve {approval_id} session"),
        TickBox("No", f"deny {approval_id}"),
    ]


def to_let_go(approval_id: str) -> list[TickBox]:
    """A commit that is held."""
    return [TickBox("Push exactly this commit", f"approve {approval_id}"), TickBox("Leave it", f"deny {approval_id}")]


def to_adopt(approval_id: str, sha: str) -> list[TickBox]:
    """Code of a fork is approved by its name alone, which stands beside the box."""
    return [TickBox("Make it a branch here, with the fork's code", f"approve {sha}", approval_id)]


def to_answer_late(approval_id: str) -> list[TickBox]:
    """Offers a yes for which nobody waits: it begins the next turn."""
    return [TickBox("Yes, and go on with it", f"approve {approval_id}"), *to_answer(approval_id, plan=False)[1:]]


def at_the_end(outcome: Outcome, means: FundsState = FundsState.LEFT) -> list[TickBox]:
    if means is not FundsState.LEFT:
        on = outcome in _ON | _AGAIN | {Outcome.OVER_BUDGET}
        return [CONTINUE_WITH_MORE] if means is FundsState.SPENT and on else []
    if outcome is Outcome.OVER_BUDGET:
        return [CONTINUE]
    return [CONTINUE] * (outcome in _ON) + [RETRY] * (outcome in _AGAIN)


def of(approval_id: str, offered: Sequence[TickBox]) -> list[TickBox]:
    return [box for box in offered if approval_id in box.command.split()]


def rendered(boxes: Sequence[TickBox], word: str) -> str:
    return "\n".join(f"- [ ] {box.text(word)}" for box in boxes)


def alone(body: str, offered: Sequence[TickBox], word: str) -> str:
    """The body with no other box than ours, in code either: a click names a box by its number, and those who count
    do not agree on what is one. In others a space stands, as in `[x ]`."""
    lines = body.split("\n")
    like = [at for at, line in enumerate(lines) if scrub.TASK.match(line)]
    if not like:
        return body
    ours, prose = set(rendered(offered, word).split("\n")), _prose(body)
    for at in like:
        if lines[at] in ours and at in prose:
            ours.remove(lines[at])
        else:
            lines[at] = scrub.TASK.sub(r"\1\2\3 \4", lines[at])
    return "\n".join(lines)


def ticked(before: str, after: str, offered: Sequence[TickBox], word: str) -> list[TickBox]:
    """Counts boxes on offer now: whatever else was written or ticked in there is nobody's command."""
    new = _ticked(after) - _ticked(before)
    return [box for box in offered if box.text(word) in new]


def meant(found: Sequence[TickBox]) -> TickBox | None:
    """Picks the clear one of several: to stop, or of two kinds of yes the one that reaches less."""
    if len(found) == 1 or STOP in found:
        return found[0] if len(found) == 1 else STOP
    same = {box.command.removesuffix(" session") for box in found}
    return min(found, key=lambda box: len(box.command)) if len(same) == 1 else None


def newly(before: str, after: str) -> bool:
    return bool(_ticked(after) - _ticked(before))


def _ticked(body: str) -> Counter[str]:
    """Counts what stands beside each ticked box: what somebody else wrote once is no tick of ours."""
    body = _LINE_END.sub("\n", body)
    prose = _prose(body) if "- [" in body else set()
    found = (_TICKED.fullmatch(line) for at, line in enumerate(body.split("\n")) if at in prose)
    return Counter(match[1].rstrip() for match in found if match)


def _prose(body: str) -> set[int]:
    """The numbers of the lines that are neither code nor HTML nor in a quote."""
    found: set[int] = set()
    number = 0
    for block in markup.blocks(body):
        lines = body.count("\n", block.start, block.end) + (not body.endswith("\n", block.start, block.end))
        if block.kind is markup.BlockMeaning.TEXT and not block.quoted:
            found.update(range(number, number + lines))
        number += lines
    return found
