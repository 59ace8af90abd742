"""Words for people about MCP servers."""

from __future__ import annotations

from collections.abc import Sequence

from bot.text.markup import shown


def not_given(names: Sequence[str]) -> str:
    """Explain the servers that the config opens and a turn does not get."""
    listed = ", ".join(shown(name) for name in names)
    if len(names) == 1:
        return f"the MCP server {listed}: the account has not stored it, or does not allow it for this work"
    return f"the MCP servers {listed}: the account has not stored them, or does not allow them for this work"
