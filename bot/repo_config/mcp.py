"""The key `mcp` of a repository's config: which MCP servers its sessions get, and which of their tools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from bot.repo_config.wrong import Wrong

MOST_SERVERS = 20
MOST_TOOLS = 100
MOST_COMMAND = 2_000
PERMISSIONS = ("ask", "allow")
_SERVER = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_FORM = "must hold servers such as `tracker: {tools: [find_issue], permission: ask}` or `docs: {command: ./docs-mcp}`"


@dataclass(frozen=True)
class McpOpening:
    """A server that the account has stored, and the tools of it that are open; or a program of the repository."""

    name: str
    tools: tuple[str, ...] = ()
    permission: str | None = None
    """ask or allow; None: as for all other tools."""
    command: str = ""
    """A program that speaks MCP over stdin and stdout. It runs in the sandbox."""

    def __str__(self) -> str:
        if self.command:
            return f"{self.name}: {self.command}"
        return f"{self.name}: {' '.join(self.tools)}{f' ({self.permission})' if self.permission else ''}"


def read(value: Any) -> tuple[McpOpening, ...]:
    if not isinstance(value, dict) or len(value) > MOST_SERVERS:
        raise Wrong(f"{_FORM}, at most {MOST_SERVERS} of them")
    return tuple(_opening(name, told) for name, told in value.items())


def _opening(name: Any, told: Any) -> McpOpening:
    if not isinstance(name, str) or not _SERVER.fullmatch(name):
        raise Wrong("must name servers with 1 to 40 lower-case letters, digits and hyphens")
    if isinstance(told, dict) and told.keys() == {"command"}:
        return McpOpening(name, command=_command(name, told["command"]))
    if not isinstance(told, dict) or "tools" not in told or told.keys() - {"tools", "permission"}:
        raise Wrong(f"{_FORM}; `{name}` has other keys")
    permission = told.get("permission")
    if permission is not None and permission not in PERMISSIONS:
        raise Wrong(f"must have ask or allow as the permission of `{name}`")
    return McpOpening(name, _tools(name, told["tools"]), permission)


def _tools(name: str, value: Any) -> tuple[str, ...]:
    tools = [value] if isinstance(value, str) else value
    if not isinstance(tools, list) or not 1 <= len(tools) <= MOST_TOOLS:
        raise Wrong(f"must name 1 to {MOST_TOOLS} tools of `{name}`")
    if not all(isinstance(tool, str) and _TOOL.fullmatch(tool) for tool in tools):
        raise Wrong(f"must name each tool of `{name}` as the server does, such as `find_issue`; there is no `*`")
    return tuple(dict.fromkeys(tools))


def _command(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_COMMAND or not value.isprintable():
        raise Wrong(f"must have one line of at most {MOST_COMMAND} characters as the command of `{name}`")
    if "${" in value:  # the agent's program would fill it in, or refuse the server
        raise Wrong(f"must write variables as `$NAME` in the command of `{name}`")
    return value.strip()


_TOOLS = {"type": "string", "pattern": f"^{_TOOL.pattern}$"}
_STORED = {
    "type": "object",
    "additionalProperties": False,
    "required": ["tools"],
    "properties": {
        "tools": {"anyOf": [_TOOLS, {"type": "array", "items": _TOOLS, "minItems": 1, "maxItems": MOST_TOOLS}]},
        "permission": {"enum": list(PERMISSIONS)},
    },
}
_PROGRAM = {
    "type": "object",
    "additionalProperties": False,
    "required": ["command"],
    "properties": {"command": {"type": "string", "minLength": 1, "maxLength": MOST_COMMAND}},
}
SCHEMA = {
    "type": "object",
    "maxProperties": MOST_SERVERS,
    "propertyNames": {"pattern": f"^{_SERVER.pattern}$"},
    "additionalProperties": {"anyOf": [_STORED, _PROGRAM]},
}
