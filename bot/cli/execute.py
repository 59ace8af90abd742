"""`forgehand execute`: one turn on a local folder."""

from __future__ import annotations


def command(prompt: str) -> None:
    """Run one turn of the agent on a local folder."""
