"""What the agent of a turn may use: by the kind of the turn, and by what the repository's config says of tools."""

from __future__ import annotations

from dataclasses import dataclass

from bot import repo_config
from bot.settings import Limits
from bot.store.sessions import Turn
from sandbox.agents.base import Subagents

WRITING_TOOLS = ("Edit", "Write", "NotebookEdit")


@dataclass(frozen=True)
class Rights:
    permission: str
    """auto, ask or plan."""
    allowed: tuple[str, ...]
    denied: tuple[str, ...]


def subagents(turn: Turn, limits: Limits) -> Subagents:
    config = repo_config.load(turn.config)
    most, at_once = config.subagents.within(limits.subagents, limits.subagents_at_once)
    return Subagents(at_once=at_once, most=most)


def of(turn: Turn) -> Rights:
    """Where people are asked, edits of the work tree go without asking: nothing leaves it but through our policy."""
    config = repo_config.load(turn.config)
    if turn.traits.reads:
        mode = "plan" if turn.traits.plans else "auto"
        return Rights(mode, (), (*WRITING_TOOLS, *config.tools.denied))
    if config.permission == "ask":
        return Rights("ask", (*WRITING_TOOLS, *config.tools.allowed), config.tools.denied)
    return Rights("auto", (), config.tools.denied)
