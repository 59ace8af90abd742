"""The last form of the live comment: what was done, how it was verified, what it cost, what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bot import verification
from bot.kinds.parts import BroughtHome, OnFork
from bot.kinds.review import HandedOver
from bot.live import asides, asked, boxes, money, saving, sections
from bot.live.figures import duration, tokens
from bot.models import Outcome, TurnState, Usage
from bot.outbound import truncate
from bot.words import endings, on_forks, on_reviews, outcomes

if TYPE_CHECKING:
    from bot.live.page import View

MOST_RESULT = 12_000
MOST_QUOTED = 24_000
MOST_DETAIL = 8_000
SHORTENED = "*(shortened)*"


def parts(view: View) -> list[tuple[str, int]]:
    """Each with its rank: the higher, the sooner it is left out."""
    turn, collected = view.turn, view.turn.part(BroughtHome)
    outcome = turn.outcome or Outcome.FAILED
    return [
        (_headline(view, outcome), 0),
        (sections.request(view), 0),
        (sections.heard(view.state), 2),
        (_detail(view), 0),
        (asked.words(view), 0),
        (_answer(view), 5),
        (sections.files([_changed(file) for file in view.files], "changed"), 4),
        (_verified(view, outcome), 3),
        (endings.left_out(collected.left_out), 2),
        (_saved(view), 0),
        (asides.blocked(collected.blocked), 2),
        (sections.subagents(view), 2),
        (sections.withheld(view), 2),
        (_next(view, outcome), 0),
        (boxes.rendered(asked.boxes_left(view), view.command), 0),
        (_meter(view), 0),
    ]


def _headline(view: View, outcome: Outcome) -> str:
    if outcome is Outcome.PLANNED and (plan := asked.settled(view)):
        return f"### {outcomes.plan_headline(plan.state)}"
    if _is_on_fork(view) and (words := on_forks.headline(outcome)):
        return f"### {words}"
    pull = view.turn.pull_number or view.session.pull_number
    if outcome not in (Outcome.PULL_REQUEST, Outcome.PUSHED):
        pull = None
    of = " of" if outcome is Outcome.PUSHED else ""
    words = f"{outcomes.headline(outcome)}{f'{of} #{pull}' if pull else ''}"
    return f"### {outcomes.with_failing_checks(words) if _work_fails(view, outcome) else words}"


def _detail(view: View) -> str:
    """Of a plan it says that it waits, which is over once it has its answer."""
    over = view.turn.outcome is Outcome.PLANNED and asked.settled(view) is not None
    words = "" if over else "\n\n".join(filter(None, (view.turn.detail, _asked_too_late(view))))
    return truncate.truncate(words[: 2 * MOST_DETAIL], MOST_DETAIL, SHORTENED)


def _asked_too_late(view: View) -> str:
    """So that nobody wonders what became of their `stop`."""
    login = view.turn.stop_requested
    late = login is not None and view.turn.outcome is not Outcome.STOPPED
    return endings.asked_too_late(login) if late and login else ""


def _answer(view: View) -> str:
    if view.turn.traits.judges and view.turn.outcome is Outcome.REVIEWED:  # it stands in the review
        return ""
    text = truncate.truncate((view.turn.agent_result or "").strip(), MOST_RESULT, SHORTENED)
    return sections.agents_words(text, MOST_QUOTED, SHORTENED)


def _changed(file: dict[str, Any]) -> sections.Changed:
    return file["path"], file["added"], file["removed"]


def _verified(view: View, outcome: Outcome) -> str:
    if outcome not in (Outcome.PULL_REQUEST, Outcome.PUSHED) or not view.turn.traits.checks_followed:
        return ""
    return sections.verified(view)


def _saved(view: View) -> str:
    if view.turn.state is not TurnState.DONE:
        return saving.words(view.turn)
    if view.turn.rescue_ref:
        return endings.rescued(view.turn.rescue_ref, view.turn.rescue_until)
    if view.turn.part(OnFork).patch:  # which the turn's own words name
        return ""
    return endings.kept_on_host(view.turn.kept) if view.turn.kept else ""


def _next(view: View, outcome: Outcome) -> str:
    if (one := asked.settled(view)) is not None:
        return f"**Next:** {outcomes.next_after(one.state, view.command)}"
    if (held := asked.held(view)) is not None:
        return f"**Next:** {outcomes.next_for_held(held.id, view.command)}"
    instead = outcomes.checks_failed(view.command) if _checks_failed(view, outcome) else ""
    if _is_on_fork(view):
        instead = on_forks.what_next(outcome, view.command) or instead
    review = view.turn.part(HandedOver).review
    if outcome is Outcome.REVIEWED and review is not None and not review["comments"]:
        instead = outcomes.after_a_clean_review(view.command)
    if outcome is Outcome.NEEDS_INPUT and view.boxes:
        instead = outcomes.tick_or_say(view.command)
    looked = f" {on_reviews.open_still(view.findings, view.command)}" if view.findings else ""
    return f"**Next:** {instead or outcomes.what_next(outcome, view.command, view.means)}{looked}"


def _is_on_fork(view: View) -> bool:
    """Work that is offered to the author of a fork."""
    return view.turn.traits.changes and view.turn.part(OnFork).fork is not None


def _checks_failed(view: View, outcome: Outcome) -> bool:
    pushed = outcome in (Outcome.PULL_REQUEST, Outcome.PUSHED)
    return pushed and any(row["exit_code"] != 0 for row in view.verified)


def _work_fails(view: View, outcome: Outcome) -> bool:
    return _checks_failed(view, outcome) and verification.work_fails(view.verified)


def _meter(view: View) -> str:
    turn = view.turn
    took = duration((turn.finished_at or view.now) - turn.created_at)
    model = f" · {tokens(view.cost.usage)} tokens · {sections.model(view)}" if _has_asked(view) else ""
    where = sections.page_link(view, f"session {turn.key.session}, turn {turn.key.n}")
    return f"<sub>{took} · {money.spent(view)}{model} · {where}{sections.pinned(view)}</sub>"


def _has_asked(view: View) -> bool:
    """No model is named as one that worked where none was asked: an undo, a merge by git, an end at the start."""
    return view.cost.usage != Usage() or bool(view.state.model)
