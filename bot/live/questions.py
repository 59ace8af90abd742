"""Ask people: comments with boxes, what a ticked box means, and the answer written below."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.errors import GitHubRefused, NotFound
from bot.funds import FundsState
from bot.live.edit_quota import EditQuotas
from bot.models import Outcome, Thread, TurnKey
from bot.outbound import Outbound, neutralise
from bot.store import approvals
from bot.store.approvals import Approval, ApprovalKind, ApprovalState, QuestionComment
from bot.store.base import Store
from bot.store.sessions import Turn
from bot.text import markup
from bot.words import endings, on_approvals, on_forks

if TYPE_CHECKING:
    from bot.live.page import TurnView

log = logging.getLogger(__name__)

_LINE_END = re.compile(r"\r\n?")
_TICKED = re.compile(r"- \[[xX]\] (.+)")
_AGAIN = frozenset((Outcome.FAILED, Outcome.KILLED, Outcome.NO_CHANGE, Outcome.REFUSED))
_ON = frozenset((Outcome.STOPPED, Outcome.TIMED_OUT, Outcome.KILLED))
MORE_MONEY = "continue +3"


@dataclass(frozen=True)
class TickBox:
    """`command` is what a person could write instead, without our word; `approval` names what it answers, if any."""

    label: str
    command: str
    approval: str | None = None

    def text(self, word: str) -> str:
        """Write the line behind the box: it names the approval, so that a late tick cannot answer another one."""
        bound = f" <sub>({self.approval})</sub>" if self.approval else ""
        return f"**{self.label}** · `{word} {self.command}`{bound}"


STOP = TickBox("Stop", "stop")
RETRY = TickBox("Retry", "retry")
CONTINUE = TickBox("Continue", "continue")
CONTINUE_WITH_MORE = TickBox("Continue with 3 dollars more", MORE_MONEY)


def to_answer(approval_id: str, *, plan: bool) -> list[TickBox]:
    if plan:
        return [TickBox("Approve the plan", f"approve {approval_id}"), TickBox("Deny it", f"deny {approval_id}")]
    return [
        TickBox("Yes, this once", f"approve {approval_id}"),
        TickBox("Yes, for this session", f"approve {approval_id} session"),
        TickBox("No", f"deny {approval_id}"),
    ]


def to_agree(approval_id: str) -> list[TickBox]:
    return [TickBox("Go ahead", f"approve {approval_id}"), TickBox("Leave it", f"deny {approval_id}")]


def to_let_go(approval_id: str) -> list[TickBox]:
    return [TickBox("Push exactly this commit", f"approve {approval_id}"), TickBox("Leave it", f"deny {approval_id}")]


def to_adopt(approval_id: str, sha: str) -> list[TickBox]:
    """Approve a fork's code by its commit alone; the approval stands beside the box."""
    return [TickBox("Make it a branch here, with the fork's code", f"approve {sha}", approval_id)]


def to_answer_late(approval_id: str) -> list[TickBox]:
    """Offer a yes for which no agent waits: it begins the next turn."""
    return [TickBox("Yes, and go on with it", f"approve {approval_id}"), *to_answer(approval_id, plan=False)[1:]]


def at_the_end(outcome: Outcome, means: FundsState = FundsState.LEFT) -> list[TickBox]:
    if means is not FundsState.LEFT:
        on = outcome in _ON | _AGAIN | {Outcome.OVER_BUDGET}
        return [CONTINUE_WITH_MORE] if means is FundsState.SPENT and on else []
    if outcome is Outcome.OVER_BUDGET:
        return [CONTINUE]
    return [CONTINUE] * (outcome in _ON) + [RETRY] * (outcome in _AGAIN)


def is_retry_useless(turn: Turn) -> bool:
    """Tell whether another try must end in the same way."""
    if turn.outcome is Outcome.FAILED:
        return turn.agent_error == endings.IN_THE_COMMAND
    return not turn.traits.repeatable and turn.outcome in (Outcome.REFUSED, Outcome.NO_CHANGE)


def boxes_of(approval_id: str, offered: Sequence[TickBox]) -> list[TickBox]:
    return [box for box in offered if approval_id in box.command.split()]


def rendered(boxes: Sequence[TickBox], word: str) -> str:
    return "\n".join(f"- [ ] {box.text(word)}" for box in boxes)


def alone_box(body: str, offered: Sequence[TickBox], word: str) -> str:
    """Leave no box in the body but ours, in code either: a click names a box by its number, and readers do not agree
    on what counts as one. Other boxes get a space, as in `[x ]`."""
    lines = body.split("\n")
    like = [at for at, line in enumerate(lines) if neutralise.TASK.match(line)]
    if not like:
        return body
    ours, prose = set(rendered(offered, word).split("\n")), _prose(body)
    for at in like:
        if lines[at] in ours and at in prose:
            ours.remove(lines[at])
        else:
            lines[at] = neutralise.TASK.sub(r"\1\2\3 \4", lines[at])
    return "\n".join(lines)


def ticked(before: str, after: str, offered: Sequence[TickBox], word: str) -> list[TickBox]:
    """Return the newly ticked boxes that are on offer; anything else written or ticked there is no command."""
    new = _ticked(after) - _ticked(before)
    return [box for box in offered if box.text(word) in new]


def meant(found: Sequence[TickBox]) -> TickBox | None:
    """Pick the clear one of several: to stop, or of two kinds of yes the narrower one."""
    if len(found) == 1 or STOP in found:
        return found[0] if len(found) == 1 else STOP
    same = {box.command.removesuffix(" session") for box in found}
    return min(found, key=lambda box: len(box.command)) if len(same) == 1 else None


def newly(before: str, after: str) -> bool:
    return bool(_ticked(after) - _ticked(before))


def _ticked(body: str) -> Counter[str]:
    body = _LINE_END.sub("\n", body)
    prose = _prose(body) if "- [" in body else set()
    found = (_TICKED.fullmatch(line) for at, line in enumerate(body.split("\n")) if at in prose)
    return Counter(match[1].rstrip() for match in found if match)


def _prose(body: str) -> set[int]:
    """Number the lines that are neither code nor HTML nor in a quote."""
    found: set[int] = set()
    number = 0
    for block in markup.blocks(body):
        lines = body.count("\n", block.start, block.end) + (not body.endswith("\n", block.start, block.end))
        if block.kind is markup.BlockMeaning.TEXT and not block.quoted:
            found.update(range(number, number + lines))
        number += lines
    return found


def marker(approval_id: str) -> str:
    return f"<!-- forgehand:ask={approval_id} -->"


def offered(approval: Approval) -> list[TickBox]:
    """Offer nothing once no agent waits: the live comment has what may be answered then."""
    return to_answer(approval.id, plan=False) if approval.state is ApprovalState.OPEN else []


def body(approval: Approval, command: str) -> str:
    asked = str(approval.matter["shown"])
    if approval.state is ApprovalState.OPEN:
        words = f"{on_approvals.question(asked)}\n\n{rendered(offered(approval), command)}"
    else:
        words = on_approvals.question_over(approval.state, approval.answered_by, approval.scope, asked)
    return alone_box(f"{marker(approval.id)}\n{words}", offered(approval), command)


class Questions:
    """Brings the comments of questions up to date, out of the quota of all edits."""

    def __init__(self, store: Store, outbound: Outbound, quotas: EditQuotas, command: str) -> None:
        self._store = store
        self._outbound = outbound
        self._quotas = quotas
        self._command = command

    async def bring_up(self, key: TurnKey, thread: Thread) -> None:
        for one in await approvals.outdated_questions(self._store, key):
            if (approval := await approvals.get(self._store, one.approval_id)) is not None:
                await self._edit(one, approval, thread)

    async def _edit(self, one: QuestionComment, approval: Approval, thread: Thread) -> None:
        await self._quotas.spend(thread.installation)
        try:
            await self._outbound.edit_comment(thread, one.comment_id, body(approval, self._command))
        except NotFound:
            await approvals.question_gone(self._store, one)
            return
        except GitHubRefused as refused:  # a locked thread: the next change, or the next start, tries again
            log.info("a question's comment waits", extra={"approval": approval.id, "error": str(refused)})
            return
        await approvals.question_shown(self._store, one, approval.state)


def answerable(asked: Sequence[Approval]) -> list[Approval]:
    """Choose what still takes a late yes: the agent's last question, if it got no answer, and hosts not reached."""
    questions = [one for one in asked if one.kind is ApprovalKind.TOOL]
    last = [one for one in questions if not one.hosts][-1:]
    return [one for one in (*last, *(one for one in questions if one.hosts)) if one.state is ApprovalState.EXPIRED]


def settled_approval(view: TurnView) -> Approval | None:
    over = [one for one in view.asked if one.state is not ApprovalState.OPEN]
    plans = [one for one in over if one.kind in (ApprovalKind.PLAN, ApprovalKind.PUSH, ApprovalKind.PRICE)]
    answered = [one for one in view.asked if one.kind is ApprovalKind.TOOL and one.late]
    return next(iter((*plans, *answered)), None)


def held_commit(view: TurnView) -> Approval | None:
    return next((one for one in view.asks if one.kind is ApprovalKind.PUSH), None)


def _of_a_fork(view: TurnView) -> str:
    """Ask whether the fork's code may become a branch, or say how that was answered."""
    one = next((one for one in view.asked if one.sha is not None), None)
    if one is None or one.sha is None:
        return ""
    if one.state is ApprovalState.OPEN:  # beside a later turn's work it is the later one that is offered
        return on_forks.offer(one.sha, view.command) if any(box.approval == one.id for box in view.boxes) else ""
    return on_forks.answered(one.sha, one.state, one.answered_by)


def words_asked(view: TurnView) -> str:
    """Repeat no question that stands in the turn's own words."""
    if said := _of_a_fork(view):
        return said
    if (one := settled_approval(view)) is not None:
        return on_approvals.answered_since(one.id, one.state, one.answered_by)
    return "\n\n".join(
        f"{on_approvals.late_yes(one.id, str(one.matter.get('shown', '')), view.command)}\n\n"
        f"{rendered(boxes_of(one.id, view.boxes), view.command)}"
        for one in _shown_here(view)
    )


def _shown_here(view: TurnView) -> list[Approval]:
    """Choose the late questions that stand in the comment, right above their boxes."""
    if _of_a_fork(view) or settled_approval(view) is not None:
        return []
    told = view.turn.detail or ""
    return [
        one
        for one in answerable(view.asked)
        if boxes_of(one.id, view.boxes) and f"`{view.command} approve {one.id}`" not in told
    ]


def boxes_left(view: TurnView) -> list[TickBox]:
    above = [box for one in _shown_here(view) for box in boxes_of(one.id, view.boxes)]
    return [box for box in view.boxes if box not in above]
