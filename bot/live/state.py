"""What the agent is doing now, folded from its stored events: the same events always give the same picture."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field

from sandbox.agents.events import (
    TODO_TOOLS,
    AgentEvent,
    Asked,
    Ended,
    Retrying,
    Said,
    SessionStarted,
    Todo,
    TodoChanged,
    ToolCalled,
    ToolReturned,
)

RECENT_TOOLS = 8
REFUSED_STATUSES = (401, 403)
MOST_ASKED = 100
"""Questions that a turn is answered; an agent that asks more often waits in vain."""


@dataclass
class ToolUse:
    """A tool call and, once it returned, how it went."""

    id: str
    name: str
    title: str
    began_at: float
    ok: bool | None = None
    summary: str = ""


@dataclass
class LiveState:
    """Mutable on purpose: one per turn, fed in order, read by the renderer."""

    model: str = ""
    todo: tuple[Todo, ...] = ()
    tools: list[ToolUse] = field(default_factory=list)
    tool_count: int = 0
    said: str = ""
    retrying: Retrying | None = None
    refused_status: int | None = None
    """The provider does not accept our credential: no retry will help."""
    ended: Ended | None = None
    asked: dict[str, Asked] = field(default_factory=dict)
    """What it waits for permission to do, by request."""
    pulse_at: float | None = None
    heard: list[tuple[str, str]] = field(default_factory=list)
    """What people said to the agent while it worked: who, and in which words."""

    @property
    def current(self) -> ToolUse | None:
        """The tool that runs now: the latest that has not returned."""
        return next((tool for tool in reversed(self.tools) if tool.ok is None), None)

    def apply(self, event: AgentEvent, at: float) -> None:
        self.pulse_at = at
        if not isinstance(event, Retrying):
            self.retrying = None
        match event:
            case SessionStarted():
                self.model = event.model
            case Said() if event.parent is None:
                self.said = event.text
            case ToolCalled() | ToolReturned():
                self._tool(event, at)
            case TodoChanged():
                self.todo = event.items
            case Retrying():
                self.retrying = event
                self.refused_status = event.status if event.status in REFUSED_STATUSES else self.refused_status
            case Ended():
                self.ended = event
            case Asked() if len(self.asked) < MOST_ASKED:
                self.asked[event.request_id] = event
            case _:
                pass

    def told(self, line: str) -> None:
        """A line of our own between the agent's: of another kind than ours knows, it changes nothing."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = json.loads(line)
            self.heard.append((str(found["author"]), str(found["text"])))

    def _tool(self, event: ToolCalled | ToolReturned, at: float) -> None:
        if isinstance(event, ToolCalled):
            if event.name in TODO_TOOLS:  # the list itself is shown
                return
            self.tool_count += 1
            self.tools.append(ToolUse(event.id, event.name, event.title, at))
            del self.tools[:-RECENT_TOOLS]
            return
        for tool in self.tools:
            if tool.id == event.id:
                tool.ok, tool.summary = event.ok, event.summary
