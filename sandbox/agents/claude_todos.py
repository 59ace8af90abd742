"""Follows Claude Code's task list through its two sets of tools: TodoWrite, and TaskCreate with TaskUpdate."""

from __future__ import annotations

import re
from typing import Any

from sandbox.agents.events import Todo
from sandbox.agents.text import one_line

STATES = ("pending", "in_progress", "completed")
MAX_ITEMS = 200
MAX_WAITING = 1000
_CREATED = re.compile(r"Task #(\w+) created")


class TodoList:
    """A change counts once its tool result says that it was made; results come in any order."""

    def __init__(self) -> None:
        self._items: dict[str, Todo] = {}
        self._waiting: dict[str, tuple[str, dict[str, Any]]] = {}

    @property
    def items(self) -> tuple[Todo, ...]:
        return tuple(self._items.values())

    def called(self, call_id: str, tool: str, tool_input: dict[str, Any]) -> None:
        if tool in ("TodoWrite", "TaskCreate", "TaskUpdate") and len(self._waiting) < MAX_WAITING:
            self._waiting[call_id] = (tool, tool_input)

    def returned(self, call_id: str, *, ok: bool, text: str, task_id: str) -> bool:
        """True when the list is another one now."""
        tool, tool_input = self._waiting.pop(call_id, ("", {}))
        if not ok or not tool:
            return False
        before = self.items
        if tool == "TodoWrite":
            self._write(tool_input.get("todos"))
        elif tool == "TaskCreate":
            self._create(task_id or _number_in(text), tool_input)
        else:
            self._update(tool_input)
        return self.items != before

    def _write(self, todos: Any) -> None:
        if not isinstance(todos, list):
            return
        found = (entry for entry in todos[:MAX_ITEMS] if isinstance(entry, dict))
        self._items = {
            str(number): Todo(_words(entry.get("content")), _state(entry.get("status"), "pending"))
            for number, entry in enumerate(found)
        }

    def _create(self, task_id: str, tool_input: dict[str, Any]) -> None:
        if task_id and len(self._items) < MAX_ITEMS:
            self._items[task_id] = Todo(_words(tool_input.get("subject")), "pending")

    def _update(self, tool_input: dict[str, Any]) -> None:
        """Of a task that this run did not create (a resumed session's) we know no words: left out."""
        task_id = str(tool_input.get("taskId"))
        old = self._items.get(task_id)
        if old is None:
            return
        if tool_input.get("status") == "deleted":
            del self._items[task_id]
            return
        words = _words(tool_input.get("subject")) or old.text
        self._items[task_id] = Todo(words, _state(tool_input.get("status"), old.state))


def _words(value: Any) -> str:
    return one_line(value, 200) if isinstance(value, str) else ""


def _state(value: Any, otherwise: str) -> str:
    return value if value in STATES else otherwise


def _number_in(text: str) -> str:
    found = _CREATED.search(text)
    return found.group(1) if found else ""
