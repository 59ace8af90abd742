"""Renders the live comment, running and final, from one look at a turn: pure, and under GitHub's limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.live import questions, sections
from bot.live.sections import clip, clock, duration, line, ordinal, roughly, tokens
from bot.models import Step, TurnState
from bot.outbound import prose
from bot.words import endings, on_approvals

if TYPE_CHECKING:
    from bot.live.page import TurnView
    from bot.live.state import LiveState
from typing import TYPE_CHECKING

from bot.kinds.parts import BroughtHome, OnFork
from bot.kinds.review import HandedOver
from bot.models import Outcome, TokenUsage
from bot.proposal import verification
from bot.words import on_forks, on_reviews, outcomes

if TYPE_CHECKING:
    from bot.live.page import TurnView


MOST_RESULT = 12_000
MOST_QUOTED = 24_000
MOST_DETAIL = 8_000
SHORTENED = "*(shortened)*"


def final_parts(view: TurnView) -> list[tuple[str, int]]:
    """Each with its rank: the higher, the sooner it is left out."""
    turn, collected = view.turn, view.turn.part(BroughtHome)
    outcome = turn.outcome or Outcome.FAILED
    return [
        (_final_headline(view, outcome), 0),
        (sections.request(view), 0),
        (sections.heard(view.state), 2),
        (_detail(view), 0),
        (questions.words_asked(view), 0),
        (_answer(view), 5),
        (sections.files([(file["path"], file["added"], file["removed"]) for file in view.files], "changed"), 4),
        (_verified(view, outcome), 3),
        (endings.left_out(collected.left_out), 2),
        (_saved(view), 0),
        (sections.blocked_hosts(collected.blocked), 2),
        (sections.subagents(view), 2),
        (sections.withheld(view), 2),
        (_next(view, outcome), 0),
        (questions.rendered(questions.boxes_left(view), view.command), 0),
        (_final_meter(view), 0),
    ]


def _final_headline(view: TurnView, outcome: Outcome) -> str:
    if outcome is Outcome.PLANNED and (plan := questions.settled_approval(view)):
        return f"### {outcomes.plan_headline(plan.state)}"
    if _is_on_fork(view) and (words := on_forks.headline(outcome)):
        return f"### {words}"
    pull = view.turn.pull_number or view.session.pull_number
    if outcome not in (Outcome.PULL_REQUEST, Outcome.PUSHED):
        pull = None
    of = " of" if outcome is Outcome.PUSHED else ""
    words = f"{outcomes.headline(outcome)}{f'{of} #{pull}' if pull else ''}"
    return f"### {outcomes.with_failing_checks(words) if _work_fails(view, outcome) else words}"


def _detail(view: TurnView) -> str:
    """Leaves out that a plan waits once it has its answer."""
    over = view.turn.outcome is Outcome.PLANNED and questions.settled_approval(view) is not None
    words = "" if over else "\n\n".join(filter(None, (view.turn.detail, _asked_too_late(view))))
    return prose.truncate(words[: 2 * MOST_DETAIL], MOST_DETAIL, SHORTENED)


def _asked_too_late(view: TurnView) -> str:
    """Nobody shall wonder what became of their `stop`."""
    login = view.turn.stop_requested
    late = login is not None and view.turn.outcome is not Outcome.STOPPED
    return endings.asked_too_late(login) if late and login else ""


def _answer(view: TurnView) -> str:
    if view.turn.traits.judges and view.turn.outcome is Outcome.REVIEWED:  # it stands in the review
        return ""
    text = prose.truncate((view.turn.agent_result or "").strip(), MOST_RESULT, SHORTENED)
    return sections.agents_words(text, MOST_QUOTED, SHORTENED)


def _verified(view: TurnView, outcome: Outcome) -> str:
    if outcome not in (Outcome.PULL_REQUEST, Outcome.PUSHED) or not view.turn.traits.checks_followed:
        return ""
    return sections.verified(view)


def _saved(view: TurnView) -> str:
    if view.turn.state is not TurnState.DONE:
        return endings.being_saved(view.turn.key.rescue_ref)
    if view.turn.rescue_ref:
        return endings.rescued(view.turn.rescue_ref, view.turn.rescue_until)
    if view.turn.part(OnFork).patch:  # which the turn's own words name
        return ""
    return endings.kept_on_host(view.turn.kept) if view.turn.kept else ""


def _next(view: TurnView, outcome: Outcome) -> str:
    if (one := questions.settled_approval(view)) is not None:
        return f"**Next:** {outcomes.next_after(one.state, view.command)}"
    if (held := questions.held_commit(view)) is not None:
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


def _is_on_fork(view: TurnView) -> bool:
    """Work that is offered to the author of a fork."""
    return view.turn.traits.changes and view.turn.part(OnFork).fork is not None


def _checks_failed(view: TurnView, outcome: Outcome) -> bool:
    pushed = outcome in (Outcome.PULL_REQUEST, Outcome.PUSHED)
    return pushed and any(row["exit_code"] != 0 for row in view.verified)


def _work_fails(view: TurnView, outcome: Outcome) -> bool:
    return _checks_failed(view, outcome) and verification.work_fails(view.verified)


def _final_meter(view: TurnView) -> str:
    turn = view.turn
    took = duration((turn.finished_at or view.now) - turn.created_at)
    model = f" · {tokens(view.cost.usage)} tokens · {sections.model(view)}" if _has_asked(view) else ""
    where = sections.page_link(view, f"session {turn.key.session}, turn {turn.key.n}")
    return f"<sub>{took} · {sections.money_spent(view)}{model} · {where}{sections.pinned(view)}</sub>"


def _has_asked(view: TurnView) -> bool:
    """No model is named as one that worked where none was asked: an undo, a merge by git, an end at the start."""
    return view.cost.usage != TokenUsage() or bool(view.state.model)


ROOM = 60_000
"""The rest of GitHub's 65,536 is for what making the whole harmless may add."""
ROOM_LINES = 8_000
"""Fewer than are read of any text (`text.scanner`): a box below what nobody reads would be none."""
MOST_SAID = 700
MOST_TODO = 20
DONE_BEFORE = 3
MOST_ASKS = 5
SILENT_SECONDS = 60.0
TODO_SIGNS = {"completed": "✅", "in_progress": "▶️", "pending": "▫️"}


@dataclass(frozen=True)
class Part:
    """One section; where all are too long together, those with the highest `rank` are left out first."""

    text: str
    rank: int = 0


def comment(view: TurnView) -> str:
    """Marker first; then what people read, the most telling lines first; no boxes but ours."""
    texts = final_parts(view) if view.ended else _running(view)
    kept = [Part(text, rank) for text, rank in texts if text]
    while _is_too_long(kept) and any(part.rank for part in kept):
        kept.remove(max(kept, key=lambda part: part.rank))
    body = "\n\n".join([_marker(view), *(part.text for part in kept)])
    return questions.alone_box(body, view.boxes, view.command)


def _is_too_long(parts: Sequence[Part]) -> bool:
    lines = sum(part.text.count("\n") + 2 for part in parts)
    return lines > ROOM_LINES or sum(prose.size(part.text) + 2 for part in parts) > ROOM


def _marker(view: TurnView) -> str:
    turn = view.turn
    state = TurnState.DONE if view.ended else turn.state
    outcome = f" outcome={turn.outcome}" if view.ended and turn.outcome else ""
    return f"<!-- forgehand:session={turn.key.session} turn={turn.key.n} state={state}{outcome} -->"


def _running(view: TurnView) -> list[tuple[str, int]]:
    return [
        (_headline(view), 0),
        (sections.request(view), 0),
        (waiting(view), 0),
        (sections.heard(view.state), 2),
        (_asks(view), 0),
        (sections.checks(view), 3),
        (_todo(view.state), 3),
        (_now(view), 0),
        (sections.agents_words(clip(view.state.said.strip(), MOST_SAID), 2 * MOST_SAID), 4),
        (sections.subagents(view), 2),
        (sections.files_so_far(view.state), 5),
        (sections.tools(view.state), 6),
        (sections.log(view.state), 7),
        (sections.withheld(view), 2),
        (_meter(view), 0),
        (sections.environment(view), 1),
        ("" if view.asks else questions.rendered(view.boxes, view.command), 0),
        (_foot(view), 1),
    ]


def _headline(view: TurnView) -> str:
    turn = view.turn
    if turn.stop_requested:
        return "### ⏹️ Stopping"
    if turn.state is TurnState.QUEUED:
        state = "⏸️ Paused by the operator" if view.paused else "⏳ Queued"
        return f"### {state}, {ordinal(view.place.number)} in line" if view.place else f"### {state}"
    sign, words = ("❓", "Waiting for your answer") if view.asks else ("🛠️", endings.STEP_WORDS[turn.step].capitalize())
    elapsed = duration(view.now - (turn.started_at or turn.created_at))
    return f"### {sign} {words} · step {turn.step.number} of {len(Step)} · {elapsed}"


def waiting(view: TurnView) -> str:
    if (place := view.place) is None:
        return ""
    if view.paused:
        return "Nothing new starts until the operator resumes Forgehand; then this starts by itself."
    if place.behind_own_thread:
        reason = "It starts when the turn before it on this thread has ended"
    elif place.running:
        reason = f"It waits for a free slot: {place.running} {'turn is' if place.running == 1 else 'turns are'} running"
    else:
        return "It starts in a moment."
    if place.estimate is None:
        return f"{reason}."
    return f"{reason}. That may take {roughly(place.estimate)}, judging by the last {place.known} turns."


def _asks(view: TurnView) -> str:
    """Shows each question with the boxes that answer it: nobody must guess which is which."""
    answers = {one.id: questions.boxes_of(one.id, view.boxes) for one in view.asks}
    parts, of_none = [], [box for box in view.boxes if not any(box in own for own in answers.values())]
    for one in view.asks[:MOST_ASKS]:
        question = on_approvals.question(str(one.matter["shown"])) if "shown" in one.matter else ""
        parts += [question, questions.rendered(answers[one.id], view.command)]
    if (more := len(view.asks) - MOST_ASKS) > 0:
        parts.append(on_approvals.more_questions(more))
    if not parts:
        return ""
    *before, last = parts
    return "\n\n".join(
        [*filter(None, before), "\n".join(filter(None, (last, questions.rendered(of_none, view.command))))]
    )


def _todo(state: LiveState) -> str:
    first = next((at for at, item in enumerate(state.todo) if item.state != "completed"), len(state.todo))
    start = min(max(0, first - DONE_BEFORE), max(0, len(state.todo) - MOST_TODO))
    shown = state.todo[start : start + MOST_TODO]
    rows = [f"{TODO_SIGNS.get(item.state, '▫️')} {line(item.text, 160)}" for item in shown]
    if start:
        rows.insert(0, f"✅ {start} done before")
    if (rest := len(state.todo) - start - len(shown)) > 0:
        rows.append(f"… and {rest} more")
    return "  \n".join(rows)


def _now(view: TurnView) -> str:
    state, turn = view.state, view.turn
    if turn.step is not Step.WORK or turn.state is not TurnState.RUNNING:
        return ""
    if view.asks:  # the call that it asks for is not running
        until = min(one.expires_at for one in view.asks)
        return f"**Now:** waiting for your answer until {clock(until)} UTC"
    if state.retrying is not None:
        status = f" ({state.retrying.status})" if state.retrying.status else ""
        return (
            f"**Now:** the model's provider answered with an error{status}; trying again (try {state.retrying.attempt})"
        )
    silent = view.now - (state.pulse_at or turn.work_started_at or view.now)
    if (tool := state.current) is not None:
        since = f"since {clock(tool.began_at)} UTC"
        if silent > SILENT_SECONDS:
            return f"**Now:** silent for {duration(silent)} while {sections.tool_words(tool)} runs ({since})"
        return f"**Now:** {sections.tool_words(tool)} · for {duration(view.now - tool.began_at)} ({since})"
    return f"**Now:** thinking · silent for {duration(silent)}" if silent > SILENT_SECONDS else "**Now:** thinking"


def _meter(view: TurnView) -> str:
    """Tokens and dollars as the gateway counted them, not as the agent says; and when all of this was so."""
    about = f"{sections.model(view)}{sections.pinned(view)} · as of {clock(view.now)} UTC"
    return f"<sub>{sections.money_meter(view)} · {tokens(view.cost.usage)} tokens · {about}</sub>"


def _foot(view: TurnView) -> str:
    rarely = "So many sessions are running that this comment is updated at the start and the end only. " * view.crowded
    watch = f"{sections.page_link(view, 'Watch it live')}. " if view.page_url else ""
    kept = "" if view.turn.state is TurnState.QUEUED else "Stopping keeps the work so far."
    if view.turn.stop_requested:
        kept = "The work so far is kept."
    words = f"{rarely}{watch}{kept}".strip()
    return f"<sub>{words}</sub>" if words else ""
