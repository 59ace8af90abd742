"""`python -m tests.loop.service`: the real service, whose loop is watched; SIGUSR1 writes what was seen."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from bot import app, settings
from tests.loop import lag


async def main() -> None:
    found = settings.read(dict(os.environ))
    report = found.data_dir.parent / "loop.json"
    stop, loop, watch = asyncio.Event(), asyncio.get_running_loop(), lag.LoopWatch()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: lag.write(report, watch.take()))
    async with app.running(found) as service:
        app.spare_the_collector()
        with watch.installed():
            beat = asyncio.create_task(watch.beat())
            print(service.url, flush=True)
            await stop.wait()
            beat.cancel()


def report_of(data_dir: Path) -> Path:
    return data_dir.parent / "loop.json"


if __name__ == "__main__":
    asyncio.run(main())
