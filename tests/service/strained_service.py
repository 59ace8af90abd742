"""`python -m tests.service.strained_service 0`: the real service, which a signal makes hang, or robs of its store.

SIGUSR1: its event loop does nothing for HANG_SECONDS. SIGUSR2: the store cannot be read; once more: it can again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from typing import TypeVar

from bot import app, settings
from bot.errors import StoreError
from bot.store.base import Database, Store

T = TypeVar("T")
HANG_SECONDS = 12.0


class Robbed(Store):
    """Can lose its file."""

    lost = False

    async def read(self, work: Callable[[Database], T], *, single: bool = False) -> T:
        if Robbed.lost:
            raise StoreError("The store cannot be opened.")
        return await super().read(work, single=single)

    @classmethod
    def toggle(cls) -> None:
        Robbed.lost = not Robbed.lost


async def main() -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, time.sleep, HANG_SECONDS)
    loop.add_signal_handler(signal.SIGUSR2, Robbed.toggle)
    async with app.running(settings.read(dict(os.environ)), Robbed.open) as service:
        print(service.url, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main())
