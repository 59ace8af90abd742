"""Describes a run of the agent in short lines, for a terminal or a file; `screens` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.live.state import LiveState
from bot.store.spend import ModelCost
from bot.words import on_models, on_money
from sandbox.agents.base import one_line
from sandbox.agents.events import (
    TODO_TOOLS,
    AgentEvent,
    AgentSaid,
    ContextCompacted,
    ModelSwitched,
    Retrying,
    SessionStarted,
    Todo,
    TodoChanged,
    ToolCalled,
    ToolReturned,
)

SILENT_RESULTS = frozenset(("Read", "Edit", "MultiEdit", "Write", "NotebookEdit"))
"""The results of these tools only repeat the call."""
RESULT_WIDTH = 100
SIGNS: Mapping[str, tuple[str, str]] = {
    "ok": ("✓", "green"),
    "bad": ("✗", "red"),
    "todo": ("▶", "cyan"),
    "note": ("·", "dim"),
}


@dataclass(frozen=True)
class NarratedLine:
    kind: str
    """said, ok, bad, todo or note."""
    text: str
    result: str = ""
    nested: bool = False

    @property
    def plain(self) -> str:
        if self.kind == "said":
            return self.text
        result = f" → {self.result}" if self.result else ""
        return f"{'  ' * self.nested}{SIGNS[self.kind][0]} {self.text}{result}"


class Narrator:
    """Remembers open calls, to show each result beside its call."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCalled] = {}
        self._todo: tuple[Todo, ...] = ()

    def lines(self, event: AgentEvent) -> list[NarratedLine]:
        match event:
            case SessionStarted():
                return [NarratedLine("note", f"Claude Code {event.version}, {event.model}")]
            case AgentSaid() if event.parent is None:
                return [NarratedLine("said", event.text.strip())]
            case ToolCalled():
                self._calls[event.id] = event
            case ToolReturned():
                return self._returned(event)
            case TodoChanged():
                return self._todo_changed(event.items)
            case ModelSwitched():
                return [NarratedLine("note", on_models.switched(event.model, event.fallback, event.reason))]
            case ContextCompacted():
                return [NarratedLine("note", on_models.compacted(event.before, event.after))]
            case Retrying():
                return [NarratedLine("note", retrying(event))]
        return []

    def unfinished(self) -> list[NarratedLine]:
        calls = list(self._calls.values())
        self._calls.clear()
        return [NarratedLine("bad", tool(call), "no result", nested=call.parent is not None) for call in calls]

    def _returned(self, event: ToolReturned) -> list[NarratedLine]:
        call = self._calls.pop(event.id, None)
        if call is None or (call.name in TODO_TOOLS and event.ok):
            return []
        result = ""
        if not event.ok or call.name not in SILENT_RESULTS:
            lines = [line.strip() for line in event.summary.splitlines() if line.strip()]
            shown = lines[: 2 if lines and lines[0].startswith("Exit code") else 1]
            result = one_line(": ".join(shown), RESULT_WIDTH)
        return [NarratedLine("ok" if event.ok else "bad", tool(call), result, nested=call.parent is not None)]

    def _todo_changed(self, items: tuple[Todo, ...]) -> list[NarratedLine]:
        begun = {item.text for item in items if item.state == "in_progress"}
        begun -= {item.text for item in self._todo if item.state == "in_progress"}
        self._todo = items
        return [
            NarratedLine("todo", f"[{done(items)}/{len(items)}] {item.text}") for item in items if item.text in begun
        ]


def tool(call: ToolCalled) -> str:
    return f"{call.name} {call.title}".strip()


def now(state: LiveState) -> str:
    if state.retrying is not None:
        return retrying(state.retrying)
    if state.current is not None:
        return f"{state.current.name} {state.current.title}".strip()
    return "thinking"


def retrying(event: Retrying) -> str:
    status = f" ({event.status})" if event.status else ""
    return f"waiting for the model's provider{status}, try {event.attempt}"


def done(items: tuple[Todo, ...]) -> int:
    return sum(item.state == "completed" for item in items)


def money(cost: ModelCost, budget_usd: float) -> str:
    usage = cost.usage
    count = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    tokens = f"{count / 1000:.1f}k" if count >= 1000 else f"{count}"
    return f"{on_money.spent_of(cost.usd, cost.unconfirmed_usd, budget_usd)} · {tokens} tokens"
