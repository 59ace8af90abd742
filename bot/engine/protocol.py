"""A workflow engine: only four calls, so that it stays replaceable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Protocol

from bot.models import TurnKey

Advance = Callable[[TurnKey], Awaitable[None]]
"""Takes a turn from its stored step to its end; safe to call again at any point."""


class EngineStatus(StrEnum):
    """The engine's view of a turn; its outcome is in the store."""

    ABSENT = "absent"
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class Engine(Protocol):
    """Runs `Advance` for submitted turns: in order within a thread, again after a crash."""

    async def submit(self, key: TurnKey, thread: str) -> None:
        """Have it run; safe to repeat. A turn whose workflow ended without finishing it runs again."""

    async def status(self, key: TurnKey) -> EngineStatus: ...

    async def resubmit(self, turns: list[tuple[TurnKey, str]]) -> int:
        """Submit turns (with their threads) that no live workflow runs; return how many."""

    async def drain(self) -> None:
        """Leave running turns as they are: the next process continues them."""
