"""`python -m tests.crash.service N`: the real service, composed around a store that kills the process.

The process dies by SIGKILL right after the N-th transaction was committed (0: never). Every intent and every result is
a transaction, so counting N up enumerates all the points at which a crash can fall between two effects.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import TypeVar

from bot import app, settings
from bot.store.base import Database, Store

T = TypeVar("T")


class KillingStore(Store):
    """Counts what it commits."""

    kill_at = 0
    committed = 0

    async def write(self, work: Callable[[Database], T]) -> T:
        result = await super().write(work)
        KillingStore.committed += 1
        if KillingStore.committed == KillingStore.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return result


async def main(kill_at: int) -> None:
    KillingStore.kill_at = kill_at
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with app.running(settings.read(dict(os.environ)), KillingStore.open) as service:
        print(service.url, flush=True)
        await stop.wait()
    print(KillingStore.committed, flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
