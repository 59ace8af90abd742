"""Shows people what an agent asked: in comments while it waits, and at the turn's end what they may still answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.errors import GitHubRefused, NotFound
from bot.live import boxes
from bot.live.boxes import TickBox
from bot.live.edit_quota import EditQuotas
from bot.models import Thread, TurnKey
from bot.outbound import Outbound
from bot.store import approvals
from bot.store.approvals import Approval, ApprovalKind, ApprovalState, QuestionComment
from bot.store.base import Store
from bot.words import on_approvals, on_forks

if TYPE_CHECKING:
    from bot.live.page import TurnView


log = logging.getLogger(__name__)


def marker(approval_id: str) -> str:
    return f"<!-- forgehand:ask={approval_id} -->"


def offered(approval: Approval) -> list[TickBox]:
    """Offers nothing once nobody waits: what may be said then stands in the live comment."""
    return boxes.to_answer(approval.id, plan=False) if approval.state is ApprovalState.OPEN else []


def body(approval: Approval, command: str) -> str:
    asked = str(approval.matter["shown"])
    if approval.state is ApprovalState.OPEN:
        words = f"{on_approvals.question(asked)}\n\n{boxes.rendered(offered(approval), command)}"
    else:
        words = on_approvals.question_over(approval.state, approval.answered_by, approval.scope, asked)
    return boxes.alone(f"{marker(approval.id)}\n{words}", offered(approval), command)


class Questions:
    """Brings them up to date, out of the quota of all edits."""

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
    """Takes a late yes: to the agent's last question, where it got no answer, and to hosts that it did not reach."""
    questions = [one for one in asked if one.kind is ApprovalKind.TOOL]
    last = [one for one in questions if not one.hosts][-1:]
    return [one for one in (*last, *(one for one in questions if one.hosts)) if one.state is ApprovalState.EXPIRED]


def settled_approval(view: TurnView) -> Approval | None:
    plans = [
        one
        for one in view.asked
        if one.kind in (ApprovalKind.PLAN, ApprovalKind.PUSH) and one.state is not ApprovalState.OPEN
    ]
    answered = [one for one in view.asked if one.kind is ApprovalKind.TOOL and one.late]
    return next(iter((*plans, *answered)), None)


def held_commit(view: TurnView) -> Approval | None:
    """The commit that waits for somebody's yes."""
    return next((one for one in view.asks if one.kind is ApprovalKind.PUSH), None)


def _of_a_fork(view: TurnView) -> str:
    """Asks whether its code may become a branch, or says how that was answered."""
    one = next((one for one in view.asked if one.sha is not None), None)
    if one is None or one.sha is None:
        return ""
    if one.state is ApprovalState.OPEN:  # beside a later turn's work it is the later one that is offered
        return on_forks.offer(one.sha, view.command) if any(box.approval == one.id for box in view.boxes) else ""
    return on_forks.answered(one.sha, one.state, one.answered_by)


def words_asked(view: TurnView) -> str:
    """Questions that stand in the turn's own words are not repeated."""
    if said := _of_a_fork(view):
        return said
    if (one := settled_approval(view)) is not None:
        return on_approvals.answered_since(one.id, one.state, one.answered_by)
    return "\n\n".join(
        f"{on_approvals.late_yes(one.id, str(one.matter.get('shown', '')), view.command)}\n\n"
        f"{boxes.rendered(boxes.of(one.id, view.boxes), view.command)}"
        for one in _shown_here(view)
    )


def _shown_here(view: TurnView) -> list[Approval]:
    """Keeps the boxes that answer it right below: what they say yes to must not be looked for."""
    if _of_a_fork(view) or settled_approval(view) is not None:
        return []
    told = view.turn.detail or ""
    return [
        one
        for one in answerable(view.asked)
        if boxes.of(one.id, view.boxes) and f"`{view.command} approve {one.id}`" not in told
    ]


def boxes_left(view: TurnView) -> list[TickBox]:
    above = [box for one in _shown_here(view) for box in boxes.of(one.id, view.boxes)]
    return [box for box in view.boxes if box not in above]
