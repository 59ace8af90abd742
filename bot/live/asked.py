"""What people were asked in a turn that has ended: what they may still answer, and what became of the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.live import boxes
from bot.live.boxes import TickBox
from bot.store.approvals import Approval, Kind, Standing
from bot.words import on_approvals, on_forks

if TYPE_CHECKING:
    from bot.live.page import TurnView


def answerable(asked: Sequence[Approval]) -> list[Approval]:
    """By a late yes: the agent's last question, where it got no answer, and the hosts that it did not reach."""
    questions = [one for one in asked if one.kind is Kind.TOOL]
    last = [one for one in questions if not one.hosts][-1:]
    return [one for one in (*last, *(one for one in questions if one.hosts)) if one.state is Standing.EXPIRED]


def settled(view: TurnView) -> Approval | None:
    """What the end of the turn waited for, and waits for no longer."""
    plans = [one for one in view.asked if one.kind in (Kind.PLAN, Kind.PUSH) and one.state is not Standing.OPEN]
    answered = [one for one in view.asked if one.kind is Kind.TOOL and one.late]
    return next(iter((*plans, *answered)), None)


def held(view: TurnView) -> Approval | None:
    """The commit that waits for somebody's yes."""
    return next((one for one in view.asks if one.kind is Kind.PUSH), None)


def _of_a_fork(view: TurnView) -> str:
    """Whether its code may become a branch, and what was said to that."""
    one = next((one for one in view.asked if one.sha is not None), None)
    if one is None or one.sha is None:
        return ""
    if one.state is Standing.OPEN:  # beside a later turn's work it is the later one that is offered
        return on_forks.offer(one.sha, view.command) if any(box.approval == one.id for box in view.boxes) else ""
    return on_forks.answered(one.sha, one.state, one.answered_by)


def words(view: TurnView) -> str:
    """Questions that stand in the turn's own words are not repeated."""
    if said := _of_a_fork(view):
        return said
    if (one := settled(view)) is not None:
        return on_approvals.answered_since(one.id, one.state, one.answered_by)
    return "\n\n".join(
        f"{on_approvals.late_yes(one.id, str(one.matter.get('shown', '')), view.command)}\n\n"
        f"{boxes.rendered(boxes.of(one.id, view.boxes), view.command)}"
        for one in _shown_here(view)
    )


def _shown_here(view: TurnView) -> list[Approval]:
    """With the boxes that answer it right below: what they say yes to must not be looked for."""
    if _of_a_fork(view) or settled(view) is not None:
        return []
    told = view.turn.detail or ""
    return [
        one
        for one in answerable(view.asked)
        if boxes.of(one.id, view.boxes) and f"`{view.command} approve {one.id}`" not in told
    ]


def boxes_left(view: TurnView) -> list[TickBox]:
    """Those that stand at the end."""
    above = [box for one in _shown_here(view) for box in boxes.of(one.id, view.boxes)]
    return [box for box in view.boxes if box not in above]
