"""What the agent is doing now, folded from its stored events: the same events always give the same picture."""

from __future__ import annotations

from dataclasses import dataclass, field

from sandbox.agents.events import (
    AgentEvent,
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
    pulse_at: float | None = None

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
            case ToolCalled():
                self._called(event, at)
            case ToolReturned():
                self._returned(event)
            case TodoChanged():
                self.todo = event.items
            case Retrying():
                self.retrying = event
                if event.status in REFUSED_STATUSES:
                    self.refused_status = event.status
            case Ended():
                self.ended = event
            case _:
                pass

    def _called(self, event: ToolCalled, at: float) -> None:
        self.tool_count += 1
        self.tools.append(ToolUse(event.id, event.name, event.title, at))
        del self.tools[:-RECENT_TOOLS]

    def _returned(self, event: ToolReturned) -> None:
        for tool in self.tools:
            if tool.id == event.id:
                tool.ok, tool.summary = event.ok, event.summary
