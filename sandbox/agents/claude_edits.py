"""Which lines of which file an editing tool of Claude Code changes, counted from what the call says."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from sandbox.agents.claude_titles import PATHS, title

WRITING = frozenset(("Edit", "MultiEdit", "Write", "NotebookEdit"))
MOST_LINES = 2_000
"""Of a text whose lines are compared one by one; a longer one counts as wholly new."""

Edit = tuple[str, int, int]
"""Path within the checkout, lines added, lines removed."""


def edit(tool: str, tool_input: dict[str, Any], cwd: str) -> Edit | None:
    """None for a tool that changes no file, or a call that names none."""
    if tool not in WRITING or not isinstance(tool_input.get(PATHS[tool]), str):
        return None
    pairs = [_counts(*pair) for pair in _pairs(tool_input)]
    return title(tool, tool_input, cwd), sum(added for added, _ in pairs), sum(removed for _, removed in pairs)


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


def _counts(before: str, after: str) -> tuple[int, int]:
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return len(new), len(old)
    same = sum(block.size for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks())
    return len(new) - same, len(old) - same
