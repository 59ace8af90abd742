"""What we ask of a workflow engine: four calls, so that it stays replaceable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Protocol

from bot.models import TurnKey

Advance = Callable[[TurnKey], Awaitable[None]]
"""Takes a turn from where the store says it stands to its end; safe to call again at any point."""


class EngineStatus(StrEnum):
    """What the engine knows of a turn; how the turn went is in the store."""

    ABSENT = "absent"
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


class Engine(Protocol):
    """Runs `Advance` for submitted turns: in order within a thread, again after a crash."""

    async def submit(self, key: TurnKey, thread: str) -> None:
        """Submitting twice is harmless; a turn whose workflow ended without finishing it is run anew."""
        ...

    async def status(self, key: TurnKey) -> EngineStatus: ...

    async def adopt(self, turns: list[tuple[TurnKey, str]]) -> int:
        """Submit those (with their threads) that no live workflow runs; returns how many."""
        ...

    async def drain(self) -> None:
        """Let go of what runs without ending it: the next process carries on."""
        ...
