"""Writes the sections of the live comment, and its times, sizes and counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot import repo_config
from bot.agent import prompt
from bot.kinds import TRAITS
from bot.kinds.parts import AgentReading
from bot.kinds.resolve import Merge
from bot.models import Step, TurnState
from bot.outbound import neutralise, prose
from bot.proposal import verification
from bot.words import endings
from bot.words.quoting import shown

if TYPE_CHECKING:
    from bot.live.page import TurnView
    from bot.live.state import LiveState, ToolCall
from typing import TYPE_CHECKING, Any

from bot.words import on_money, quoting

if TYPE_CHECKING:
    from bot.live.page import TurnView
import time

from bot.models import Outcome, TokenUsage
from bot.store.sessions import Turn

BAR_PARTS = 10


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def roughly(seconds: float) -> str:
    """Claims no second of what is not known exactly."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 90 else f"about {round(minutes / 60)} h"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(at))


def count(number: int) -> str:
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f} k" if number < 1_000_000 else f"{number / 1_000_000:.1f} M"


def size(count_of_bytes: int) -> str:
    return f"{count_of_bytes / 1e6:.0f} MB" if count_of_bytes < 1e9 else f"{count_of_bytes / 1e9:.1f} GB"


def tokens(usage: TokenUsage) -> str:
    return count(usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens)


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def bar(part: float, whole: float) -> str:
    filled = round(min(1.0, part / whole) * BAR_PARTS) if whole > 0 else 0
    return "▰" * filled + "▱" * (BAR_PARTS - filled)


def line(text: str, most: int) -> str:
    """Words of others on one line."""
    return neutralise.line(clip(" ".join(text.split()), most))


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


MOST_PATHS = 10
MOST_HOSTS = 10
NEVER = ("github.com", "api.github.com", "api.anthropic.com")
"""No config opens the way to these: what is done there is done by the host."""
_CONFIG = "`.github/forgehand.yml`"


def left_out_notes(notes: Sequence[str]) -> str:
    """One folded line, so that nobody wonders why the agent did not know."""
    if not notes:
        return ""
    rows = "\n".join(f"- {neutralise.line(note)}" for note in notes)
    head = "1 thing was" if len(notes) == 1 else f"{len(notes)} things were"
    return f"<details><summary>{head} left out of the agent's prompt</summary>\n\n{rows}\n\n</details>"


def ignored_paths(paths: Sequence[str], base: str | None) -> str:
    """Said where a pull request would have steered its own run."""
    if not paths:
        return ""
    of_the_base = f" The version on {shown(base, 200)} counts." if base else ""
    named = quoting.named(paths, MOST_PATHS)
    return f"Not used in this run, because this pull request changes it: {named}.{of_the_base}"


def blocked_hosts(hosts: Sequence[dict[str, Any]]) -> str:
    if not hosts:
        return ""
    named = ", ".join(f"{_host(one)} ×{one['count']}" for one in hosts[:MOST_HOSTS])
    more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
    text = f"**Blocked by the network:** {named}{more}."
    if any(one["host"] not in NEVER and one["port"] == 443 for one in hosts):
        text += f" To allow a host, add it to `egress:` in {_CONFIG} on the default branch."
    if any(one["port"] != 443 for one in hosts):
        text += " Only https (port 443) can be allowed."
    return text


def _host(one: dict[str, Any]) -> str:
    port = "" if one["port"] == 443 else f":{one['port']}"
    return shown(f"{one['host']}{port}", 120)


MOST_FILES = 25
MOST_HEARD = 5
MOST_LOG_LINES = 20
Changed = tuple[str, int | None, int | None]
"""Path, lines added and removed; None for what is no text."""


def request(view: TurnView) -> str:
    """The request in one line, with the command where it is no plain work."""
    turn = view.turn
    verb = f"`{turn.asked_as}` " if TRAITS[turn.asked_as].named else ""
    words = f"{verb}{line(prompt.in_brief(turn.prompt), 200)}".strip()
    return f"> **{neutralise.line(turn.requester)}**: {words or '(no further words)'}"


def heard(state: LiveState) -> str:
    rows = [f"> 💬 **{neutralise.line(who)}**: {line(words, 200)}" for who, words in state.heard[-MOST_HEARD:]]
    if len(state.heard) > MOST_HEARD:
        rows.insert(0, f"> 💬 … and {len(state.heard) - MOST_HEARD} before")
    return "  \n".join(rows)


def agents_words(text: str, most: int, note: str = "…") -> str:
    """Set apart, so that nobody takes them for ours; `most` is for what is shown of them."""
    words = prose.fitted(prose.lines(text, note=note), most, neutralise.quoted, note)
    return f"**The agent says:**\n\n{words}" if text.strip() else ""


def tools(state: LiveState) -> str:
    finished = [tool for tool in state.tools if tool.ok is not None]
    if not finished:
        return ""
    rows = [f"- {'✓' if tool.ok else '✗'} {tool_words(tool)}{_result(tool)}" for tool in finished]
    return folded(f"Last tool calls ({state.tool_count} so far)", "\n".join(rows))


def tool_words(tool: ToolCall) -> str:
    title = shown(tool.title, 120) if tool.title else ""
    name = re.sub(r"[^\w.:-]", "", tool.name)[:60] or "?"
    return f"**{name}** {title}".rstrip()


def _result(tool: ToolCall) -> str:
    first = next((one for one in tool.summary.splitlines() if one.strip()), "")
    return f" → {shown(first.strip(), 100)}" if first else ""


def subagents(view: TurnView) -> str:
    """Said once it has stopped one."""
    refused = view.state.spawns_refused
    return endings.subagents_refused(refused, *view.subagents) if refused else ""


def log(state: LiveState) -> str:
    """The end of what it said and did, as plain text."""
    rows = [f"{clock(at)} {text}" for at, text in list(state.log)[-MOST_LOG_LINES:] if text]
    return folded("Log", neutralise.block("\n".join(rows), "text")) if rows else ""


def files_so_far(state: LiveState) -> str:
    """Lists edits by the agent's editing tools; what its commands change is known at the end."""
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


def withheld(view: TurnView) -> str:
    """Names what of the thread and the repository the agent was not given, or was told to leave aside."""
    turn, read = view.turn, view.turn.part(AgentReading)
    parts = (ignored_paths(read.ignored, turn.base), left_out_notes(read.notes))
    return "\n\n".join(filter(None, parts))


def environment(view: TurnView) -> str:
    """While the agent works in it; what it uses in other steps is not looked at."""
    if view.sample is None or view.turn.step is not Step.WORK:
        return ""
    peak = f" (peak {size(view.sample.peak_memory_bytes)})"
    used = f"CPU {view.sample.cpu_percent:.0f} %, memory {size(view.sample.memory_bytes)}{peak}"
    return f"<sub>environment: {used}, disk {size(view.sample.disk_bytes)}</sub>"


def model(view: TurnView) -> str:
    return line(view.state.model or view.turn.model, 80)


def checks(view: TurnView) -> str:
    """While they run, and while the agent mends what they have found."""
    turn = view.turn
    if not view.verified or turn.state is not TurnState.RUNNING:
        return ""
    if turn.step in (Step.WORK, Step.COLLECT) and turn.mending is not None:
        return f"{verified(view)}\n\n**The agent was given this output, once, and is fixing it.**"
    return verified(view) if turn.step is Step.VERIFY else ""


def verified(view: TurnView) -> str:
    """Tells what Forgehand itself ran; what the agent says of its own checks stands in its words."""
    mended = view.turn.mending is not None and view.turn.state is TurnState.DONE
    declared = bool(repo_config.load(view.turn.config).checks)
    words = verification.words(view.verified, neutralise.block, mended=mended, declared=declared)
    return f"**Verified by Forgehand:** {words}"


def pinned(view: TurnView) -> str:
    """The commit that the work starts from, for the line of figures; of a merge the two that are brought together."""
    turn, merged = view.turn, view.turn.part(Merge).sha
    shas = (turn.tip_sha, merged) if merged else (turn.base_sha,)
    known = [f"`{sha[:12]}`" for sha in shas if sha]
    return f" · from {' and '.join(known)}" if known else ""


def page_link(view: TurnView, words: str) -> str:
    """Links the session's own page, where it has one that others can reach."""
    return f"[{words}]({view.page_url})" if view.page_url else words


def money_meter(view: TurnView) -> str:
    """The bar is that of the limit which is reached first."""
    turn, money = view.turn, view.funds
    whole = max((money.counted_usd, money.limit_usd), (view.cost.counted_usd, turn.budget_usd), key=_share)
    return f"{bar(*whole)} {money_spent(view)}"


def money_spent(view: TurnView) -> str:
    """The turn's own where it has a limit of its own, or is the only one; else beside the session's."""
    turn, money = view.turn, view.funds
    machine = f" + {on_money.dollars(view.sandbox_usd)} sandbox" if view.sandbox_usd else ""
    session = on_money.spent_of(money.spent_usd, money.unconfirmed_usd, money.limit_usd)
    if not turn.budget_usd and turn.n == 1:
        return f"{session}{machine}"
    own = f" of ${turn.budget_usd:.2f}" if turn.budget_usd else ""
    open_ = on_money.unconfirmed(view.cost.unconfirmed_usd)
    return f"${view.cost.usd:.2f}{own}{open_}{machine} · session {session}"


def _share(pair: tuple[float, float]) -> float:
    part, whole = pair
    return part / whole if whole > 0 else 0.0


PATIENCE_SECONDS = 1.0
"""Most work is saved by then, and the comment can say at once where."""
LONGER_PATIENCE_SECONDS = 6.0
"""Where the agent itself had to be ended first: then nothing has been brought home yet."""
_SAVED_IN = (Step.COLLECT, Step.VERIFY, Step.PUBLISH, Step.SETTLE)


def is_stop_said(turn: Turn, now: float) -> bool:
    """Its end is shown though it goes on. True once, it stays true until it is done."""
    if turn.state is TurnState.DONE or turn.outcome is not Outcome.STOPPED or turn.stop_at is None:
        return False
    return turn.step in _SAVED_IN and now >= stop_said_from(turn)


def stop_said_from(turn: Turn) -> float:
    assert turn.stop_at is not None
    had_ended = turn.step_times.get(Step.COLLECT, turn.stop_at + 1) <= turn.stop_at
    return turn.stop_at + (PATIENCE_SECONDS if had_ended else LONGER_PATIENCE_SECONDS)
