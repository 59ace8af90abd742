"""Reads Claude Code's tool calls: the lines they edit, their title for people, the task list."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
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
    """What the call is about: a command, a path within the checkout, a URL; empty when there is nothing to say."""
    if tool in PATHS:
        return one_line(_within(_text(tool_input, PATHS[tool]), cwd))
    if tool in SAYING:
        return one_line(_text(tool_input, SAYING[tool]))
    if tool == "TaskUpdate":
        return one_line(f"#{_text(tool_input, 'taskId')} {_text(tool_input, 'status')}".strip())
    if tool == "TodoWrite":
        return _count(tool_input.get("todos"))
    if tool == "AskUserQuestion":
        return one_line(_question(tool_input))
    return one_line(_first_text(tool_input))


def _text(tool_input: dict[str, Any], key: str) -> str:
    value = tool_input.get(key)
    return value if isinstance(value, str) else ""


def _within(path: str, cwd: str) -> str:
    return path[len(cwd) + 1 :] if cwd and path.startswith(f"{cwd}/") else path


def _count(todos: Any) -> str:
    number = len(todos) if isinstance(todos, list) else 0
    return f"{number} item" if number == 1 else f"{number} items"


def _question(tool_input: dict[str, Any]) -> str:
    questions = tool_input.get("questions")
    first = questions[0] if isinstance(questions, list) and questions else None
    return _text(first, "question") if isinstance(first, dict) else ""


def _first_text(tool_input: dict[str, Any]) -> str:
    return next((value for value in tool_input.values() if isinstance(value, str) and value.strip()), "")


WRITING = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
FEW_LINES = 30
"""Of which every one may be compared with every other, in an edit of one of so many pieces."""
FEW_EDITS = 50

Edit = tuple[str, int, int]
"""Path within the checkout, lines added, lines removed."""


def edit(tool: str, tool_input: dict[str, Any], cwd: str) -> Edit | None:
    """None for a tool that changes no file, or a call that names none."""
    if tool not in WRITING or not isinstance(tool_input.get(PATHS[tool]), str):
        return None
    pairs = _pairs(tool_input)
    counts = [_counts(*pair, few=FEW_LINES if len(pairs) <= FEW_EDITS else 0) for pair in pairs]
    return title(tool, tool_input, cwd), sum(added for added, _ in counts), sum(removed for _, removed in counts)


def _pairs(tool_input: dict[str, Any]) -> list[tuple[str, str]]:
    """(before, after) of each piece; a file that is written as a whole has no before that the call would tell."""
    edits = tool_input.get("edits")
    if isinstance(edits, list):
        return [_pair(one, "new_string") for one in edits if isinstance(one, dict)]
    name = next((name for name in ("new_string", "content", "new_source") if name in tool_input), "new_string")
    return [_pair(tool_input, name)]


def _pair(piece: dict[str, Any], name: str) -> tuple[str, str]:
    before, after = piece.get("old_string"), piece.get(name)
    return before if isinstance(before, str) else "", after if isinstance(after, str) else ""


def _counts(before: str, after: str, few: int) -> tuple[int, int]:
    old, new = before.splitlines(), after.splitlines()
    begin, end = same_around(old, new)
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    same = _most_alike(old, new) if max(len(old), len(new)) <= few else _in_order(_places(old, new))
    return len(new) - same, len(old) - same


def _most_alike(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())


def _places(old: Sequence[str], new: Sequence[str]) -> Iterator[int]:
    """Where in the new text each line of the old one stands: the first of several that are alike at the first."""
    places: dict[str, deque[int]] = defaultdict(deque)
    for at, line in enumerate(new):
        places[line].append(at)
    return (places[line].popleft() for line in old if places.get(line))


def _in_order(places: Iterable[int]) -> int:
    """How many of them follow each other: nearly the most that could be found, which may take the cube of the lines."""
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)


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
