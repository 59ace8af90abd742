"""Follows in Claude Code's stream which model answers, and how full its context window is."""

from __future__ import annotations

import re

from sandbox.agents import claude_lines, events
from sandbox.agents.base import one_line

LARGE, SMALL = 1_000_000, 200_000
LONG = "[1m]"
"""The mark behind the name of a model that is asked for its large window."""
WINDOWS = {
    "claude-haiku-5-5": LARGE,
    "claude-haiku-4-5": SMALL,
    "claude-sonnet-5-5": LARGE,
    "claude-sonnet-5": LARGE,
    "claude-sonnet-4-6": SMALL,
    "claude-sonnet-4-5": SMALL,
    "claude-opus-5-5": LARGE,
    "claude-opus-5": LARGE,
    "claude-opus-4-8": LARGE,
    "claude-opus-4-7": LARGE,
    "claude-opus-4-6": SMALL,
    "claude-opus-4-5": SMALL,
    "claude-fable-5-2": LARGE,
    "claude-fable-5-1": LARGE,
    "claude-fable-5": LARGE,
}
"""In tokens, as Claude Code 2.1.326 states them in its results; `tests/turns/test_claude_cli.py` compares them."""
SWITCHES = ("model_fallback", "model_refusal_fallback")
_VARIANT = re.compile(r"(?:-\d{8})?(?:\[1m\])?\Z")
MOST_TOKENS = 10**9


def window(model: str) -> int:
    """Return the size of the model's context window in tokens; 0 if it is unknown."""
    known = WINDOWS.get(_base(model), 0)
    return LARGE if known and model.endswith(LONG) else known


class ModelWatch:
    """Answers name a model without its mark for a large window, so this remembers the names that were asked for."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}
        self._last: events.ModelAnswered | None = None

    def begun(self, model: str) -> None:
        self._asked[_base(model)] = one_line(model, 80)

    def noted(self, line: claude_lines.System) -> events.AgentEvent | None:
        if line.subtype in SWITCHES and line.fallback_model:
            self.begun(line.fallback_model)
            fallback = one_line(line.fallback_model, 80)
            return events.ModelSwitched(one_line(line.original_model, 80), fallback, one_line(line.trigger, 40))
        if line.subtype == "compact_boundary":
            before, after = line.compact_metadata.pre_tokens, line.compact_metadata.post_tokens
            return events.ContextCompacted(min(max(before, 0), MOST_TOKENS), min(max(after, 0), MOST_TOKENS))
        return None

    def answered(self, line: claude_lines.Assistant) -> list[events.AgentEvent]:
        """Return nothing for sub-agents, for the program's own words, and for further blocks of one answer."""
        usage, said = line.message.usage, one_line(line.message.model, 80)
        if line.parent_tool_use_id is not None or usage is None:
            return []
        tokens = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
        if not 0 < tokens < MOST_TOKENS:
            return []
        model = self._asked.get(_base(said), said)
        answer = events.ModelAnswered(model, tokens, window(model))
        if answer == self._last:
            return []
        self._last = answer
        return [answer]


def _base(model: str) -> str:
    return _VARIANT.sub("", model.lower(), count=1)
