"""The live comment as markdown, from one look at a turn: pure, and under GitHub's limit by construction."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bot import endings, replies
from bot.command_options import shown
from bot.live import asides
from bot.live.state import LiveState, ToolUse
from bot.models import Outcome, Step, TurnState
from bot.outbound import neutralise, truncate

if TYPE_CHECKING:
    from bot.live.page import View

MOST_RESULT = 12_000
MOST_SAID = 700
MOST_TODO = 20
MOST_FILES = 25
SILENT_SECONDS = 60.0
TODO_SIGNS = {"completed": "✅", "in_progress": "▶️", "pending": "▫️"}


def comment(view: View) -> str:
    """Marker first; then what people read, the most telling lines first."""
    sections = _final(view) if view.turn.state is TurnState.DONE else _running(view)
    return "\n\n".join([_marker(view), *(section for section in sections if section)])


def _marker(view: View) -> str:
    turn = view.turn
    outcome = f" outcome={turn.outcome}" if turn.state is TurnState.DONE and turn.outcome else ""
    return f"<!-- forgehand:session={turn.key.session} turn={turn.key.n} state={turn.state}{outcome} -->"


def _running(view: View) -> list[str]:
    return [
        _headline(view),
        _request(view),
        _todo(view.state),
        _now(view),
        _said(view.state),
        _tools(view.state),
        _withheld(view),
        _meter(view),
        _environment(view),
        _foot(view),
    ]


def _headline(view: View) -> str:
    turn = view.turn
    if turn.state is TurnState.QUEUED:
        place = f", {_ordinal(view.place)} in line" if view.place else ""
        return f"### ⏸️ Paused by the operator{place}" if view.paused else f"### ⏳ Queued{place}"
    if turn.stop_requested:
        return "### ⏹️ Stopping"
    words = endings.STEP_WORDS[turn.step].capitalize()
    elapsed = duration(view.now - (turn.started_at or turn.created_at))
    return f"### 🛠️ {words} · step {turn.step.number} of {len(Step)} · {elapsed}"


def _request(view: View) -> str:
    words = " ".join(view.turn.prompt.split())
    short = words if len(words) <= 200 else words[:199] + "…"
    return f"> **{neutralise.inert(view.turn.requester)}**: {neutralise.inert(short) or '(no further words)'}"


def _todo(state: LiveState) -> str:
    rows = [f"{TODO_SIGNS.get(item.state, '▫️')} {_line(item.text, 160)}" for item in state.todo[:MOST_TODO]]
    if len(state.todo) > MOST_TODO:
        rows.append(f"… and {len(state.todo) - MOST_TODO} more")
    return "  \n".join(rows)


def _now(view: View) -> str:
    state, turn = view.state, view.turn
    if turn.step is not Step.WORK or turn.state is not TurnState.RUNNING:
        return ""
    if state.retrying is not None:
        status = f" ({state.retrying.status})" if state.retrying.status else ""
        return f"**Now:** waiting for the model's provider{status}, try {state.retrying.attempt}"
    if (tool := state.current) is not None:
        return f"**Now:** {_tool_words(tool)} · for {duration(view.now - tool.began_at)}"
    silent = view.now - (state.pulse_at or turn.work_started_at or view.now)
    return f"**Now:** thinking · silent for {duration(silent)}" if silent > SILENT_SECONDS else "**Now:** thinking"


def _said(state: LiveState) -> str:
    text = neutralise.inert(state.said.strip())
    short = text if len(text) <= MOST_SAID else text[: MOST_SAID - 1] + "…"
    return "\n".join(f"> {line}" for line in short.splitlines())


def _tools(state: LiveState) -> str:
    finished = [tool for tool in state.tools if tool.ok is not None]
    if not finished:
        return ""
    rows = [f"- {'✓' if tool.ok else '✗'} {_tool_words(tool)}{_result(tool)}" for tool in finished]
    return (
        f"<details><summary>Last tool calls ({state.tool_count} so far)</summary>\n\n"
        + "\n".join(rows)
        + "\n\n</details>"
    )


def _withheld(view: View) -> str:
    turn = view.turn
    parts = (asides.ignored(turn.ignored or (), turn.base), asides.withheld(turn.notes or ()))
    return "\n\n".join(filter(None, parts))


def _tool_words(tool: ToolUse) -> str:
    title = shown(tool.title, 120) if tool.title else ""
    name = re.sub(r"[^\w.:-]", "", tool.name)[:60] or "?"
    return f"**{name}** {title}".rstrip()


def _result(tool: ToolUse) -> str:
    first = next((line for line in tool.summary.splitlines() if line.strip()), "")
    return f" → {shown(first.strip(), 100)}" if first else ""


def _meter(view: View) -> str:
    """Tokens and dollars as the gateway counted them, not as the agent says."""
    usage, turn = view.cost.usage, view.turn
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    share = min(1.0, view.cost.usd / turn.budget_usd) if turn.budget_usd else 0.0
    filled = round(share * 10)
    bar = "▰" * filled + "▱" * (10 - filled)
    return f"<sub>{bar} ${view.cost.usd:.2f} of ${turn.budget_usd:.2f} · {_count(tokens)} tokens · {_model(view)}</sub>"


def _environment(view: View) -> str:
    """While the agent works in it; what it uses in other steps is not looked at."""
    if view.sample is None or view.turn.step is not Step.WORK:
        return ""
    peak = f" (peak {_bytes(view.sample.peak_memory_bytes)})"
    used = f"CPU {view.sample.cpu_percent:.0f} %, memory {_bytes(view.sample.memory_bytes)}{peak}"
    return f"<sub>environment: {used}, disk {_bytes(view.sample.disk_bytes)}</sub>"


def _bytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def _model(view: View) -> str:
    return neutralise.inert(view.state.model or view.turn.model)


def _foot(view: View) -> str:
    return f"<sub>Comment `{view.command} stop` to end it; the work so far is kept.</sub>"


def _final(view: View) -> list[str]:
    turn = view.turn
    outcome = turn.outcome or Outcome.FAILED
    return [
        _final_headline(view, outcome),
        _request(view),
        turn.detail or "",
        _answer(view),
        _files(view),
        verified(view.verified, outcome),
        _saved(view),
        asides.blocked(view.turn.blocked or ()),
        _withheld(view),
        replies.what_next(outcome, view.command, ceiling=turn.agent_error == "ceiling_exhausted"),
        _final_meter(view),
    ]


def _final_headline(view: View, outcome: Outcome) -> str:
    pull = (
        f" #{view.session.pull_number}"
        if outcome in (Outcome.PULL_REQUEST, Outcome.PUSHED) and view.session.pull_number
        else ""
    )
    return f"### {replies.headline(outcome)}{pull}"


def _answer(view: View) -> str:
    text = (view.turn.agent_result or "").strip()
    if not text:
        return ""
    return truncate.truncate(neutralise.inert(text), MOST_RESULT, "*(shortened)*")


def _files(view: View) -> str:
    if not view.files:
        return ""
    added = sum(file["added"] or 0 for file in view.files)
    removed = sum(file["removed"] or 0 for file in view.files)
    rows = [f"- {shown(file['path'], 200)} {_delta(file)}" for file in view.files[:MOST_FILES]]
    if len(view.files) > MOST_FILES:
        rows.append(f"- and {len(view.files) - MOST_FILES} more")
    plural = "file" if len(view.files) == 1 else "files"
    head = f"{len(view.files)} {plural} changed, +{added} −{removed}"
    return f"<details><summary>{head}</summary>\n\n" + "\n".join(rows) + "\n\n</details>"


def _delta(file: dict[str, Any]) -> str:
    return "(binary)" if file["added"] is None else f"+{file['added']} −{file['removed']}"


def verified(rows: list[dict[str, Any]], outcome: Outcome) -> str:
    """What Forgehand itself ran; what the agent says of its own checks stands in its words above."""
    if outcome not in (Outcome.PULL_REQUEST, Outcome.PUSHED):
        return ""
    if not rows:
        return "**Verified by Forgehand:** nothing (no `checks` in `.github/forgehand.yml`)."
    where = "in the agent's environment" if any(row["where"] == "agent" for row in rows) else "on a clean checkout"
    lines = [
        f"- {'✓' if row['exit_code'] == 0 else '✗'} {shown(row['command'], 200)} exit {row['exit_code']}"
        for row in rows
    ]
    return f"**Verified by Forgehand** ({where}):\n" + "\n".join(lines)


def _saved(view: View) -> str:
    if view.turn.rescue_ref:
        return endings.rescued(view.turn.rescue_ref)
    return endings.kept_on_host(view.turn.kept) if view.turn.kept else ""


def _final_meter(view: View) -> str:
    turn = view.turn
    took = duration((turn.finished_at or view.now) - turn.created_at)
    usage = view.cost.usage
    tokens = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    machine = f" + {replies.dollars(view.sandbox_usd)} sandbox" if view.sandbox_usd else ""
    spent = f"${view.cost.usd:.2f}{machine} · {_count(tokens)} tokens · {_model(view)}"
    return f"<sub>{took} · {spent} · session {turn.key.session}</sub>"


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _count(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f} k" if number < 1_000_000 else f"{number / 1_000_000:.1f} M"


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _line(text: str, most: int) -> str:
    return neutralise.inert(_clip(" ".join(text.split()), most))


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
