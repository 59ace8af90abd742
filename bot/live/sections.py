"""Sections that the live comment has while the turn runs and when it has ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot import prompt, repo_config, verification
from bot.kinds import TRAITS
from bot.kinds.parts import AgentReading
from bot.kinds.resolve import Merge
from bot.live import asides
from bot.live.figures import clock, line, size
from bot.models import Step, TurnState
from bot.outbound import neutralise, truncate
from bot.words import endings
from bot.words.quoting import shown

if TYPE_CHECKING:
    from bot.live.page import View
    from bot.live.state import LiveState, ToolUse

MOST_FILES = 25
MOST_HEARD = 5
MOST_LOG_LINES = 20
Changed = tuple[str, int | None, int | None]
"""Path, lines added and removed; None for what is no text."""


def request(view: View) -> str:
    """The request in one line, with the command where it is no plain work."""
    turn = view.turn
    verb = f"`{turn.asked_as}` " if TRAITS[turn.asked_as].named else ""
    words = f"{verb}{line(prompt.in_brief(turn.prompt), 200)}".strip()
    return f"> **{neutralise.line(turn.requester)}**: {words or '(no further words)'}"


def heard(state: LiveState) -> str:
    """What was said to the agent while it worked, and that it has it."""
    rows = [f"> 💬 **{neutralise.line(who)}**: {line(words, 200)}" for who, words in state.heard[-MOST_HEARD:]]
    if len(state.heard) > MOST_HEARD:
        rows.insert(0, f"> 💬 … and {len(state.heard) - MOST_HEARD} before")
    return "  \n".join(rows)


def agents_words(text: str, most: int, note: str = "…") -> str:
    """Set apart, so that nobody takes them for ours; `most` is for what is shown of them."""
    words = truncate.fitted(truncate.lines(text, note=note), most, neutralise.quoted, note)
    return f"**The agent says:**\n\n{words}" if text.strip() else ""


def tools(state: LiveState) -> str:
    finished = [tool for tool in state.tools if tool.ok is not None]
    if not finished:
        return ""
    rows = [f"- {'✓' if tool.ok else '✗'} {tool_words(tool)}{_result(tool)}" for tool in finished]
    return folded(f"Last tool calls ({state.tool_count} so far)", "\n".join(rows))


def tool_words(tool: ToolUse) -> str:
    title = shown(tool.title, 120) if tool.title else ""
    name = re.sub(r"[^\w.:-]", "", tool.name)[:60] or "?"
    return f"**{name}** {title}".rstrip()


def _result(tool: ToolUse) -> str:
    first = next((one for one in tool.summary.splitlines() if one.strip()), "")
    return f" → {shown(first.strip(), 100)}" if first else ""


def subagents(view: View) -> str:
    """Said once it has stopped one."""
    refused = view.state.spawns_refused
    return endings.subagents_refused(refused, *view.subagents) if refused else ""


def log(state: LiveState) -> str:
    """The end of what it said and did, as plain text."""
    rows = [f"{clock(at)} {text}" for at, text in list(state.log)[-MOST_LOG_LINES:] if text]
    return folded("Log", neutralise.block("\n".join(rows), "text")) if rows else ""


def files_so_far(state: LiveState) -> str:
    """By the agent's editing tools; what its commands change is known at the end."""
    return files([(path, *counts) for path, counts in state.files.items()], "edited so far")


def files(changed: Sequence[Changed], what: str) -> str:
    if not changed:
        return ""
    added, removed = sum(row[1] or 0 for row in changed), sum(row[2] or 0 for row in changed)
    rows = [f"- {shown(path, 200)} {_delta(more, fewer)}" for path, more, fewer in changed[:MOST_FILES]]
    if len(changed) > MOST_FILES:
        rows.append(f"- and {len(changed) - MOST_FILES} more")
    plural = "file" if len(changed) == 1 else "files"
    return folded(f"{len(changed)} {plural} {what}, +{added} −{removed}", "\n".join(rows))


def _delta(added: int | None, removed: int | None) -> str:
    return "(binary)" if added is None else f"+{added} −{removed}"


def folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def withheld(view: View) -> str:
    """What of the thread and the repository the agent was not given, or was told to leave aside."""
    turn, read = view.turn, view.turn.part(AgentReading)
    parts = (asides.ignored(read.ignored, turn.base), asides.withheld(read.notes))
    return "\n\n".join(filter(None, parts))


def environment(view: View) -> str:
    """While the agent works in it; what it uses in other steps is not looked at."""
    if view.sample is None or view.turn.step is not Step.WORK:
        return ""
    peak = f" (peak {size(view.sample.peak_memory_bytes)})"
    used = f"CPU {view.sample.cpu_percent:.0f} %, memory {size(view.sample.memory_bytes)}{peak}"
    return f"<sub>environment: {used}, disk {size(view.sample.disk_bytes)}</sub>"


def model(view: View) -> str:
    return line(view.state.model or view.turn.model, 80)


def checks(view: View) -> str:
    """While they run, and while the agent mends what they have found."""
    turn = view.turn
    if not view.verified or turn.state is not TurnState.RUNNING:
        return ""
    if turn.step in (Step.WORK, Step.COLLECT) and turn.mending is not None:
        return f"{verified(view)}\n\n**The agent was given this output, once, and is fixing it.**"
    return verified(view) if turn.step is Step.VERIFY else ""


def verified(view: View) -> str:
    """What Forgehand itself ran; what the agent says of its own checks stands in its words."""
    mended = view.turn.mending is not None and view.turn.state is TurnState.DONE
    declared = bool(repo_config.load(view.turn.config).checks)
    words = verification.words(view.verified, neutralise.block, mended=mended, declared=declared)
    return f"**Verified by Forgehand:** {words}"


def pinned(view: View) -> str:
    """The commit that the work starts from, for the line of figures; of a merge the two that are brought together."""
    turn, merged = view.turn, view.turn.part(Merge).sha
    shas = (turn.tip_sha, merged) if merged else (turn.base_sha,)
    known = [f"`{sha[:12]}`" for sha in shas if sha]
    return f" · from {' and '.join(known)}" if known else ""


def page_link(view: View, words: str) -> str:
    """To the session's own page, where it has one that others can reach."""
    return f"[{words}]({view.page_url})" if view.page_url else words
