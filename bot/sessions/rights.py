"""Decides which tools and sub-agents the agent of a turn may use."""

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


def rights_of(turn: Turn) -> Rights:
    config = repo_config.load(turn.config)
    if turn.traits.reads:
        mode = "plan" if turn.traits.plans else "auto"
        return Rights(mode, (), (*WRITING_TOOLS, *config.tools.denied))
    if config.permission == "ask":  # edits need no question: only our policy lets the work tree's content out
        return Rights("ask", (*WRITING_TOOLS, *config.tools.allowed), config.tools.denied)
    return Rights("auto", (), config.tools.denied)


def allowed_subagents(turn: Turn, limits: Limits) -> Subagents:
    most, at_once = repo_config.load(turn.config).subagents.within(limits.subagents, limits.subagents_at_once)
    return Subagents(at_once=at_once, most=most)
