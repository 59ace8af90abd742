"""Tools for tests of red checks: a fast clock, an agent that writes one file each turn, and CI at a commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from bot.simulation.anthropic import Call, ModelRequest, Say, Script
from bot.simulation.anthropic.script import Answer
from bot.simulation.github.threads import Comment, Pull
from bot.simulation.github.workflows import WorkflowRun
from bot.store import deliveries
from bot.store.base import Store
from bot.store.rows import many
from tests.reviews.test_reviews import config
from tests.world import World, stored

ON = "triggers:\n  ci_fix: true\n"
LOG = (
    b"2026-11-18T10:00:00.1234567Z ##[group]Run python -m unittest\n"
    b"2026-11-18T10:00:01.1234567Z \x1b[31mFAIL: test_never_below_zero\x1b[0m\n"
    b"2026-11-18T10:00:02.1234567Z ##[error]Process completed with exit code 1.\n"
)
TIMES_FASTER = 30


class FastClock:
    """A clock that runs many times as fast, so that checks settle while a test waits."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.seconds = 0.0

    def __call__(self) -> float:
        return time.time() + self.seconds + (time.monotonic() - self._began) * (TIMES_FASTER - 1)


def agent() -> Script:
    """Write one more file each turn, and say so."""
    turns = 0

    def write(request: ModelRequest) -> Answer:
        nonlocal turns
        turns += 1
        return Call("Bash", {"command": f"echo {turns} > mended{turns}.txt", "description": "Mend it"})

    def say(request: ModelRequest) -> Answer:
        return Say(f"Mended it, part {turns}.")

    return Script([write, say])


async def open_our_pull(world: World, settings: str = ON, script: Script | None = None) -> Pull:
    """Let the agent work on the issue, and return the pull request that Forgehand opens."""
    config(world, settings)
    world.model.default(script or agent())
    world.say("/claude fix this")
    assert await world.outcome() == "pull_request", world.replies()[-1].body
    [pull] = world.pulls()
    return pull


def ci(world: World, pull: Pull, ends: Mapping[str, str | None], log: bytes = LOG) -> WorkflowRun:
    return world.github.run_workflow(world.repo, pull.head_sha, ends, logs=dict.fromkeys(ends, log))


async def wait_for_webhooks(world: World, words: str = "", event: str = "check_run") -> None:
    """Wait until every webhook was handled, and require these words in the reason of one of this event."""
    await world.github.idle()
    store = await Store.open_reader(world.database)
    try:
        async with asyncio.timeout(30):
            while await deliveries.waiting_threads(store, 1):
                await asyncio.sleep(0.02)
        rows = await stored.newest_deliveries(store, 200)
    finally:
        await store.close()
    assert any(words in (one.reason or "") for one in rows if one.event == event)


async def wait_until_unwatched(world: World) -> None:
    """Wait until no check is awaited any more."""
    store = await Store.open_reader(world.database)
    sql = "SELECT 1 FROM ci_watches WHERE due_at IS NOT NULL AND off_by IS NULL"
    try:
        async with asyncio.timeout(40):
            while await store.read(lambda db: many(db, sql)):
                await asyncio.sleep(0.02)
    finally:
        await store.close()


async def wait_for_attempt(world: World) -> None:
    """Wait until a round has begun a turn, or found that it may not."""
    store = await Store.open_reader(world.database)
    try:
        async with asyncio.timeout(40):
            while not await store.read(lambda db: many(db, "SELECT 1 FROM ci_attempts")):
                await asyncio.sleep(0.02)
            while await store.read(lambda db: many(db, "SELECT 1 FROM ci_watches WHERE due_at IS NOT NULL")):
                await asyncio.sleep(0.02)
    finally:
        await store.close()


async def said(world: World, pull: Pull, words: str) -> Comment:
    def found() -> Comment | None:
        return next((one for one in world.replies(pull) if words in one.body), None)

    answer = await world.github.changed(found, 40)
    assert answer is not None
    return answer
