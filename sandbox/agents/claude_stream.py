"""Decodes Claude Code's stream into our events, and keeps what spans lines: task list, edits, working folder."""

from __future__ import annotations

from typing import Any

from sandbox.agents import claude_lines, events
from sandbox.agents.base import clean, first_lines, one_line, shorten
from sandbox.agents.claude_tools import Edit, TodoList, edit, title

MAX_COUNT = 10**9
MOST_LINES, MOST_TEXT = 200, 8000  # of a tool's result, on pages with room for it
MAX_OPEN_EDITS = 200
MAX_OPEN_SPAWNS = 1000
TOO_MANY_AT_ONCE = "Concurrent subagent limit reached"
REASONS = {
    "aborted_tools": "aborted",
    "aborted_streaming": "aborted",
    "success": "completed",
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget_exhausted",
}


class ClaudeDecoder:
    """Decodes one run's output. An unreadable line becomes an event, never an error."""

    def __init__(self) -> None:
        self._todos = TodoList()
        self._cwd = ""
        self._edits: dict[str, Edit] = {}
        self._spawns: set[str] = set()

    def feed(self, line: str | bytes) -> list[events.AgentEvent]:
        text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
        text = text.lstrip("\ufeff").strip()
        if not text:
            return [events.Unreadable("empty")]
        try:
            return self._events(claude_lines.parse(text))
        except claude_lines.UnreadableLine as unreadable:
            return [events.Unreadable(str(unreadable))]

    def _events(self, line: claude_lines.Line) -> list[events.AgentEvent]:
        match line:
            case claude_lines.Assistant():
                return self._assistant(line)
            case claude_lines.ClaudeUser():
                results = (block for block in _blocks(line.message) if isinstance(block, claude_lines.ToolResult))
                found = [event for block in results for event in self._returned(block, line.tool_use_result)]
                return found or [events.AgentNoted("user")]
            case claude_lines.System():
                return [self._system(line)]
            case claude_lines.ClaudeResult():
                return [_ended(line)]
            case claude_lines.ControlRequest():
                return [self._asked(line)]
            case claude_lines.StreamEvent():
                return [events.AgentNoted("stream_event")]
            case claude_lines.ToolProgress():
                return [events.AgentNoted("tool_progress")]
            case claude_lines.Other():
                return [events.AgentNoted(one_line(line.type, 80))]

    def _system(self, line: claude_lines.System) -> events.AgentEvent:
        if line.subtype == "init":
            self._cwd = line.cwd
            return events.SessionStarted(
                one_line(line.session_id, 80), one_line(line.model, 80), one_line(line.claude_code_version, 40)
            )
        if line.subtype == "api_retry":
            delay = min(max(line.retry_delay_ms, 0.0) / 1000, 86_400.0)
            return events.Retrying(_count(line.attempt), line.error_status, one_line(line.error, 80), delay)
        return events.AgentNoted(f"system/{one_line(line.subtype, 80)}")

    def _assistant(self, line: claude_lines.Assistant) -> list[events.AgentEvent]:
        if line.error:
            return [events.AgentNoted(f"api_error/{one_line(line.error, 80)}")]  # the result repeats its words
        found: list[events.AgentEvent] = []
        for block in _blocks(line.message):
            match block:
                case claude_lines.ClaudeText() if block.text.strip():
                    found.append(events.AgentSaid(clean(block.text), line.parent_tool_use_id))
                case claude_lines.ClaudeToolUse():
                    found.append(self._called(block, line.parent_tool_use_id))
        return found or [events.AgentNoted("assistant")]

    def _called(self, block: claude_lines.ClaudeToolUse, parent: str | None) -> events.ToolCalled:
        if parent is None or block.name != "TodoWrite":  # a sub-agent's own list is not the turn's
            self._todos.called(block.id, block.name, block.input)
        name = one_line(block.name, 80)
        if (change := edit(name, block.input, self._cwd)) and len(self._edits) < MAX_OPEN_EDITS:
            self._edits[block.id] = change
        if name in events.SPAWNING and len(self._spawns) < MAX_OPEN_SPAWNS:
            self._spawns.add(block.id)
        return events.ToolCalled(block.id, name, title(name, block.input, self._cwd), block.input, parent)

    def _returned(self, block: claude_lines.ToolResult, detail: Any) -> list[events.AgentEvent]:
        content = block.content or ""
        text = "\n".join(map(_part_text, content)) if isinstance(content, list) else content
        ok = not block.is_error
        found: list[events.AgentEvent] = [
            events.ToolReturned(
                block.tool_use_id, ok, first_lines(text), first_lines(text, lines=MOST_LINES, limit=MOST_TEXT)
            )
        ]
        change = self._edits.pop(block.tool_use_id, None)
        if change and ok:
            found.append(events.FileChanged(*change))
        if block.tool_use_id in self._spawns:
            self._spawns.discard(block.tool_use_id)
            if not ok and text.startswith((TOO_MANY_AT_ONCE, events.NO_MORE_SUBAGENTS)):
                found.append(events.SubagentRefused(at_once=text.startswith(TOO_MANY_AT_ONCE)))
        task = detail.task if isinstance(detail, claude_lines.TaskResult) else None
        if self._todos.returned(block.tool_use_id, ok=ok, text=text, task_id=task.id if task else ""):
            found.append(events.TodoChanged(self._todos.items))
        return found

    def _asked(self, line: claude_lines.ControlRequest) -> events.AgentEvent:
        asked = line.request
        if asked.subtype != "can_use_tool":
            return events.AgentNoted(f"control_request/{one_line(asked.subtype, 80)}")
        tool = one_line(asked.tool_name, 80)
        return events.PermissionAsked(line.request_id, tool, title(tool, asked.input, self._cwd), asked.input)


def _blocks(message: claude_lines.ClaudeMessage) -> list[claude_lines.Block]:
    return [claude_lines.ClaudeText(message.content)] if isinstance(message.content, str) else message.content


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else f"[{one_line(str(part.get('type')), 40)}]"


def _ended(line: claude_lines.ClaudeResult) -> events.AgentEnded:
    failed = line.subtype != "success" if line.is_error is None else line.is_error
    reason = line.terminal_reason or line.subtype or "unknown"
    return events.AgentEnded(
        ok=not failed,
        reason=one_line(REASONS.get(reason, reason), 80),
        text=clean(line.result or ""),
        errors=tuple(shorten(clean(error), 2000) for error in line.errors[:20]),
        turns=_count(line.num_turns),
        api_status=line.api_error_status,
        structured=line.structured_output,
    )


def _count(number: int) -> int:
    return min(max(number, 0), MAX_COUNT)
