"""One line for people about each tool call of Claude Code."""

from __future__ import annotations

from typing import Any

from sandbox.agents.text import one_line

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
