"""Puts times, money, sizes and states into words for the pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from bot.kinds.shape import OnFork
from bot.live.sections import duration
from bot.models import Outcome, Step, TurnState
from bot.proposal import verification
from bot.web.pages.prose import prose
from bot.words import endings, on_money

_TICKED = re.compile("`([^`]{1,200})`")
_ADDRESS = re.compile(r"https?://(?!your-host|forgehand\.invalid)[\w.:/~%-]*[\w/]")


def standing(state: TurnState, outcome: Outcome | None, step: Step | None = None) -> str:
    if state is TurnState.DONE:
        return endings.headline(outcome or Outcome.FAILED)
    if state is TurnState.QUEUED:
        return "⏳ Queued"
    return f"🛠️ {endings.STEP_WORDS[step].capitalize()}" if step else "🛠️ Running"


def short(text: str, most: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def ticked(text: str) -> Markup:
    """Show words in backticks as code, and escape everything else."""
    return Markup(_TICKED.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped the line before


def linked(text: Markup) -> Markup:
    """Make links of the addresses in escaped text, except those of examples."""
    return Markup(_ADDRESS.sub(r'<a href="\g<0>" target="_blank" rel="noopener noreferrer">\g<0></a>', str(text)))  # noqa: S704


def verified_where(checks: list[verification.CheckedCommand]) -> str:
    ran = any(one.was_run for one in checks)
    return f"Verified by Forgehand, {verification.where(checks)}" if ran else verification.NOT_RUN


def _time(form: str) -> Callable[[float], str]:
    return lambda at: datetime.fromtimestamp(at, UTC).strftime(form)


def lasted(seconds: float) -> str:
    """Say it shortly, for a list of calls."""
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "clock": _time("%H:%M:%S"),
    "moment": _time("%Y-%m-%d %H:%M UTC"),
    "iso": _time("%Y-%m-%dT%H:%M:%SZ"),
    "duration": duration,
    "lasted": lasted,
    "usd": on_money.dollars,
    "short": short,
    "ticked": ticked,
    "linked": linked,
    "prose": prose,
    "capitalize_first": lambda text: text[:1].upper() + text[1:],
    "standing": lambda one: standing(one.state, one.outcome),
    "checks": lambda turn: verification.load(turn.verified or ()),
    "ending": verification.ending,
    "verified_where": lambda turn: verified_where(verification.load(turn.verified)),
    "patch": lambda turn: turn.part(OnFork).patch,
}
