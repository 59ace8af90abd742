"""Reads a Messages request for a script: the words, the scenario, the place in the conversation.

It remembers nothing between requests, because the client sends the whole conversation each time. So a resumed or
repeated run finds its place by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MARKER = re.compile(r"\[\[scenario:([A-Za-z0-9_.-]+)\]\]")
LOADED = "Tool loaded."
"""What the client adds after a search for tools."""
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool that the model called."""

    id: str
    text: str
    is_error: bool


@dataclass(frozen=True)
class ModelRequest:
    """A request; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    query: str = ""

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def streams(self) -> bool:
        return self.body.get("stream") is True

    @property
    def has_tools(self) -> bool:
        return bool(self.body.get("tools"))

    @property
    def tool_names(self) -> list[str]:
        return [str(tool.get("name", "")) for tool in self.body.get("tools") or []]

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        return list(self.body.get("messages") or [])

    @property
    def system(self) -> str:
        return "\n".join(texts({"content": self.body.get("system") or ""}))

    @cached_property
    def prompt(self) -> str:
        """Return a person's last words, without those that the client added."""
        return next((words for words in reversed(self.spoken) if words), "")

    @cached_property
    def spoken(self) -> list[str]:
        """Return a person's words of each message, which may be empty."""
        return ["\n".join(_words(message)) for message in self.messages]

    @property
    def tool_results(self) -> list[ToolResult]:
        """Return all results so far, oldest first."""
        return [_result(block) for message in self.messages for block in _blocks(message, "tool_result")]

    @property
    def tool_calls(self) -> list[Mapping[str, Any]]:
        """Return all calls so far with their `name` and `input`, oldest first."""
        return [block for message in self.messages for block in _blocks(message, "tool_use")]

    @cached_property
    def scenario(self) -> str | None:
        """Return the name in the latest marker of any user text."""
        return self._place[0]

    @cached_property
    def step(self) -> int:
        """Count the model's answers since the scenario was named (without one: since a person last spoke)."""
        start = self._place[1]
        return sum(1 for message in self.messages[start:] if message.get("role") == "assistant")

    @cached_property
    def _place(self) -> tuple[str | None, int]:
        for index in range(len(self.messages) - 1, -1, -1):
            message = self.messages[index]
            found = MARKER.findall("\n".join(texts(message))) if message.get("role") == "user" else []
            if found:
                return found[-1], index
        spoken = [index for index, message in enumerate(self.messages) if _words(message)]
        return None, spoken[-1] if spoken else 0


def texts(message: Mapping[str, Any]) -> list[str]:
    """Return the text blocks of a message, without results of tools."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return [content] if content else []
    return [str(block.get("text", "")) for block in content if block.get("type") == "text"]


def _words(message: Mapping[str, Any]) -> list[str]:
    if message.get("role") != "user":
        return []
    return [words for text in texts(message) if (words := REMINDER.sub("", text).strip()) and words != LOADED]


def _blocks(message: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (block for block in content if block.get("type") == kind)


def _result(block: Mapping[str, Any]) -> ToolResult:
    return ToolResult(
        id=str(block.get("tool_use_id", "")),
        text="\n".join(texts(block)),
        is_error=bool(block.get("is_error")),
    )
