"""The live comment as markdown, from one look at a turn: pure, and under GitHub's limit by construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.live import boxes, final, money, sections
from bot.live.figures import clip, clock, duration, line, ordinal, roughly, tokens
from bot.models import Step, TurnState
from bot.outbound import truncate
from bot.words import endings, on_approvals

if TYPE_CHECKING:
    from bot.live.page import TurnView
    from bot.live.state import LiveState, ToolCall

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
    texts = final.parts(view) if view.ended else _running(view)
    kept = [Part(text, rank) for text, rank in texts if text]
    while _is_too_long(kept) and any(part.rank for part in kept):
        kept.remove(max(kept, key=lambda part: part.rank))
    body = "\n\n".join([_marker(view), *(part.text for part in kept)])
    return boxes.alone(body, view.boxes, view.command)


def _is_too_long(parts: Sequence[Part]) -> bool:
    lines = sum(part.text.count("\n") + 2 for part in parts)
    return lines > ROOM_LINES or sum(truncate.size(part.text) + 2 for part in parts) > ROOM


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
        (_said(view.state), 4),
        (sections.subagents(view), 2),
        (sections.files_so_far(view.state), 5),
        (sections.tools(view.state), 6),
        (sections.log(view.state), 7),
        (sections.withheld(view), 2),
        (_meter(view), 0),
        (sections.environment(view), 1),
        ("" if view.asks else boxes.rendered(view.boxes, view.command), 0),
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
    """What a turn in the line waits for; how long only where ended turns tell."""
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
    """What the agent waits for, each with the boxes that answer it: of several nobody must guess which is which."""
    answers = {one.id: boxes.of(one.id, view.boxes) for one in view.asks}
    parts, of_none = [], [box for box in view.boxes if not any(box in own for own in answers.values())]
    for one in view.asks[:MOST_ASKS]:
        question = on_approvals.question(str(one.matter["shown"])) if "shown" in one.matter else ""
        parts += [question, boxes.rendered(answers[one.id], view.command)]
    if (more := len(view.asks) - MOST_ASKS) > 0:
        parts.append(on_approvals.more_questions(more))
    if not parts:
        return ""
    *before, last = parts
    return "\n\n".join([*filter(None, before), "\n".join(filter(None, (last, boxes.rendered(of_none, view.command))))])


def _todo(state: LiveState) -> str:
    """Of a long list the part around what is done now."""
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
        return _tool_now(tool, view.now, silent)
    return f"**Now:** thinking · silent for {duration(silent)}" if silent > SILENT_SECONDS else "**Now:** thinking"


def _tool_now(tool: ToolCall, now: float, silent: float) -> str:
    since = f"since {clock(tool.began_at)} UTC"
    if silent > SILENT_SECONDS:
        return f"**Now:** silent for {duration(silent)} while {sections.tool_words(tool)} runs ({since})"
    return f"**Now:** {sections.tool_words(tool)} · for {duration(now - tool.began_at)} ({since})"


def _said(state: LiveState) -> str:
    return sections.agents_words(clip(state.said.strip(), MOST_SAID), 2 * MOST_SAID)


def _meter(view: TurnView) -> str:
    """Tokens and dollars as the gateway counted them, not as the agent says; and when all of this was so."""
    about = f"{sections.model(view)}{sections.pinned(view)} · as of {clock(view.now)} UTC"
    return f"<sub>{money.meter(view)} · {tokens(view.cost.usage)} tokens · {about}</sub>"


def _foot(view: TurnView) -> str:
    rarely = "So many sessions are running that this comment is updated at the start and the end only. " * view.crowded
    watch = f"{sections.page_link(view, 'Watch it live')}. " if view.page_url else ""
    kept = "" if view.turn.state is TurnState.QUEUED else "Stopping keeps the work so far."
    if view.turn.stop_requested:
        kept = "The work so far is kept."
    words = f"{rarely}{watch}{kept}".strip()
    return f"<sub>{words}</sub>" if words else ""
