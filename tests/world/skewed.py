"""`python -m tests.world.skewed SECONDS`: the real service on a machine whose clock is wrong by so much."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from functools import partial

from bot import app, settings
from bot.store.base import Store


async def main(seconds: float) -> None:
    def clock() -> float:
        return time.time() + seconds

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    opened = partial(Store.open, clock=clock)
    async with app.running(settings.read(dict(os.environ)), opened, clock) as service:
        print(f"listens on {service.url};", file=sys.stderr, flush=True)
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
