"""Decides which MCP servers a turn may use, and which of their tools.

The base branch's config opens tools by name. The account's owner, who stored the server, may narrow that: name the
tools that may be opened at all, demand a question before each call, and admit work on forks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bot import repo_config
from bot.kinds.shape import OnFork
from bot.models import InstallationId
from bot.repo_config.mcp import McpOpening
from bot.store import outside_services, sessions
from bot.store.base import Store
from bot.store.outside_services import OutsideService, Purpose
from bot.store.sessions import Turn
from bot.words import on_mcp

TOOLS, PERMISSION, FORKS = "tools", "permission", "forks"
"""Options of a stored server."""
ASK, YES = "ask", "yes"
PREFIX = "mcp__"


@dataclass(frozen=True)
class OpenServer:
    """A stored server with the tools that a turn may call."""

    name: str
    tools: tuple[str, ...]
    asks: bool
    """People are asked about each call."""
    service: OutsideService

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(tool_name(self.name, tool) for tool in self.tools)


def tool_name(server: str, tool: str) -> str:
    """Name a tool as the agent's program does."""
    return f"{PREFIX}{server}__{tool}"


def call_digest(tool: str, arguments: dict[str, Any]) -> str:
    """Identify a call by its tool and its very arguments."""
    told = json.dumps(arguments, sort_keys=True)
    return hashlib.sha256(f"{tool}\n{told}".encode()).hexdigest()


def programs(turn: Turn) -> dict[str, str]:
    """Return the commands of the servers that run in the sandbox, by name. They run code of the work tree, so there are
    none where nobody trusts it."""
    is_foreign = turn.traits.judges or turn.part(OnFork).fork is not None
    return {} if is_foreign else {one.name: one.command for one in _config(turn) if one.command}


async def opened(store: Store, turn: Turn, installation: InstallationId) -> dict[str, OpenServer]:
    """Return the stored servers that the turn may use, by name."""
    wanted = [one for one in _config(turn) if not one.command]
    if not wanted:
        return {}
    known = await outside_services.usable(store, Purpose.MCP, installation, (one.name for one in wanted))
    found = (_open(turn, one, known[one.name]) for one in wanted if one.name in known)
    return {one.name: one for one in found if one is not None}


async def notes(store: Store, turn: Turn) -> tuple[str, ...]:
    """Name in one sentence what the config opens and the turn does not get."""
    found = await opened(store, turn, (await sessions.session(store, turn.key.session)).installation_id)
    known = {**found, **programs(turn)}
    left_out = [one.name for one in _config(turn) if one.name not in known]
    return (on_mcp.not_given(left_out),) if left_out else ()


def _open(turn: Turn, wanted: McpOpening, service: OutsideService) -> OpenServer | None:
    if turn.part(OnFork).fork is not None and service.options.get(FORKS) != YES:
        return None
    may = service.options.get(TOOLS, "").split()
    tools = tuple(tool for tool in wanted.tools if not may or tool in may)
    asks = ASK in (wanted.permission or repo_config.load(turn.config).permission, service.options.get(PERMISSION))
    if not tools or (asks and not turn.traits.changes):  # nobody is asked while an agent only reads
        return None
    return OpenServer(wanted.name, tools, asks, service)


def _config(turn: Turn) -> tuple[McpOpening, ...]:
    return repo_config.load(turn.config).mcp


def asked_about(servers: Iterable[OpenServer]) -> tuple[str, ...]:
    return tuple(name for one in servers if one.asks for name in one.tool_names)


def free(servers: Iterable[OpenServer]) -> tuple[str, ...]:
    return tuple(name for one in servers if not one.asks for name in one.tool_names)
