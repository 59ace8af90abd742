"""Renders the live comment, running and final, from one look at a turn: pure, and under GitHub's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot import repo_config
from bot.funds import FundsState
from bot.kinds.review import HandedOver
from bot.kinds.shape import Aim, BroughtHome, OnFork, WorkEstimate
from bot.live import open_findings, questions, sections
from bot.live.questions import TickBox
from bot.live.sections import clip, clock, duration, line, ordinal, roughly, tokens
from bot.models import Outcome, Step, TokenUsage, TurnState
from bot.outbound import prose
from bot.proposal import titles, verification
from bot.words import endings, on_approvals, on_estimates, on_findings, on_forks, on_reviews

if TYPE_CHECKING:
    from bot.live.page import TurnView
    from bot.live.state import LiveState

MOST_RESULT = 12_000
MOST_QUOTED = 24_000
MOST_DETAIL = 8_000
SHORTENED = "*(shortened)*"
ROOM = 60_000
"""The rest of GitHub's 65,536 is for what making the whole harmless may add."""
ROOM_LINES = 8_000
"""Fewer lines than `text.scanner` reads: it must still find our boxes at the end."""
MOST_SAID = 700
MOST_TODO = 20
DONE_BEFORE = 3
MOST_ASKS = 5
SILENT_SECONDS = 60.0
TODO_SIGNS = {"completed": "✅", "in_progress": "▶️", "pending": "▫️"}
_PUSHED = (Outcome.PULL_REQUEST, Outcome.PUSHED)


def comment(view: TurnView) -> str:
    """Render the marker, then the most telling lines first; no boxes but ours."""
    parts = [(text, rank) for text, rank in (_final_parts(view) if view.ended else _running_parts(view)) if text]
    while _is_too_long([text for text, _ in parts]) and any(rank for _, rank in parts):
        parts.remove(max(parts, key=lambda part: part[1]))
    turn = view.turn
    outcome = f" outcome={turn.outcome}" if view.ended and turn.outcome else ""
    state = f"state={TurnState.DONE if view.ended else turn.state}{outcome}"
    marker = f"<!-- forgehand:session={turn.key.session} turn={turn.key.n} {state} -->"
    return questions.alone_box("\n\n".join([marker, *(text for text, _ in parts)]), view.boxes, view.command)


def _is_too_long(texts: list[str]) -> bool:
    lines = sum(text.count("\n") + 2 for text in texts)
    return lines > ROOM_LINES or sum(prose.size(text) + 2 for text in texts) > ROOM


def _final_parts(view: TurnView) -> list[tuple[str, int]]:
    """Return each section with its rank: the higher, the sooner it is left out."""
    collected, outcome = view.turn.part(BroughtHome), view.turn.outcome or Outcome.FAILED
    has_to_tell = view.turn.traits.checks_followed and (bool(view.verified) or not view.turn.traits.is_free)
    verified = outcome in _PUSHED and has_to_tell
    return [
        (_final_headline(view, outcome), 0),
        (sections.request(view), 0),
        (sections.heard(view.state), 2),
        (_detail(view), 0),
        (open_findings.section(view.reviewed, view.command), 0),
        (questions.words_asked(view), 0),
        (_answer(view), 5),
        (
            sections.files(
                [(file["path"], file["added"], file["removed"]) for file in view.files], "changed", view.commit_url
            ),
            4,
        ),
        (sections.verified(view) if verified else "", 3),
        (endings.left_out(collected.left_out), 2),
        (_saved(view), 0),
        (sections.blocked_hosts(collected.blocked), 2),
        (sections.packages(view), 3),
        (sections.subagents(view), 2),
        (sections.switched(view), 2),
        (sections.folders(view), 2),
        (sections.withheld(view), 2),
        (_next(view, outcome), 0),
        (questions.rendered(_boxes_at_the_end(view), view.command), 0),
        (_final_meter(view), 0),
    ]


def _boxes_at_the_end(view: TurnView) -> list[TickBox]:
    above = open_findings.boxes(view.reviewed)
    return [box for box in questions.boxes_left(view) if box not in above]


def _final_headline(view: TurnView, outcome: Outcome) -> str:
    if outcome is Outcome.PLANNED and (plan := questions.settled_approval(view)):
        return f"### {endings.plan_headline(plan.state)}"
    if view.turn.part(WorkEstimate).asks:
        settled = questions.settled_approval(view)
        return f"### {on_estimates.headline(settled.state if settled else '')}"
    if _is_on_fork(view) and (words := on_forks.headline(outcome)):
        return f"### {words}"
    pull = (view.turn.pull_number or view.session.pull_number) if outcome in _PUSHED else None
    of = " of" if outcome is Outcome.PUSHED else ""
    words = f"{endings.headline(outcome)}{f'{of} #{pull}' if pull else ''}"
    fails = _checks_failed(view, outcome) and verification.work_fails(view.verified)
    return f"### {endings.with_failing_checks(words) if fails else words}"


def _detail(view: TurnView) -> str:
    turn = view.turn
    waited = turn.outcome is Outcome.PLANNED or turn.part(WorkEstimate).asks
    if waited and questions.settled_approval(view) is not None:  # it no longer waits
        return ""
    late = turn.stop_requested if turn.outcome is not Outcome.STOPPED else None
    words = "\n\n".join(filter(None, (turn.detail, endings.asked_too_late(late) if late else "")))
    return prose.truncate(words[: 2 * MOST_DETAIL], MOST_DETAIL, SHORTENED)


def _answer(view: TurnView) -> str:
    if view.turn.traits.judges and view.turn.part(HandedOver).posted is not None:  # it stands in the review
        return ""
    text = prose.truncate((view.turn.agent_result or "").strip(), MOST_RESULT, SHORTENED)
    return sections.agents_words(text, MOST_QUOTED, SHORTENED)


def _so_far(view: TurnView) -> str:
    """Show what the agent said last, without the title that its last message may hold for the pull request."""
    said = view.state.said
    words = titles.parted(said)[1] if view.turn.traits.changes else said
    return sections.agents_words(clip(words.strip(), MOST_SAID), 2 * MOST_SAID)


def _saved(view: TurnView) -> str:
    if view.turn.state is not TurnState.DONE:
        return endings.being_saved(view.turn.key.rescue_ref)
    if view.turn.rescue_ref:
        return endings.rescued(view.turn.rescue_ref, view.turn.rescue_until)
    if view.turn.part(OnFork).patch:  # which the turn's own words name
        return ""
    page = f"{view.page_url}/changes?turn={view.turn.n}" if view.page_url else ""
    return endings.kept_on_host(view.turn.kept, page) if view.turn.kept else ""


def _next(view: TurnView, outcome: Outcome) -> str:
    if (one := questions.settled_approval(view)) is not None:
        return f"**Next:** {endings.next_after(one.state, view.command)}"
    if view.turn.part(WorkEstimate).asks:
        return f"**Next:** {on_estimates.what_next(view.command)}"
    if (held := questions.held_commit(view)) is not None:
        lacks = bool(held.matter.get("lacks"))
        return f"**Next:** {endings.next_for_held(held.id, view.command, lacks=lacks)}"
    instead = endings.checks_failed(view.command) if _checks_failed(view, outcome) else ""
    if _is_on_fork(view):
        instead = on_forks.what_next(outcome, view.command) or instead
    review = view.turn.part(HandedOver).review
    if outcome is Outcome.REVIEWED and review is not None and not review["comments"]:
        instead = endings.after_a_clean_review(view.command)
    if view.reviewed is not None and view.reviewed.open:
        instead = on_findings.tick_or_say(view.command)
    if outcome is Outcome.FAILED and view.means is FundsState.LEFT:
        instead = endings.after_failure(view.turn.agent_error, view.command)
    if not view.turn.traits.repeatable and outcome in (Outcome.REFUSED, Outcome.NO_CHANGE):
        instead = endings.for_something_else(view.command)
    if outcome is Outcome.NEEDS_INPUT and view.boxes:
        instead = endings.tick_or_say(view.command)
    looked = f" {_about_findings(view)}" if view.findings else ""
    return f"**Next:** {instead or endings.what_next(outcome, view.command, view.means)}{looked}"


def _about_findings(view: TurnView) -> str:
    aimed = len(view.turn.part(Aim).findings)
    if aimed and view.means is FundsState.LEFT and repo_config.load(view.turn.config).triggers.review_fixes:
        return on_findings.will_look(aimed)
    return on_reviews.open_still(view.findings, view.command)


def _is_on_fork(view: TurnView) -> bool:
    return view.turn.traits.changes and view.turn.part(OnFork).fork is not None


def _checks_failed(view: TurnView, outcome: Outcome) -> bool:
    return outcome in _PUSHED and any(row["exit_code"] != 0 for row in view.verified)


def _final_meter(view: TurnView) -> str:
    turn = view.turn
    took = duration((turn.finished_at or view.now) - turn.created_at)
    # An undo, a merge by git or an end at the start asks no model, so none is named.
    has_asked = view.cost.usage != TokenUsage() or view.state.model
    model = f" · {tokens(view.cost.usage)} tokens · {sections.models(view)}" if has_asked else ""
    where = sections.page_link(view, f"session {turn.key.session}, turn {turn.key.n}")
    return f"<sub>{took} · {sections.money_spent(view)}{model} · {where}{sections.pinned(view)}</sub>"


def _running_parts(view: TurnView) -> list[tuple[str, int]]:
    # Tokens and dollars as the gateway counted them, not as the agent says; and when all of this was so.
    about = f"{sections.model(view)}{sections.pinned(view)} · as of {clock(view.now)} UTC"
    used = filter(None, (f"{tokens(view.cost.usage)} tokens", sections.context(view), about))
    meter = f"<sub>{sections.money_meter(view)} · {' · '.join(used)}</sub>"
    return [
        (_headline(view), 0),
        (sections.request(view), 0),
        (waiting(view), 0),
        (on_estimates.expected(view.turn.part(WorkEstimate)), 1),
        (sections.heard(view.state), 2),
        (_asks(view), 0),
        (sections.checks(view), 3),
        (_todo(view.state), 3),
        (_now(view), 0),
        (sections.switched(view), 1),
        (_so_far(view), 4),
        (sections.subagents(view), 2),
        (sections.packages(view), 3),
        (sections.files_so_far(view.state), 5),
        (sections.tools(view.state), 6),
        (sections.log(view.state), 7),
        (sections.withheld(view), 2),
        (meter, 0),
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
    """Show each question right above the boxes that answer it."""
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
    end = "\n".join(filter(None, (last, questions.rendered(of_none, view.command))))
    return "\n\n".join([*filter(None, before), end])


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
        again = f"trying again (try {state.retrying.attempt})"
        return f"**Now:** the model's provider answered with an error{status}; {again}"
    silent = view.now - (state.pulse_at or turn.work_started_at or view.now)
    if (tool := state.current) is not None:
        since = f"since {clock(tool.began_at)} UTC"
        if silent > SILENT_SECONDS:
            return f"**Now:** silent for {duration(silent)} while {sections.tool_words(tool)} runs ({since})"
        return f"**Now:** {sections.tool_words(tool)} · for {duration(view.now - tool.began_at)} ({since})"
    return f"**Now:** thinking · silent for {duration(silent)}" if silent > SILENT_SECONDS else "**Now:** thinking"


def _foot(view: TurnView) -> str:
    rarely = (
        "So many sessions are running that Forgehand updates this comment only at the start and the end. "
        * view.crowded
    )
    watch = f"{sections.page_link(view, 'Watch it live')}. " if view.page_url else ""
    kept = "" if view.turn.state is TurnState.QUEUED else "Stopping keeps the work so far."
    if view.turn.stop_requested:
        kept = "The work so far is kept."
    words = f"{rarely}{watch}{kept}".strip()
    return f"<sub>{words}</sub>" if words else ""
