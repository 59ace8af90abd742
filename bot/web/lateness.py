"""How late the event loop is: what waits for it in that time are all people and all sessions."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry, Histogram

from bot.loops import Loop

LOOK_SECONDS = 0.25
LATENESS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Lateness:
    """A task that sleeps, and how much too long."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._late = Histogram(
            "forgehand_loop_late_seconds",
            "How late the event loop is, looked at four times a second.",
            buckets=LATENESS_SECONDS,
            registry=registry,
        )
        self.loop = Loop("lateness", self._look, 0.0)

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock() + LOOK_SECONDS
        await asyncio.sleep(LOOK_SECONDS)
        self._late.observe(max(0.0, clock() - due))
