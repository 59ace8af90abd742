"""Writes the sections of the live comment, and its times, sizes and counts."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bot import repo_config
from bot.agent import prompt
from bot.kinds import TRAITS
from bot.kinds.resolve import Merge
from bot.kinds.shape import AgentReading, ByToken, WorkFolders
from bot.models import Outcome, Step, TokenUsage, TurnState
from bot.outbound import neutralise, prose
from bot.proposal import verification
from bot.store.sessions import Turn
from bot.text import markup
from bot.text.markup import shown
from bot.words import endings, on_folders, on_models, on_money

if TYPE_CHECKING:
    from bot.live.page import TurnView
    from bot.live.state import LiveState, ToolCall
    from sandbox.agents.events import ModelAnswered

BAR_PARTS = 10
MOST_PATHS = 10
MOST_HOSTS = 10
MOST_FILES = 25
MOST_HEARD = 5
MOST_LOG_LINES = 20
NEVER = ("github.com", "api.github.com", "api.anthropic.com")
"""No config opens the way to these hosts: only Forgehand's host talks to them."""
PATIENCE_SECONDS = 1.0
"""By then most work is saved, and the comment can say at once where."""
LONGER_PATIENCE_SECONDS = 6.0
"""For an agent that had to be ended first: none of its work has been collected yet."""
_SAVED_IN = (Step.COLLECT, Step.VERIFY, Step.PUBLISH, Step.SETTLE)
Changed = tuple[str, int | None, int | None]
"""A path with its lines added and removed, which are None unless it is text."""


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def roughly(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 90 else f"about {round(minutes / 60)} h"


def clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.gmtime(at))


def size(count_of_bytes: int) -> str:
    return f"{count_of_bytes / 1e6:.0f} MB" if count_of_bytes < 1e9 else f"{count_of_bytes / 1e9:.1f} GB"


def tokens(usage: TokenUsage) -> str:
    number = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f} k" if number < 1_000_000 else f"{number / 1_000_000:.1f} M"


def ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def bar(part: float, whole: float) -> str:
    filled = round(min(1.0, part / whole) * BAR_PARTS) if whole > 0 else 0
    return "▰" * filled + "▱" * (BAR_PARTS - filled)


def line(text: str, most: int) -> str:
    """Show words of others on one line."""
    return neutralise.line(clip(" ".join(text.split()), most))


def clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def blocked_hosts(hosts: Sequence[dict[str, Any]]) -> str:
    if not hosts:
        return ""
    addresses = ((f"{one['host']}{'' if one['port'] == 443 else ':' + str(one['port'])}", one) for one in hosts)
    named = ", ".join([f"{shown(address, 120)} ×{one['count']}" for address, one in addresses][:MOST_HOSTS])
    more = f" and {len(hosts) - MOST_HOSTS} more" if len(hosts) > MOST_HOSTS else ""
    text = f"**Blocked by the network:** {named}{more}."
    if any(one["host"] not in NEVER and one["port"] == 443 for one in hosts):
        text += " To allow a host, add it to `egress:` in `.github/forgehand.yml` on the default branch."
    if any(one["port"] != 443 for one in hosts):
        text += " Only https (port 443) can be allowed."
    return text


def packages(view: TurnView) -> str:
    """Count what the package clients have got; their names stand on the session's page."""
    if (found := view.fetched) is None:
        return ""
    many = "1 package" if found.packages == 1 else f"{found.packages:,} packages"
    again = f", {found.from_cache:,} of {found.downloads:,} downloads from the cache" if found.from_cache else ""
    much = f"{found.bytes / 1e6:,.1f} MB" if found.bytes >= 1e5 else f"{found.bytes / 1e3:,.1f} kB"
    return f"**From registries:** {many} ({much}{again})."


def request(view: TurnView) -> str:
    """Show the request in one line, with its command unless that is plain work."""
    turn = view.turn
    verb = f"`{turn.asked_as}` " if TRAITS[turn.asked_as].named else ""
    words = f"{verb}{line(prompt.in_brief(turn.prompt), 200)}".strip()
    token = turn.part(ByToken).name
    way = f" (API token {shown(token, 60)})" if token else ""
    return f"> **{neutralise.line(turn.requester)}**{way}: {words or '(no further words)'}"


def heard(state: LiveState) -> str:
    rows = [f"> 💬 **{neutralise.line(who)}**: {line(words, 200)}" for who, words in state.heard[-MOST_HEARD:]]
    if len(state.heard) > MOST_HEARD:
        rows.insert(0, f"> 💬 … and {len(state.heard) - MOST_HEARD} before")
    return "  \n".join(rows)


def agents_words(text: str, most: int, note: str = "…") -> str:
    """Set the agent's words apart, so that nobody takes them for ours."""
    words = prose.fitted(prose.lines(text, note=note), most, neutralise.quoted, note)
    return f"**The agent says:**\n\n{words}" if text.strip() else ""


def tools(state: LiveState) -> str:
    finished = [tool for tool in state.tools if tool.ok is not None]
    if not finished:
        return ""
    rows = []
    for tool in finished:
        first = next((one.strip() for one in tool.summary.splitlines() if one.strip()), "")
        rows.append(f"- {'✓' if tool.ok else '✗'} {tool_words(tool)}{f' → {shown(first, 100)}' if first else ''}")
    return folded(f"Last tool calls ({state.tool_count} so far)", "\n".join(rows))


def tool_words(tool: ToolCall) -> str:
    title = shown(tool.title, 120) if tool.title else ""
    name = re.sub(r"[^\w.:-]", "", tool.name)[:120] or "?"
    return f"**{name}** {title}".rstrip()


def subagents(view: TurnView) -> str:
    refused = view.state.spawns_refused
    return endings.subagents_refused(refused, *view.subagents) if refused else ""


def log(state: LiveState) -> str:
    """Show the end of what it said and did, as plain text."""
    rows = [f"{clock(at)} {text}" for at, text in list(state.log)[-MOST_LOG_LINES:] if text]
    return folded("Log", neutralise.block("\n".join(rows), "text")) if rows else ""


def files_so_far(state: LiveState) -> str:
    """Lists edits by the agent's editing tools; what its commands change is known at the end."""
    return files([(path, *counts) for path, counts in state.files.items()], "edited so far")


def files(changed: Sequence[Changed], what: str, commit_url: str = "") -> str:
    """Name the files; with the address of their commit, each leads to its place in the commit's diff."""
    if not changed:
        return ""
    added, removed = sum(row[1] or 0 for row in changed), sum(row[2] or 0 for row in changed)
    rows = [
        f"- {_file(path, commit_url)} {'(binary)' if more is None else f'+{more} −{fewer}'}"
        for path, more, fewer in changed[:MOST_FILES]
    ]
    if len(changed) > MOST_FILES:
        rows.append(f"- and {len(changed) - MOST_FILES} more")
    plural = "file" if len(changed) == 1 else "files"
    return folded(f"{len(changed)} {plural} {what}, +{added} −{removed}", "\n".join(rows))


def _file(path: str, commit_url: str) -> str:
    anchor = hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()
    return f"[{shown(path, 200)}]({commit_url}#diff-{anchor})" if commit_url else shown(path, 200)


def folded(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def withheld(view: TurnView) -> str:
    """Name what the agent did not get, or was to leave aside because the pull request changes it."""
    read, base, parts = view.turn.part(AgentReading), view.turn.base, []
    if read.ignored:
        of_the_base = f" The version on {shown(base, 200)} counts." if base else ""
        named = markup.named(read.ignored, MOST_PATHS)
        parts.append(f"Not used in this run, because this pull request changes it: {named}.{of_the_base}")
    if read.notes:
        head = "1 thing was" if len(read.notes) == 1 else f"{len(read.notes)} things were"
        rows = "\n".join(f"- {neutralise.line(note)}" for note in read.notes)
        parts.append(folded(f"{head} left out of the agent's prompt", rows))
    return "\n\n".join(parts)


def folders(view: TurnView) -> str:
    """Name the folders that the turn was about, with the rules and settings that counted there."""
    where = view.turn.part(WorkFolders)
    return on_folders.worked_in(where.folders, where.rules, where.patterns) if where.folders or where.patterns else ""


def environment(view: TurnView) -> str:
    """Show what the environment uses while the agent works in it; other steps are not measured."""
    if view.sample is None or view.turn.step is not Step.WORK:
        return ""
    peak = f" (peak {size(view.sample.peak_memory_bytes)})"
    used = f"CPU {view.sample.cpu_percent:.0f} %, memory {size(view.sample.memory_bytes)}{peak}"
    return f"<sub>sandbox: {used}, disk {size(view.sample.disk_bytes)}</sub>"


def model(view: TurnView) -> str:
    return line(view.state.model or view.turn.model, 80)


def models(view: TurnView) -> str:
    """Name each model with its cost if a fallback took part."""
    if len(view.model_costs) < 2:
        return model(view)
    return " and ".join(f"{line(name, 80)} {on_money.dollars(usd)}" for name, usd in view.model_costs)


def switched(view: TurnView) -> str:
    """Say that a fallback works, as long as it does."""
    switch = view.state.switch
    if switch is None or (not view.ended and view.state.model != switch.fallback):
        return ""
    return on_models.switched(shown(switch.model, 80), shown(switch.fallback, 80), switch.reason)


def context(view: TurnView) -> str:
    """Show how full the context window is. That alone is worth no edit."""
    used = view.state.context
    if view.still or used is None:
        return ""
    return fullness(used, view.state.compactions)


def fullness(used: ModelAnswered, compactions: int) -> str:
    if used.window:
        share = f"{min(used.tokens / used.window, 1.0):.0%} of {_amount(used.window)}"
    else:
        share = f"{_amount(used.tokens)} tokens"
    times = f", compacted {'once' if compactions == 1 else f'{compactions} times'}" if compactions else ""
    return f"context {share}{times}"


def _amount(number: int) -> str:
    return f"{number / 1000:.0f} k" if number < 1_000_000 else f"{number / 1_000_000:g} M"


def checks(view: TurnView) -> str:
    """Show the checks while they run, and while the agent fixes what they have found."""
    turn = view.turn
    if not view.verified or turn.state is not TurnState.RUNNING:
        return ""
    if turn.step in (Step.WORK, Step.COLLECT) and turn.mending is not None:
        return f"{verified(view)}\n\n**The agent got this output and is fixing it.**"
    return verified(view) if turn.step is Step.VERIFY else ""


def verified(view: TurnView) -> str:
    """Tell what Forgehand itself ran; the agent's claims stand in the agent's words."""
    mended = view.turn.mending is not None and view.turn.state is TurnState.DONE
    declared = repo_config.load(view.turn.config).has_checks
    words = verification.without_checks(view.command, declared=declared)
    if view.verified:
        words = verification.words(view.verified, neutralise.block, mended=mended)
    return f"**{verification.heading(view.verified)}:** {words}"


def pinned(view: TurnView) -> str:
    """Name the commit that the work starts from, or the two that a merge brings together."""
    turn, merged = view.turn, view.turn.part(Merge).sha
    shas = (turn.tip_sha, merged) if merged else (turn.base_sha,)
    known = [f"`{sha[:12]}`" for sha in shas if sha]
    return f" · from {' and '.join(known)}" if known else ""


def page_link(view: TurnView, words: str) -> str:
    return f"[{words}]({view.page_url})" if view.page_url else words


def money_meter(view: TurnView) -> str:
    """Draw the bar of whichever limit is reached first."""
    limits = (view.funds.counted_usd, view.funds.limit_usd), (view.cost.counted_usd, view.turn.budget_usd)
    first = max(limits, key=lambda pair: pair[0] / pair[1] if pair[1] > 0 else 0.0)
    return f"{bar(*first)} {money_spent(view)}"


def money_spent(view: TurnView) -> str:
    """Show the turn's money beside the session's, unless both are the same."""
    turn, money = view.turn, view.funds
    machine = f" + {on_money.dollars(view.sandbox_usd)} sandbox" if view.sandbox_usd else ""
    session = on_money.spent_of(money.spent_usd, money.unconfirmed_usd, money.limit_usd)
    if not turn.budget_usd and turn.n == 1:
        return f"{session}{machine}"
    own = f" of ${turn.budget_usd:.2f}" if turn.budget_usd else ""
    open_ = on_money.unconfirmed(view.cost.unconfirmed_usd)
    return f"${view.cost.usd:.2f}{own}{open_}{machine} · session {session}"


def is_stop_said(turn: Turn, now: float) -> bool:
    """Decide whether the comment shows the end although the turn still saves its work; once true, it stays true."""
    if turn.state is TurnState.DONE or turn.outcome is not Outcome.STOPPED or turn.stop_at is None:
        return False
    return turn.step in _SAVED_IN and now >= stop_said_from(turn)


def stop_said_from(turn: Turn) -> float:
    assert turn.stop_at is not None
    had_ended = turn.step_times.get(Step.COLLECT, turn.stop_at + 1) <= turn.stop_at
    return turn.stop_at + (PATIENCE_SECONDS if had_ended else LONGER_PATIENCE_SECONDS)
