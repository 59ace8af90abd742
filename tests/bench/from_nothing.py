"""`python -m tests.bench.from_nothing`: from `forgehand serve --poll` on an empty data directory to a pull request."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import httpx

from tests.webhooks.test_delivery_log import NOWHERE
from tests.world import World

ENDS_WITHIN = 20.0
TYPED = (str(Path(sys.executable).with_name("forgehand")), "serve", "--poll")
NOT_GIVEN = ("FORGEHAND_PORT", "FORGEHAND_WEBHOOK_SECRET", "FORGEHAND_CLIENT_ID", "FORGEHAND_CLIENT_SECRET")
"""Of the tests' own settings: a person who polls gives none of them."""


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with World.running(Path(folder)) as world:
            world.app.webhook_url = NOWHERE
            given = {name: value for name, value in world.environment.items() if name not in NOT_GIVEN}
            began = time.monotonic()
            process = await asyncio.create_subprocess_exec(*TYPED, env=given, stdout=DEVNULL, stderr=PIPE)
            try:
                await _ready(process, began)
                await _asked(world)
            finally:
                process.terminate()
                async with asyncio.timeout(ENDS_WITHIN):
                    await process.wait()


async def _ready(process: asyncio.subprocess.Process, began: float) -> None:
    """Until it has looked into GitHub's log once: what was said before that is nobody's business."""
    assert process.stderr is not None
    async with asyncio.timeout(60):
        line = b""
        while b"listens on" not in line:
            line = await process.stderr.readline()
        _say("typed to `listens`", began)
        url = line.decode().partition("listens on ")[2].partition(";")[0]
        async with httpx.AsyncClient(base_url=url) as client:
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.05)
    _say("typed to ready", began)


async def _asked(world: World) -> None:
    began = time.monotonic()
    world.say("/claude fix this")
    await world.github.changed(world.replies, 60)
    _say("comment to live comment", began)
    await world.github.changed(lambda: world.repo.pulls, 120)
    _say("comment to pull request", began)
    assert await world.outcome() == "pull_request", world.replies()[0].body
    _say("comment to final comment", began)


def _say(what: str, began: float) -> None:
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    print(f"{what:30} {time.monotonic() - began:6.1f} s   ({load})", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
