"""Reads Claude Code's tool calls: the lines they edit, their title for people, the task list."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from sandbox.agents.base import one_line, same_around
from sandbox.agents.events import Todo

SAYING = {
    "Bash": "command",
    "BashOutput": "bash_id",
    "Glob": "pattern",
    "Grep": "pattern",
    "WebFetch": "url",
    "WebSearch": "query",
    "ToolSearch": "query",
    "Agent": "description",
    "Task": "description",
    "TaskCreate": "subject",
    "Skill": "skill",
}
PATHS = {
    "Read": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "Write": "file_path",
    "NotebookEdit": "notebook_path",
}


def title(tool: str, tool_input: dict[str, Any], cwd: str) -> str:
    """Say in one line what a call is about: a command, a path within the checkout, a URL; perhaps nothing."""
    if tool in PATHS:
        return one_line(_text(tool_input, PATHS[tool]).removeprefix(f"{cwd}/" if cwd else ""))
    if tool in SAYING:
        return one_line(_text(tool_input, SAYING[tool]))
    if tool == "TaskUpdate":
        return one_line(f"#{_text(tool_input, 'taskId')} {_text(tool_input, 'status')}".strip())
    if tool == "TodoWrite":
        number = len(_listed(tool_input.get("todos")))
        return "1 item" if number == 1 else f"{number} items"
    if tool == "AskUserQuestion":
        first = next(iter(_listed(tool_input.get("questions"))), None)
        return one_line(_text(first, "question")) if isinstance(first, dict) else ""
    return one_line(next((text for text in tool_input.values() if isinstance(text, str) and text.strip()), ""))


def _text(tool_input: dict[str, Any], key: str) -> str:
    value = tool_input.get(key)
    return value if isinstance(value, str) else ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


WRITING = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
FEW_LINES, FEW_EDITS = 30, 50  # up to this size, comparing every line with every other is fast enough

Edit = tuple[str, int, int]  # path within the checkout, lines added, lines removed


def edit(tool: str, tool_input: dict[str, Any], cwd: str) -> Edit | None:
    """Count what a call changes; None for a tool that changes no file, or a call that names none."""
    if tool not in WRITING or not isinstance(tool_input.get(PATHS[tool]), str):
        return None
    pairs = _pairs(tool_input)
    few = FEW_LINES if len(pairs) <= FEW_EDITS else 0
    added = removed = 0
    for before, after in pairs:
        old, new = before.splitlines(), after.splitlines()
        begin, end = same_around(old, new)
        old, new = old[begin : len(old) - end], new[begin : len(new) - end]
        same = _same_lines(old, new, few)
        added, removed = added + len(new) - same, removed + len(old) - same
    return title(tool, tool_input, cwd), added, removed


def _pairs(tool_input: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (before, after) of each piece. A call that writes a whole file does not say what was there before."""
    if isinstance(edits := tool_input.get("edits"), list):
        return [_pair(one, "new_string") for one in edits if isinstance(one, dict)]
    name = next((name for name in ("new_string", "content", "new_source") if name in tool_input), "new_string")
    return [_pair(tool_input, name)]


def _pair(piece: dict[str, Any], name: str) -> tuple[str, str]:
    return _text(piece, "old_string"), _text(piece, name)


def _same_lines(old: Sequence[str], new: Sequence[str], few: int) -> int:
    """Count the lines that stay. The exact count may take cubic time, so for long texts we pair equal lines in order of
    appearance, and count the most pairs that are in order in both texts."""
    if max(len(old), len(new)) <= few:
        return sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    places: dict[str, deque[int]] = defaultdict(deque)
    for at, line in enumerate(new):
        places[line].append(at)
    ends: list[int] = []
    for place in (places[line].popleft() for line in old if places.get(line)):
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)


STATES = ("pending", "in_progress", "completed")
MAX_ITEMS = 200
MAX_WAITING = 1000
_CREATED = re.compile(r"Task #(\w+) created")


class TodoList:
    """The agent's tasks. A change counts once its tool result confirms it; results come in any order."""

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
        """Apply the call that this result belongs to; True if the list changed."""
        tool, tool_input = self._waiting.pop(call_id, ("", {}))
        if not ok or not tool:
            return False
        before = self.items
        if tool == "TodoWrite":
            self._write(tool_input.get("todos"))
        elif tool == "TaskUpdate":
            self._update(tool_input)
        elif len(self._items) < MAX_ITEMS:
            created = _CREATED.search(text)
            if known_as := task_id or (created[1] if created else ""):
                self._items[known_as] = Todo(_words(tool_input.get("subject")), "pending")
        return self.items != before

    def _write(self, todos: Any) -> None:
        if not isinstance(todos, list):
            return
        found = (entry for entry in todos[:MAX_ITEMS] if isinstance(entry, dict))
        self._items = {
            str(number): Todo(_words(entry.get("content")), _state(entry.get("status"), "pending"))
            for number, entry in enumerate(found)
        }

    def _update(self, tool_input: dict[str, Any]) -> None:
        task_id = str(tool_input.get("taskId"))
        old = self._items.get(task_id)
        if old is None:  # a resumed session's task, whose words this run does not know
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
